"""What a request asks of the answer, as a turn takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenthost import InvalidInput, JsonObject, ModelSettings, ToolDefinition

from ..asking import ANY_OBJECT
from ..checks import taken
from ..efforts import budget_of
from ..native import check_tier
from ..tools import definition_of
from .shapes import ResponseBody

UNSERVED = {
    "conversation": "use previous_response_id",
    "prompt": "put its words into instructions",
    "max_tool_calls": "the agent's own limits hold",
    "context_management": "nothing is left out",
    "moderation": "ask for it apart",
    "access_programs": "only OpenAI's own service knows them",
}
VERBOSITIES = ("low", "medium", "high")
LOGPROBS = "message.output_text.logprobs"
INCLUDED = frozenset(
    {"message.input_image.image_url", "reasoning.encrypted_content", LOGPROBS}
)
"""The first is there in any case, the second never: no reasoning is given out."""


def refuse_unserved(body: ResponseBody) -> None:
    """Refuse what would be missed, where most unknown fields are passed over.

    Raises:
        InvalidInput: There is such a field.
    """
    for name, remedy in UNSERVED.items():
        if (value := getattr(body, name)) is not None and value != 0:
            raise InvalidInput(name, f"is not served; {remedy}")
    for at, name in enumerate(body.include or ()):
        if name not in INCLUDED:
            raise InvalidInput(f"include.{at}", f"{name[:64]!r} is not served")
    if body.truncation not in {None, "disabled"}:
        raise InvalidInput("truncation", "must be disabled: nothing is left out")
    if body.background and body.store is False:
        raise InvalidInput("store", "what is done in the background is kept")


def form_of(text: JsonObject | None) -> JsonObject | None:
    """Read the form that the answer is to have, None where it has none.

    Raises:
        InvalidInput: It is none.
    """
    match (text or {}).get("format"):
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return ANY_OBJECT
        case {"type": "json_schema", "schema": dict(schema)}:
            return schema
        case {"type": "json_schema"}:
            raise InvalidInput("text.format.schema", "must be a JSON Schema")
    raise InvalidInput("text.format.type", "text, json_object or json_schema")


def settings_of(body: ResponseBody, tool_choice: str) -> ModelSettings | None:
    """Read what else is asked of the answer; None where that is nothing."""
    told: dict[str, Any] = {
        "tool_choice": tool_choice or None,
        "response_format": form_of(body.text),
        "top_p": body.top_p,
        "parallel_tool_calls": body.parallel_tool_calls,
        "user": body.safety_identifier or body.user,
        "logprobs": _logprobs(body),
    }
    asked = {name: value for name, value in told.items() if value is not None}
    return ModelSettings(**asked) if asked else None


def _logprobs(body: ResponseBody) -> int | None:
    """Tell how many tokens are told in each place; None where none are asked for."""
    asked = body.top_logprobs or LOGPROBS in (body.include or ())
    return body.top_logprobs or 0 if asked else None


def thought_of(body: ResponseBody) -> int | None:
    """Tell how many tokens may be thought; None where nothing is said.

    Raises:
        InvalidInput: The word for it is not known.
    """
    effort = None if body.reasoning is None else body.reasoning.effort
    return budget_of(effort, "reasoning.effort")


def native_of(body: ResponseBody) -> Mapping[str, JsonObject] | None:
    """Gather what chat completions say in the same words; None for nothing."""
    effort = None if body.reasoning is None else body.reasoning.effort
    wordy = (body.text or {}).get("verbosity")
    told: dict[str, Any] = {"reasoning_effort": effort} if effort else {}
    if wordy is not None:
        if wordy not in VERBOSITIES:
            known = ", ".join(VERBOSITIES)
            raise InvalidInput("text.verbosity", f"must be one of {known}")
        told["verbosity"] = wordy
    check_tier(body.service_tier)
    if body.service_tier is not None:
        told["service_tier"] = body.service_tier
    return {"openai-chat": told} if told else None


def offered(body: ResponseBody) -> tuple[tuple[ToolDefinition, ...], str]:
    """Read the client's tools, and which of them are to be called.

    With ``none`` the model sees no tool of the client's; the agent has its own.

    Raises:
        InvalidInput: One is not as it should be.
    """
    given = enumerate(body.tools or ())
    tools = {tool.name: tool for tool in (_definition(t, at) for at, t in given)}
    if len(tools) < len(body.tools or ()):
        raise InvalidInput("tools", "two have the same name")
    choice = body.tool_choice
    match choice:
        case {"type": "allowed_tools", "tools": list(some), "mode": str(mode)}:
            tools = {name: tools[name] for name in _allowed(some, tools)}
            choice = mode
    if choice is None or not tools:
        return tuple(tools.values()), ""
    match choice:
        case "none":
            return (), ""
        case "auto" | "required":
            return tuple(tools.values()), choice
        case {"type": "function", "name": str(name)} if name in tools:
            return tuple(tools.values()), name
    problem = "must be auto, none, required, allowed_tools or one of the tools"
    raise InvalidInput("tool_choice", problem)


def _definition(tool: JsonObject, at: int) -> ToolDefinition:
    match tool:
        case {"type": "function", "name": str(_)}:
            return definition_of(tool, f"tools.{at}")
    taken(tool.get("type"), str, f"tools.{at}.type")
    problem = "must be a function with a name; the agent's own tools need none"
    raise InvalidInput(f"tools.{at}.type", problem)


def _allowed(some: list[Any], tools: Mapping[str, ToolDefinition]) -> list[str]:
    names = [each.get("name") for each in some if isinstance(each, dict)]
    known = [name for name in names if isinstance(name, str) and name in tools]
    if len(known) < len(some):
        raise InvalidInput("tool_choice.tools", "must be functions of the tools")
    return known
