"""What a request asks of the answer, as a turn takes it."""

from __future__ import annotations

from typing import Any

from agenthost import InvalidInput, JsonObject, ModelSettings

from .checks import taken
from .shapes import ChatBody

ANY_OBJECT = {"type": "object"}
SEEDS = 2**31
REPLACED = {"functions": "tools", "function_call": "tool_choice"}


def refuse_unserved(body: ChatBody) -> None:
    """Refuse what would be missed, where most unknown fields are passed over.

    Raises:
        InvalidInput: There is such a field.
    """
    if body.n not in {None, 1}:
        raise InvalidInput("n", "must be 1: an agent gives one answer")
    for old, new in REPLACED.items():
        if getattr(body, old) is not None:
            raise InvalidInput(old, f"is not served; use {new}")
    if body.top_logprobs is not None and not body.logprobs:
        raise InvalidInput("top_logprobs", "needs logprobs to be true")


def settings_of(body: ChatBody, tool_choice: str) -> ModelSettings | None:
    """Read what else is asked of the answer; None where that is nothing."""
    told: dict[str, Any] = {}
    if tool_choice:
        told["tool_choice"] = tool_choice
    if body.response_format is not None:
        told["response_format"] = _form(body.response_format)
    if body.stop:
        told["stop"] = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop)
    if body.seed is not None:
        # OpenAI takes any whole number, and most others half of the positive ones.
        told["seed"] = body.seed % SEEDS
    if body.logprobs:
        told["logprobs"] = body.top_logprobs or 0
    for name in ("top_p", "parallel_tool_calls", "user"):
        if (value := getattr(body, name)) is not None:
            told[name] = value
    return ModelSettings(**told) if told else None


def _form(given: JsonObject) -> JsonObject | None:
    """Read the form that the answer is to have."""
    match given:
        case {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return ANY_OBJECT
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return schema
        case {"type": "json_schema"}:
            where = "response_format.json_schema"
            taken(given.get("json_schema"), dict, where)
            raise InvalidInput(f"{where}.schema", "must be a JSON Schema")
    raise InvalidInput("response_format.type", "text, json_object or json_schema")
