"""The messages dialect from the server's side.

Source: Claude API reference, "Create a message" and "Streaming messages".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenthost_chat.chat import Finish, ModelSettings, Usage

from .script import Heard, Line, ScriptedCall, Turn, called, offer, pieces

FINISHES = {
    Finish.STOP: "end_turn",
    Finish.TOOL_USE: "tool_use",
    Finish.LENGTH: "max_tokens",
    Finish.CONTENT_BLOCKED: "refusal",
}
ERROR_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}
SIGNATURE = "c2lnbmF0dXJlOnRoaXMgaXMgdGhlIG1vZGVsJ3Mgb3duIHRob3VnaHQ="
HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "model": "simulated"}


@dataclass(frozen=True, slots=True)
class AnthropicMessagesWire:
    """Messages, with signed thinking."""

    base: str = ""
    path: str = "/v1/messages"
    content_type: str = "text/event-stream"

    def hear(self, headers: Mapping[str, str], raw: bytes) -> Heard:
        """Read a request."""
        body = json.loads(raw)
        blocks = list(_blocks(body["messages"]))
        results = list(_kind(blocks, "tool_result"))
        return Heard(
            path=self.path,
            key=headers.get("x-api-key"),
            raw=raw,
            body=body,
            model=body["model"],
            stream=body.get("stream", False),
            system=_system(body.get("system", "")),
            said=tuple(
                b["text"] for role, b in blocks if (role, b["type"]) == ("user", "text")
            ),
            images=tuple(b["source"]["data"] for b in _kind(blocks, "image")),
            tools=tuple(tool["name"] for tool in body.get("tools", ())),
            calls=tuple(b["id"] for b in _kind(blocks, "tool_use")),
            results=tuple((b["tool_use_id"], _result_text(b)) for b in results),
            result_images=tuple(
                i["source"]["data"] for b in results for i in _result(b, "image")
            ),
            thoughts=tuple(_thoughts(blocks)),
            steps=sum(map(_has_results, body["messages"])),
            transcript=tuple(_transcript(blocks)),
            offered=tuple(
                offer(tool, "input_schema") for tool in body.get("tools", ())
            ),
            errors=tuple(b["tool_use_id"] for b in results if b.get("is_error")),
            max_tokens=body.get("max_tokens"),
            temperature=body.get("temperature"),
            settings=_settings(body),
        )

    def events(self, turn: Turn) -> Sequence[bytes]:
        """Write the named events of one answer."""
        start: dict[str, Any] = {
            **HEAD,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        usage = _usage(turn.usage)
        early = {**usage, "output_tokens": 1}
        events = [{"type": "message_start", "message": {**start, "usage": early}}]
        for index, block in enumerate(_content(turn)):
            events += _block_events(index, block)
        events.insert(2, {"type": "ping"})
        delta = {"stop_reason": FINISHES[turn.finish], "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": usage})
        events.append({"type": "message_stop"})
        return [_event(event) for event in events]

    def whole(self, turn: Turn) -> bytes:
        """Write one message; arguments that are no JSON break it, as they should."""
        content = [_whole_block(block) for block in _content(turn)]
        rest = {
            "content": content,
            "stop_reason": FINISHES[turn.finish],
            "stop_sequence": None,
            "usage": _usage(turn.usage),
        }
        text = json.dumps({**HEAD, **rest})
        for call in turn.calls:
            text = text.replace('"<arguments>"', call.arguments, 1)
        return text.encode()

    def refusal(self, status: int, words: str) -> bytes:
        """Write an error body."""
        kind = ERROR_TYPES.get(status, "invalid_request_error")
        error = {"type": kind, "message": words}
        return json.dumps({"type": "error", "error": error}).encode()

    def failure(self, words: str) -> bytes:
        """Write an error event."""
        error = {"type": "overloaded_error", "message": words}
        return _event({"type": "error", "error": error})

    def garbage(self) -> bytes:
        """Write an event that is not JSON."""
        return b'event: content_block_delta\ndata: {"type": "content_blo\n\n'

    def told(self, usage: Usage) -> Usage:
        """Keep what the wire can say: no price."""
        return Usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        )


Block = tuple[str, str, ScriptedCall | None]


def _settings(body: Mapping[str, Any]) -> ModelSettings:
    choice = body.get("tool_choice", {})
    alone = choice.get("disable_parallel_tool_use")
    kind = "required" if choice.get("type") == "any" else choice.get("type", "")
    form = body.get("output_config", {}).get("format", {})
    return ModelSettings(
        tool_choice=choice.get("name", kind),
        response_format=form.get("schema"),
        parallel_tool_calls=None if alone is None else not alone,
        stop=tuple(body.get("stop_sequences", ())),
        top_p=body.get("top_p"),
        user=body.get("metadata", {}).get("user_id", ""),
    )


def _content(turn: Turn) -> Iterator[Block]:
    if turn.reasoning:
        yield "thinking", turn.reasoning, None
    if turn.redacted:
        yield "redacted_thinking", turn.redacted, None
    if turn.text:
        yield "text", turn.text, None
    for call in turn.calls:
        yield "tool_use", call.arguments, call


def _whole_block(block: Block) -> dict[str, Any]:
    kind, text, call = block
    if call is not None:
        return {"type": kind, "id": call.id, "name": call.name, "input": "<arguments>"}
    if kind == "thinking":
        return {"type": kind, "thinking": text, "signature": SIGNATURE}
    return {"type": kind, "data" if kind == "redacted_thinking" else "text": text}


def _block_events(index: int, block: Block) -> Iterator[dict[str, Any]]:
    kind, text, call = block
    opened = {**_whole_block(block)}
    deltas: list[dict[str, Any]] = []
    if call is not None:
        opened["input"] = {}
        deltas = [_delta("input_json_delta", "partial_json", p) for p in pieces(text)]
    elif kind == "thinking":
        opened.update(thinking="", signature="")
        deltas = [_delta("thinking_delta", "thinking", p) for p in pieces(text)]
        deltas.append(_delta("signature_delta", "signature", SIGNATURE))
    elif kind == "text":
        opened["text"] = ""
        deltas = [_delta("text_delta", "text", p) for p in pieces(text)]
    yield {"type": "content_block_start", "index": index, "content_block": opened}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _delta(kind: str, name: str, piece: str) -> dict[str, Any]:
    return {"type": kind, name: piece}


def _event(payload: Mapping[str, Any]) -> bytes:
    return f"event: {payload['type']}\ndata: {json.dumps(payload)}\n\n".encode()


def _usage(usage: Usage) -> dict[str, Any]:
    beside = usage.cached_tokens + usage.cache_write_tokens
    return {
        "input_tokens": usage.input_tokens - beside,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


def _system(system: Any) -> str:
    if isinstance(system, str):
        return system
    return "".join(block["text"] for block in system)


def _blocks(
    messages: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        yield from ((message["role"], block) for block in content)


def _result(block: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    content = block["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if block.get("is_error"):
        assert all(part["type"] == "text" for part in content), "an error is words"
    return (part for part in content if part["type"] == kind)


def _result_text(block: Mapping[str, Any]) -> str:
    return "".join(part["text"] for part in _result(block, "text"))


def _kind(
    blocks: Sequence[tuple[str, Mapping[str, Any]]], kind: str
) -> Iterator[Mapping[str, Any]]:
    return (block for _, block in blocks if block["type"] == kind)


def _transcript(blocks: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Line]:
    for role, block in blocks:
        if block["type"] == "text":
            yield role, block["text"]
        elif block["type"] == "tool_use":
            yield called(block["name"], block["input"])
        elif block["type"] == "tool_result":
            yield "result", _result_text(block)


def _thoughts(
    blocks: Sequence[tuple[str, Mapping[str, Any]]],
) -> Iterator[tuple[str, str]]:
    for _, block in blocks:
        if block["type"] == "thinking":
            yield block["thinking"], block["signature"]
        elif block["type"] == "redacted_thinking":
            yield "", block["data"]


def _has_results(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return any(b["type"] == "tool_result" for b in content if isinstance(b, dict))
