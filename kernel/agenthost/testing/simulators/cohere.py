"""Cohere's second chat dialect from the server's side.

Source: Cohere API reference, "Chat" and "Chat with streaming" (v2).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenthost_chat.chat import Finish, ModelSettings, Usage

from .script import Heard, Line, ScriptedCall, Turn, called, offer, pieces

FINISHES = {
    Finish.STOP: "COMPLETE",
    Finish.TOOL_USE: "TOOL_CALL",
    Finish.LENGTH: "MAX_TOKENS",
    Finish.CONTENT_BLOCKED: "ERROR_TOXIC",
}


@dataclass(frozen=True, slots=True)
class CohereWire:
    """Chat, with a plan before tools."""

    base: str = ""
    path: str = "/v2/chat"
    content_type: str = "text/event-stream"

    def hear(self, headers: Mapping[str, str], raw: bytes) -> Heard:
        """Read a request."""
        body = json.loads(raw)
        messages = body["messages"]
        bearer = headers.get("authorization", "")
        results = [m for m in messages if m["role"] == "tool"]
        return Heard(
            path=self.path,
            key=bearer.removeprefix("Bearer ") or None,
            raw=raw,
            body=body,
            model=body["model"],
            stream=body["stream"],
            system="".join(m["content"] for m in messages if m["role"] == "system"),
            said=tuple(
                "".join(part.get("text", "") for part in parts)
                for parts in _user_parts(messages)
            ),
            images=tuple(
                part["image_url"]["url"].partition(";base64,")[2]
                for parts in _user_parts(messages)
                for part in parts
                if part["type"] == "image_url"
            ),
            tools=tuple(tool["function"]["name"] for tool in body.get("tools", ())),
            calls=tuple(
                call["id"] for m in messages for call in m.get("tool_calls", ())
            ),
            results=tuple((m["tool_call_id"], m["content"]) for m in results),
            thoughts=tuple((m["tool_plan"], "") for m in messages if "tool_plan" in m),
            steps=len(results),
            transcript=tuple(_transcript(messages)),
            offered=tuple(offer(tool["function"]) for tool in body.get("tools", ())),
            max_tokens=body.get("max_tokens"),
            temperature=body.get("temperature"),
            settings=_settings(body),
        )

    def events(self, turn: Turn) -> Sequence[bytes]:
        """Write the typed events of one answer."""
        start = {"message": {"role": "assistant", "content": [], "tool_calls": []}}
        events = [{"type": "message-start", "id": "c1", "delta": start}]
        if turn.calls:
            events += [
                _delta("tool-plan-delta", {"tool_plan": p})
                for p in pieces(turn.reasoning)
            ]
        elif turn.reasoning:
            events += _content(0, "thinking", turn.reasoning)
        if turn.text:
            events += _content(1, "text", turn.text)
        for index, call in enumerate(turn.calls):
            events += _call_events(index, call)
        end = {"finish_reason": FINISHES[turn.finish], "usage": _usage(turn.usage)}
        events.append({"type": "message-end", "id": "c1", "delta": end})
        return [_event(event) for event in events]

    def whole(self, turn: Turn) -> bytes:
        """Write one answer."""
        message: dict[str, Any] = {"role": "assistant", "content": []}
        if turn.reasoning and turn.calls:
            message["tool_plan"] = turn.reasoning
        elif turn.reasoning:
            thinking = {"type": "thinking", "thinking": turn.reasoning}
            message["content"].append(thinking)
        if turn.text:
            message["content"].append({"type": "text", "text": turn.text})
        if turn.calls:
            message["tool_calls"] = [_call(call, call.arguments) for call in turn.calls]
        return json.dumps(
            {
                "id": "c1",
                "finish_reason": FINISHES[turn.finish],
                "message": message,
                "usage": _usage(turn.usage),
            }
        ).encode()

    def refusal(self, status: int, words: str) -> bytes:
        """Write an error body; its status says the rest."""
        del status
        return json.dumps({"id": "e1", "message": words}).encode()

    def failure(self, words: str) -> bytes:
        """Write an end that is an error."""
        end = {"finish_reason": "ERROR", "error": words, "usage": _usage(Usage())}
        return _event({"type": "message-end", "id": "c1", "delta": end})

    def garbage(self) -> bytes:
        """Write an event that is not JSON."""
        return b'event: content-delta\ndata: {"type": "content-del\n\n'

    def told(self, usage: Usage) -> Usage:
        """Keep what the wire can say."""
        return Usage(usage.input_tokens, usage.output_tokens, usage.cached_tokens)


def _settings(body: Mapping[str, Any]) -> ModelSettings:
    return ModelSettings(
        tool_choice=body.get("tool_choice", "").lower(),
        response_format=body.get("response_format", {}).get("json_schema"),
        stop=tuple(body.get("stop_sequences", ())),
        top_p=body.get("p"),
        seed=body.get("seed"),
    )


def _delta(kind: str, message: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, **more, "delta": {"message": dict(message)}}


def _content(index: int, kind: str, text: str) -> Iterator[dict[str, Any]]:
    opened = {"content": {"type": kind, kind: ""}}
    yield _delta("content-start", opened, index=index)
    for piece in pieces(text):
        yield _delta("content-delta", {"content": {kind: piece}}, index=index)
    yield {"type": "content-end", "index": index}


def _call(call: ScriptedCall, arguments: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _call_events(index: int, call: ScriptedCall) -> Iterator[dict[str, Any]]:
    yield _delta("tool-call-start", {"tool_calls": _call(call, "")}, index=index)
    for piece in pieces(call.arguments):
        more = {"tool_calls": {"function": {"arguments": piece}}}
        yield _delta("tool-call-delta", more, index=index)
    yield {"type": "tool-call-end", "index": index}


def _event(payload: Mapping[str, Any]) -> bytes:
    return f"event: {payload['type']}\ndata: {json.dumps(payload)}\n\n".encode()


def _usage(usage: Usage) -> dict[str, Any]:
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }
    cached = usage.cached_tokens
    return {"billed_units": counts, "tokens": counts, "cached_tokens": cached}


def _user_parts(
    messages: Sequence[Mapping[str, Any]],
) -> Iterator[Sequence[Mapping[str, Any]]]:
    for message in messages:
        if message["role"] == "user":
            content = message["content"]
            text = [{"type": "text", "text": content}]
            yield text if isinstance(content, str) else content


def _transcript(messages: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    for message in messages:
        role, content = message["role"], message.get("content", "")
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        if role == "tool":
            yield "result", content
        elif role == "user" or (role == "assistant" and content):
            yield role, content
        for call in message.get("tool_calls", ()):
            yield called(call["function"]["name"], call["function"]["arguments"])
