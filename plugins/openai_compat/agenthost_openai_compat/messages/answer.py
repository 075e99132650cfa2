"""An answer in blocks, and how it ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from agenthost import (
    Finish,
    Message,
    Reasoning,
    Role,
    Text,
    ToolUse,
    Turn,
    TurnResult,
    Usage,
)

from ..tools import told_calls

REASONS: Mapping[Finish | None, str] = {
    Finish.TOOL_USE: "tool_use",
    Finish.LENGTH: "max_tokens",
    Finish.CONTENT_BLOCKED: "refusal",
}
"""Why an answer ended, where it did not end by itself."""
SEALED = "anthropic-messages"
"""The dialect whose vendors sign what is thought, and want it back as it was."""


def head_of(id_: str, model: str) -> dict[str, Any]:
    """Write what is known of an answer before its first word."""
    told = {"type": "message", "role": "assistant", "model": model}
    return {"id": f"msg_{id_}", **told}


def ending_of(result: TurnResult) -> dict[str, Any]:
    """Write why an answer ended."""
    reason = REASONS.get(result.finish, "end_turn")
    if result.stop and reason == "end_turn":
        return {"stop_reason": "stop_sequence", "stop_sequence": result.stop}
    return {"stop_reason": reason, "stop_sequence": None}


def tokens_of(usage: Usage) -> dict[str, Any]:
    """Write what an answer took; what was cached is not in ``input_tokens``."""
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    told: dict[str, Any] = {
        "input_tokens": max(usage.input_tokens - cached - written, 0),
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }
    if usage.reasoning_tokens:
        told["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return told


def blocks_of(
    turn: Turn, result: TurnResult, *, thoughts: bool
) -> list[Mapping[str, Any]]:
    """Write all that a turn said, its thoughts where they are asked for."""
    said = [each for each in turn.spoken if each.role is Role.ASSISTANT]
    blocks = [*words_of(said, turn.id, thoughts=thoughts)]
    if result.finish is Finish.LENGTH and turn.saying:
        blocks.append({"type": "text", "text": turn.saying})
    return blocks + calls_of(told_calls(turn, result.calls))


def words_of(
    messages: Iterable[Message], id_: str, *, thoughts: bool
) -> Iterator[Mapping[str, Any]]:
    """Write what messages say, their thoughts signed with the id of the answer."""
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, Text) and part.text:
            yield {"type": "text", "text": part.text}
        elif thoughts and isinstance(part, Reasoning) and part.text:
            signed = {"signature": signature_of(id_)}
            yield {"type": "thinking", "thinking": part.text, **signed}


def own_words_of(
    message: Message, id_: str, *, thoughts: bool
) -> Iterator[Mapping[str, Any]]:
    """Write what a model itself says; what its vendor has signed as that has it."""
    for part in message.parts:
        told = isinstance(part, Reasoning | Text) and part.opaque
        sealed = (told or {}).get(SEALED)
        if isinstance(part, Text) and part.text and sealed and sealed["citations"]:
            cited = {"citations": sealed["citations"]}
            yield {"type": "text", "text": part.text, **cited}
        elif not isinstance(part, Reasoning) or not sealed:
            one = Message(message.role, (part,))
            yield from words_of([one], id_, thoughts=thoughts)
        elif "data" in sealed:
            yield redacted(sealed["data"])
        else:
            text = part.text if thoughts else ""
            signed = {"signature": sealed["signature"]}
            yield {"type": "thinking", "thinking": text, **signed}


def redacted(data: str) -> Mapping[str, Any]:
    """Write a thought that only its vendor can read."""
    return {"type": "redacted_thinking", "data": data}


def calls_of(calls: Iterable[ToolUse]) -> list[Mapping[str, Any]]:
    """Write the calls that the client is to make."""
    return [{**use_of(call), "input": dict(call.arguments)} for call in calls]


def use_of(call: ToolUse) -> dict[str, Any]:
    """Write a call that the client is to make, without its arguments."""
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}


def arguments_of(call: ToolUse) -> str:
    """Write the arguments of a call as a text."""
    return json.dumps(dict(call.arguments), ensure_ascii=False)


def signature_of(id_: str) -> str:
    """Give the mark of an answer's thoughts: it names it, and proves nothing."""
    return UUID(id_).hex
