"""A model for servers: asked by the agent whose turn calls them, who pays for it.

Source: https://modelcontextprotocol.io/specification/2026-07-28, sampling. A server's
text and tools reach the model alone: nothing of the agent's prompt, conversation or
tools goes with them.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from agenthost import (
    Answered,
    ChatRequest,
    Finish,
    Image,
    InvalidInput,
    JsonObject,
    Message,
    Payer,
    Role,
    Target,
    Text,
    ToolContext,
    ToolDefinition,
    ToolUse,
    Unavailable,
)

from .sampling_tools import (
    choice_of,
    is_result,
    outputs_of,
    signs_of,
    told_of,
    tools_of,
    use_of,
)

METHOD = "sampling/createMessage"
MOST_MESSAGES = 50
MOST_SIGNS = 100_000
MOST_TOKENS = 4_096
MOST_STOPS = 8
IMAGE_BYTES = 5 * 1024 * 1024
_ROLES = ("user", "assistant")
_REASONS = {
    Finish.STOP: "endTurn",
    Finish.LENGTH: "maxTokens",
    Finish.TOOL_USE: "toolUse",
}
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


async def sampled(context: ToolContext, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a server's question to a model by the agent's own.

    Raises:
        InvalidInput: The server asks wrongly, or for what is not offered to it.
        Unavailable: No agent's turn is under way that would pay.
        QuotaExceeded: A budget has no room.
        ProviderError: The model gave no answer.
    """
    if context.agent is None or context.turn_id is None:
        raise Unavailable("nobody pays: a model is asked in the turn of an agent alone")
    host = context.host
    target = host.agents.target_of(host.agents.get(context.agent.id))
    request = request_of(asked.get("params"), target)
    payer = Payer(context.agent, context.turn_id, context.pools, context=context)
    async with aclosing(host.models.ask(target, request, payer)) as deltas:
        async for delta in deltas:
            if isinstance(delta, Answered):
                return _told(delta, request.tools)
    raise Unavailable("the model broke off")


def request_of(params: object, target: Target) -> ChatRequest:
    """Read what a server asks a model.

    Raises:
        InvalidInput: It asks wrongly, for too much, or for what is not offered to it.
    """
    said = params if isinstance(params, Mapping) else {}
    messages, system = said.get("messages"), said.get("systemPrompt", "")
    if not isinstance(messages, list) or not 0 < len(messages) <= MOST_MESSAGES:
        raise InvalidInput("messages", f"must be a list of 1 to {MOST_MESSAGES}")
    if not isinstance(system, str):
        raise InvalidInput("systemPrompt", "must be a text")
    tools = tools_of(said.get("tools"), target)
    read = _conversation(messages, target)
    if _signs(system, read, tools) > MOST_SIGNS:
        raise InvalidInput("messages", f"have over {MOST_SIGNS:,} signs, with tools")
    return ChatRequest(
        model=target.model.upstream_id,
        system=system,
        messages=read,
        tools=tools,
        tool_choice=choice_of(said.get("toolChoice"), tools),
        max_tokens=_tokens(said.get("maxTokens"), target),
        temperature=_temperature(said.get("temperature"), target),
        stop=_stops(said.get("stopSequences")),
    )


def _conversation(said: list[Any], target: Target) -> tuple[Message, ...]:
    read: list[Message] = []
    for each in said:
        read.append(_message(each, target, read[-1] if read else None))
    if read[-1].role is Role.ASSISTANT:
        raise InvalidInput("messages", "must end with one of the user")
    return tuple(read)


def _message(said: object, target: Target, before: Message | None) -> Message:
    match said:
        case {"role": str() as role, "content": content} if role in _ROLES:
            blocks = content if isinstance(content, list) else [content]
            if role == "assistant" and not (before and before.tool_uses):
                parts = tuple(_said(each, target) for each in blocks)
                return Message(Role.ASSISTANT, parts)
            if any(map(is_result, blocks)) or (before and before.tool_uses):
                outputs = outputs_of(blocks, before, partial(_part, target=target))
                return Message(Role.TOOL, outputs)
            return Message(Role.USER, tuple(_part(each, target) for each in blocks))
    raise InvalidInput("messages", "each has a role, user or assistant, and content")


def _said(block: object, target: Target) -> Text | Image | ToolUse:
    if isinstance(block, Mapping) and block.get("type") == "tool_use":
        return use_of(block)
    return _part(block, target)


def _signs(
    system: str, messages: tuple[Message, ...], tools: tuple[ToolDefinition, ...]
) -> int:
    offered = [(each.name, each.description, each.parameters) for each in tools]
    size = sum(len(each.text) + signs_of(each) for each in messages)
    return len(system) + size + len(json.dumps(offered))


def _part(block: object, target: Target) -> Text | Image:
    match block:
        case {"type": "text", "text": str() as text}:
            return Text(text)
        case {"type": "image", "data": str() as data, "mimeType": str() as kind}:
            if kind not in _IMAGES or not target.model.supports_vision:
                raise InvalidInput("messages", "the model sees no such picture")
            try:
                size = len(base64.b64decode(data, validate=True))
            except (binascii.Error, ValueError):
                raise InvalidInput("messages", "a picture is no base64") from None
            if size > IMAGE_BYTES:
                raise InvalidInput("messages", f"a picture is over {IMAGE_BYTES} bytes")
            return Image(kind, data)
    raise InvalidInput("messages", "hold what no model is given here: text and images")


def _tokens(most: object, target: Target) -> int:
    if type(most) is not int or most < 1:
        raise InvalidInput("maxTokens", "must be a number of tokens")
    return min(most, MOST_TOKENS, target.model.max_output)


def _temperature(said: object, target: Target) -> float | None:
    if said is None or target.model.sampling is False:
        return None
    if (
        isinstance(said, bool)
        or not isinstance(said, int | float)
        or not 0 <= said <= 2
    ):
        raise InvalidInput("temperature", "must be between 0 and 2")
    return float(said)


def _stops(said: object) -> tuple[str, ...]:
    if said is None:
        return ()
    words = said if isinstance(said, list) else [None]
    if len(words) > MOST_STOPS or not all(isinstance(each, str) for each in words):
        raise InvalidInput("stopSequences", f"must be a list of {MOST_STOPS} texts")
    return tuple(words)


def _told(answer: Answered, tools: tuple[ToolDefinition, ...]) -> dict[str, Any]:
    done = answer.completion
    reason = "stopSequence" if done.stop else _REASONS.get(done.finish, done.finish)
    text: JsonObject = {"type": "text", "text": done.message.text}
    uses = told_of(done.message.tool_uses, tools)
    content = [*([text] if text["text"] else []), *uses] if uses else text
    return {
        "role": "assistant",
        "content": content,
        "model": answer.spent.model,
        "stopReason": str(reason),
    }
