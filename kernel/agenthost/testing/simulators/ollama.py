"""Ollama's native chat from the server's side.

Source: Ollama API documentation, "Generate a chat completion".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenthost_chat.chat import Finish, ModelSettings, Usage

from .script import Heard, Line, Turn, called, offer, pieces

FINISHES = {Finish.LENGTH: "length"}
HEAD = {"model": "simulated", "created_at": "2026-01-01T00:00:00Z"}


@dataclass(frozen=True, slots=True)
class OllamaWire:
    """One JSON document a line."""

    base: str = ""
    path: str = "/api/chat"
    content_type: str = "application/x-ndjson"

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
            stream=body.get("stream", True),
            system="".join(m["content"] for m in messages if m["role"] == "system"),
            said=tuple(m["content"] for m in messages if m["role"] == "user"),
            images=tuple(i for m in messages for i in m.get("images", ())),
            tools=tuple(tool["function"]["name"] for tool in body.get("tools", ())),
            calls=tuple(
                call["function"]["name"]
                for m in messages
                for call in m.get("tool_calls", ())
            ),
            results=tuple(
                (m["tool_name"], m["content"]) for m in messages if m["role"] == "tool"
            ),
            thoughts=tuple((m["thinking"], "") for m in messages if "thinking" in m),
            steps=sum(1 for m in messages if m["role"] == "tool"),
            transcript=tuple(_transcript(messages)),
            offered=tuple(offer(tool["function"]) for tool in body.get("tools", ())),
            max_tokens=body.get("options", {}).get("num_predict"),
            temperature=body.get("options", {}).get("temperature"),
            settings=_settings(body),
        )

    def events(self, turn: Turn) -> Sequence[bytes]:
        """Write lines; the last says that it is done."""
        said = [{"content": "", "thinking": piece} for piece in pieces(turn.reasoning)]
        said += [{"content": piece} for piece in pieces(turn.text)]
        lines = [_line({"message": {"role": "assistant", **s}}) for s in said]
        lines += [
            _line({"message": _calls(turn, index)}).replace(
                b'"<arguments>"', call.arguments.encode()
            )
            for index, call in enumerate(turn.calls)
        ]
        last = {"message": {"role": "assistant", "content": ""}, **_end(turn)}
        return [*lines, _line(last)]

    def whole(self, turn: Turn) -> bytes:
        """Write one document."""
        message: dict[str, Any] = {"role": "assistant", "content": turn.text}
        if turn.reasoning:
            message["thinking"] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = [
                _calls(turn, index)["tool_calls"][0] for index in range(len(turn.calls))
            ]
        text = _line({"message": message, **_end(turn)})
        for call in turn.calls:
            text = text.replace(b'"<arguments>"', call.arguments.encode(), 1)
        return text

    def refusal(self, status: int, words: str) -> bytes:
        """Write an error body; its status says the rest."""
        del status
        return json.dumps({"error": words}).encode()

    def failure(self, words: str) -> bytes:
        """Write an error line."""
        return json.dumps({"error": words}).encode() + b"\n"

    def garbage(self) -> bytes:
        """Write a line that is not JSON."""
        return b'{"message": {"role":\n'

    def told(self, usage: Usage) -> Usage:
        """Keep what the wire can say: two counts."""
        return Usage(usage.input_tokens, usage.output_tokens)


def _settings(body: Mapping[str, Any]) -> ModelSettings:
    options = body.get("options", {})
    return ModelSettings(
        response_format=body.get("format"),
        stop=tuple(options.get("stop", ())),
        top_p=options.get("top_p"),
        seed=options.get("seed"),
    )


def _line(rest: Mapping[str, Any]) -> bytes:
    return json.dumps({**HEAD, "done": False, **rest}).encode() + b"\n"


def _calls(turn: Turn, index: int) -> dict[str, Any]:
    function = {"name": turn.calls[index].name, "arguments": "<arguments>"}
    call = {"function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _end(turn: Turn) -> dict[str, Any]:
    return {
        "done": True,
        "done_reason": FINISHES.get(turn.finish, "stop"),
        "prompt_eval_count": turn.usage.input_tokens,
        "eval_count": turn.usage.output_tokens,
    }


def _transcript(messages: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    for message in messages:
        role, words = message["role"], message["content"]
        if role == "tool":
            yield "result", words
        elif role == "user" or (role == "assistant" and words):
            yield role, words
        for call in message.get("tool_calls", ()):
            yield called(call["function"]["name"], call["function"]["arguments"])
