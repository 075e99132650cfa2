"""Tools of a server that asks a model, which may call them; the server makes the calls.

Source: https://modelcontextprotocol.io/specification/2025-11-25, sampling with tools;
2026-07-28 has the same. No tool of the agent is among them, and none is made here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agenthost import (
    Image,
    InvalidInput,
    JsonObject,
    Message,
    Target,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
    Unavailable,
)

MOST_TOOLS = 64
ID_LENGTH = 200
_NAME = r"[A-Za-z0-9_-]{1,64}"
"""What every provider takes as the name of a tool."""
_MODES = ("auto", "required", "none")
Read = Callable[[object], Text | Image]


def tools_of(said: object, target: Target) -> tuple[ToolDefinition, ...]:
    """Read the tools that a model may call.

    Raises:
        InvalidInput: A model cannot be given them, or this one calls none.
    """
    if said is None or said == []:
        return ()
    if not isinstance(said, list) or len(said) > MOST_TOOLS:
        raise InvalidInput("tools", f"must be a list of at most {MOST_TOOLS}")
    if not target.model.supports_tools:
        raise InvalidInput("tools", "the model calls none")
    tools = tuple(_tool(each) for each in said)
    if len({each.name for each in tools}) < len(tools):
        raise InvalidInput("tools", "two have one name")
    return tools


def choice_of(said: object, tools: Sequence[ToolDefinition]) -> str:
    """Read whether a tool may, must or must not be called; empty where there are none.

    Raises:
        InvalidInput: It is none of these, or what must be called is not there.
    """
    mode = said.get("mode", "auto") if isinstance(said, Mapping) else said or "auto"
    if mode not in _MODES:
        raise InvalidInput("toolChoice", f"must have one of {_MODES} as its mode")
    if mode == "required" and not tools:
        raise InvalidInput("toolChoice", "no tool is there that could be called")
    return str(mode) if tools else ""


def use_of(block: Mapping[str, Any]) -> ToolUse:
    """Read a call that a model made before.

    Raises:
        InvalidInput: It is none.
    """
    match block:
        case {"id": str() as ident, "name": str() as name, "input": dict() as given}:
            if 0 < len(ident) <= ID_LENGTH and re.fullmatch(_NAME, name):
                return ToolUse(ident, name, given)
    raise InvalidInput("messages", "a tool_use has an id, a name and an input")


def outputs_of(
    blocks: Sequence[Any], before: Message | None, read: Read
) -> tuple[ToolOutput, ...]:
    """Read the results of all calls of the message before.

    Args:
        blocks: What the message holds.
        before: The message before it.
        read: Reads a part of a result.

    Raises:
        InvalidInput: They are not the results of these calls, or not they alone.
    """
    uses = before.tool_uses if before else ()
    names = {use.id: use.name for use in uses}
    results = [each for each in blocks if is_result(each)]
    idents = [str(each.get("toolUseId")) for each in results]
    apart = len(names) == len(uses) and sorted(idents) == sorted(names)
    if len(results) < len(blocks) or not apart:
        raise InvalidInput(
            "messages", "each call has its result in the next message, and alone there"
        )
    return tuple(
        _output(ident, names[ident], each, read)
        for ident, each in zip(idents, results, strict=True)
    )


def is_result(block: object) -> bool:
    """Tell whether a part of a message is the result of a call."""
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def told_of(uses: Sequence[ToolUse], offered: Sequence[ToolDefinition]) -> list[Any]:
    """Write the calls that a model wants made.

    Raises:
        Unavailable: One of them is of no tool that was offered, or cannot be read.
    """
    names = {each.name for each in offered}
    if any(use.malformed or use.name not in names for use in uses):
        raise Unavailable("the model calls what it was not offered")
    return [
        {"type": "tool_use", "id": use.id, "name": use.name, "input": use.arguments}
        for use in uses
    ]


def signs_of(message: Message) -> int:
    """How much there is to read of a message's calls and their results."""
    size = sum(len(json.dumps(each.arguments)) for each in message.tool_uses)
    results = (each for each in message.parts if isinstance(each, ToolOutput))
    return size + sum(len(each.text) for each in results)


def _tool(said: Any) -> ToolDefinition:
    match said:
        case {"name": str() as name, "inputSchema": dict() as schema}:
            words = said.get("description") or said.get("title") or ""
            if re.fullmatch(_NAME, name) and isinstance(words, str):
                return ToolDefinition(name, words, {"type": "object", **schema})
    raise InvalidInput("tools", f"each has an inputSchema, and a name of {_NAME}")


def _output(ident: str, name: str, said: JsonObject, read: Read) -> ToolOutput:
    content = said.get("content")
    parts = [read(each) for each in content] if isinstance(content, list) else []
    words = [
        each.text if isinstance(each, Text) else f"[image: {each.media_type}]"
        for each in parts
    ]
    structured = said.get("structuredContent")
    if structured is not None:
        words.append(json.dumps(structured))
    return ToolOutput(
        ident,
        name,
        "\n".join(words),
        said.get("isError") is True,
        tuple(each for each in parts if isinstance(each, Image)),
        structured,
    )
