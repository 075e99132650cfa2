"""The chat completions dialect from the server's side.

Source: OpenAI API reference, "Create chat completion" and its streaming page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenthost_chat.chat import Finish, ModelSettings, Usage

from .script import Heard, Line, Turn, called, offer, pieces

FINISHES = {
    Finish.STOP: "stop",
    Finish.TOOL_USE: "tool_calls",
    Finish.LENGTH: "length",
    Finish.CONTENT_BLOCKED: "content_filter",
}
HEAD = {"id": "chatcmpl-1", "created": 1, "model": "simulated"}
ERROR_TYPES = {401: "invalid_request_error", 429: "requests", 500: "server_error"}


@dataclass(frozen=True, slots=True)
class OpenAIChatWire:
    """Chat completions; ``reasoning_field`` is where this provider thinks aloud."""

    reasoning_field: str = "reasoning_content"
    base: str = "/v1"
    path: str = "/v1/chat/completions"
    content_type: str = "text/event-stream"

    def hear(self, headers: Mapping[str, str], raw: bytes) -> Heard:
        """Read a request."""
        body = json.loads(raw)
        messages = body["messages"]
        bearer = headers.get("authorization", "")
        return Heard(
            path=self.path,
            key=bearer.removeprefix("Bearer ") or None,
            raw=raw,
            body=body,
            model=body["model"],
            stream=body.get("stream", False),
            system="".join(_contents(messages, "system", "developer")),
            said=tuple(_contents(messages, "user")),
            images=tuple(_images(messages)),
            tools=tuple(tool["function"]["name"] for tool in body.get("tools", ())),
            calls=tuple(
                call["id"] for m in messages for call in m.get("tool_calls") or ()
            ),
            results=tuple(
                (m["tool_call_id"], _words(m)) for m in messages if m["role"] == "tool"
            ),
            thoughts=tuple(
                (m[self.reasoning_field], "")
                for m in messages
                if m.get(self.reasoning_field)
            ),
            steps=sum(1 for m in messages if m["role"] == "tool"),
            transcript=tuple(_transcript(messages)),
            offered=tuple(offer(tool["function"]) for tool in body.get("tools", ())),
            max_tokens=body.get("max_tokens", body.get("max_completion_tokens")),
            temperature=body.get("temperature"),
            settings=_settings(body),
        )

    def events(self, turn: Turn) -> Sequence[bytes]:
        """Write chunks, a chunk with usage, and the end marker."""
        chunks = [_choice({"role": "assistant", "content": ""})]
        thoughts = pieces(turn.reasoning)
        chunks += [_choice({self.reasoning_field: piece}) for piece in thoughts]
        chunks += [_choice({"content": piece}) for piece in pieces(turn.text)]
        for index, _ in enumerate(turn.calls):
            chunks += [_choice({"tool_calls": [p]}) for p in _call(turn, index)]
        chunks.append(_choice({}, FINISHES[turn.finish]))
        chunks.append({"choices": [], "usage": _usage(turn.usage)})
        whole = [{**HEAD, "object": "chat.completion.chunk", **c} for c in chunks]
        return [*(_event(json.dumps(chunk)) for chunk in whole), _event("[DONE]")]

    def whole(self, turn: Turn) -> bytes:
        """Write one chat completion."""
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
        if turn.reasoning:
            message[self.reasoning_field] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in turn.calls
            ]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": FINISHES[turn.finish],
        }
        rest = {"choices": [choice], "usage": _usage(turn.usage)}
        return json.dumps({**HEAD, "object": "chat.completion", **rest}).encode()

    def refusal(self, status: int, words: str) -> bytes:
        """Write an error body."""
        kind = ERROR_TYPES.get(status, "invalid_request_error")
        error = {"message": words, "type": kind, "param": None, "code": None}
        return json.dumps({"error": error}).encode()

    def failure(self, words: str) -> bytes:
        """Write an error event."""
        return _event(json.dumps({"error": {"message": words, "type": "server_error"}}))

    def garbage(self) -> bytes:
        """Write an event that is not JSON."""
        return _event('{"choices": [{"delta": ')

    def told(self, usage: Usage) -> Usage:
        """Keep what the wire can say: not what was written to the cache."""
        return Usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            reasoning_tokens=usage.reasoning_tokens,
        )


def _settings(body: Mapping[str, Any]) -> ModelSettings:
    choice, form = body.get("tool_choice", ""), body.get("response_format", {})
    named = choice["function"]["name"] if isinstance(choice, dict) else choice
    return ModelSettings(
        tool_choice=named,
        response_format=form.get("json_schema", {}).get("schema"),
        parallel_tool_calls=body.get("parallel_tool_calls"),
        stop=tuple(body.get("stop", ())),
        top_p=body.get("top_p"),
        seed=body.get("seed", body.get("random_seed")),
        user=body.get("user", body.get("safety_identifier", "")),
    )


def _event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def _choice(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {"choices": [choice]}


def _call(turn: Turn, index: int) -> Iterator[dict[str, Any]]:
    call = turn.calls[index]
    function = {"name": call.name, "arguments": ""}
    yield {"index": index, "id": call.id, "type": "function", "function": function}
    for piece in pieces(call.arguments):
        yield {"index": index, "function": {"arguments": piece}}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _contents(messages: Sequence[Mapping[str, Any]], *roles: str) -> Iterator[str]:
    return (_words(message) for message in messages if message["role"] in roles)


def _words(message: Mapping[str, Any]) -> str:
    content = message["content"] or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return str(content)


def _transcript(messages: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    for message in messages:
        role, words = message["role"], _words(message)
        if role in ("system", "developer"):
            continue
        if words or role != "assistant":
            yield ("result" if role == "tool" else role), words
        for call in message.get("tool_calls") or ():
            yield called(call["function"]["name"], call["function"]["arguments"])


def _images(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if part["type"] == "image_url":
                yield part["image_url"]["url"].partition(";base64,")[2]
