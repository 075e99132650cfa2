"""What a request asks of the answer, as a turn takes it."""

from __future__ import annotations

import re
from typing import Any

from agenthost import InvalidInput, JsonObject, ModelSettings, ToolDefinition

from ..checks import filled, taken
from ..efforts import EFFORTS
from .errors import NoThreads
from .shapes import Conversation, MessagesBody

LEAST_THINKING = 1_024
ADAPTIVE = 10_000
UNSERVED = {
    "container": "code runs in the agent's own tools",
    "mcp_servers": "give the agent the tools",
}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}", re.A)
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def refuse_unserved(body: Conversation) -> None:
    """Refuse what would be missed, where most unknown fields are passed over.

    Raises:
        InvalidInput: There is such a field.
    """
    for name, remedy in UNSERVED.items():
        if getattr(body, name):
            raise InvalidInput(name, f"is not served: {remedy}")
    if body.thread is not None:
        raise NoThreads("thread", "is not served: send the whole conversation")


def tools_of(body: Conversation) -> tuple[tuple[ToolDefinition, ...], dict[str, Any]]:
    """Read the client's tools, and the settings that say which are to be called.

    With ``none`` the model sees no tool of the client's; the agent has its own.

    Raises:
        InvalidInput: One is not as it should be.
    """
    given = enumerate(body.tools or ())
    tools = tuple(_definition(tool, f"tools.{at}") for at, tool in given)
    names = {tool.name for tool in tools}
    if len(names) < len(tools):
        raise InvalidInput("tools", "two have the same name")
    if body.tool_choice is None:
        return tools, {}
    settings = _choice(body.tool_choice, names)
    if settings["tool_choice"] == "none":
        return (), {}
    return tools, settings


def settings_of(body: MessagesBody, chosen: dict[str, Any]) -> ModelSettings | None:
    """Read what else is asked of the answer; None where that is nothing.

    Args:
        body: The request.
        chosen: What it says of its tools.
    """
    told = dict(chosen)
    if body.stop_sequences:
        told["stop"] = tuple(body.stop_sequences)
    if body.top_p is not None:
        told["top_p"] = body.top_p
    user = (body.metadata or {}).get("user_id")
    if user is not None:
        told["user"] = taken(user, str, "metadata.user_id")[:512]
    form = (body.output_config or {}).get("format")
    if form is not None:
        told["response_format"] = _form(form)
    return ModelSettings(**told) if told else None


def thinking_of(body: Conversation) -> int | None:
    """Tell how many tokens the model may think; None is the agent's own rule.

    Raises:
        InvalidInput: It is asked for in a way that is not known.
    """
    effort = (body.output_config or {}).get("effort")
    if effort is not None and effort not in [*EFFORTS]:
        known = ", ".join(EFFORTS)
        raise InvalidInput("output_config.effort", f"must be one of {known}")
    match body.thinking:
        case None:
            return None
        case {"type": "disabled"}:
            return 0
        case {"type": "adaptive"}:
            return EFFORTS[effort] if effort else ADAPTIVE
        case {"type": "enabled", "budget_tokens": int(tokens)} if (
            tokens >= LEAST_THINKING and not isinstance(tokens, bool)
        ):
            return min(tokens, 10_000_000)
        case {"type": "enabled"}:
            problem = f"must be {LEAST_THINKING} or more"
            raise InvalidInput("thinking.budget_tokens", problem)
    raise InvalidInput("thinking.type", "must be enabled, adaptive or disabled")


def shows_thoughts(body: Conversation, *, usual: bool) -> bool:
    """Tell whether the client is to see what the model thinks."""
    asked = body.thinking
    if asked is None:
        return usual
    return asked.get("type") != "disabled" and asked.get("display") != "omitted"


def _definition(tool: JsonObject, place: str) -> ToolDefinition:
    kind = tool.get("type")
    if kind not in [None, "custom"]:
        shown = repr(kind[:100]) if isinstance(kind, str) else "what is no text"
        problem = f"{shown} is not served; tools of type custom are, which you run"
        raise InvalidInput(f"{place}.type", problem)
    name = filled(tool.get("name"), f"{place}.name")
    if not _NAME.fullmatch(name):
        problem = "must have 1 to 128 letters, digits, _ or -"
        raise InvalidInput(f"{place}.name", problem)
    told = tool.get("description")
    words = "" if told is None else taken(told, str, f"{place}.description")
    schema = taken(tool.get("input_schema"), dict, f"{place}.input_schema")
    return ToolDefinition(name, words, schema)


def _choice(given: JsonObject, names: set[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    alone = given.get("disable_parallel_tool_use")
    if alone is not None:
        if not isinstance(alone, bool):
            where = "tool_choice.disable_parallel_tool_use"
            raise InvalidInput(where, "must be true or false")
        settings["parallel_tool_calls"] = not alone
    match given:
        case {"type": "tool", "name": str(name)} if name in names:
            settings["tool_choice"] = name
        case {"type": "any"} if not names:
            raise InvalidInput("tool_choice", "any needs tools; there are none")
        case {"type": "auto" | "any" | "none" as kind}:
            settings["tool_choice"] = _CHOICES[kind]
        case _:
            problem = "must be of type auto, any, none, or tool with the name of one"
            raise InvalidInput("tool_choice", problem)
    return settings


def _form(given: object) -> JsonObject:
    """Read the form that the answer is to have."""
    match given:
        case {"type": "json_schema", "schema": dict(schema)}:
            return schema
    problem = "must be of type json_schema, with a schema"
    raise InvalidInput("output_config.format", problem)
