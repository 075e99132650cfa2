"""The responses dialect from the server's side.

Source: OpenAI API reference, "Create a model response" and its streaming events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenthost_chat.chat import Finish, ModelSettings, Usage

from .script import Heard, Line, Turn, called, offer, pieces

ERROR_TYPES = {401: "invalid_request_error", 429: "requests", 500: "server_error"}
SEALED = "gAAAAABsZWFsZWQ="
CUT_SHORT = {
    Finish.LENGTH: "max_output_tokens",
    Finish.CONTENT_BLOCKED: "content_filter",
}


@dataclass(frozen=True, slots=True)
class OpenAIResponsesWire:
    """Responses, with sealed reasoning."""

    base: str = "/v1"
    path: str = "/v1/responses"
    content_type: str = "text/event-stream"

    def hear(self, headers: Mapping[str, str], raw: bytes) -> Heard:
        """Read a request."""
        body = json.loads(raw)
        items = _items_of(body["input"])
        bearer = headers.get("authorization", "")
        outputs = _kind(items, "function_call_output")
        return Heard(
            path=self.path,
            key=bearer.removeprefix("Bearer ") or None,
            raw=raw,
            body=body,
            model=body["model"],
            stream=body.get("stream", False),
            system=body.get("instructions", ""),
            said=tuple(_said(items)),
            images=tuple(_images(items)),
            tools=tuple(tool["name"] for tool in body.get("tools", ())),
            calls=tuple(item["call_id"] for item in _kind(items, "function_call")),
            results=tuple((item["call_id"], _output(item)) for item in outputs),
            result_images=tuple(
                data for item in outputs for data in _pictures(item["output"])
            ),
            thoughts=tuple(
                (_joined(item["summary"]), item["encrypted_content"])
                for item in _kind(items, "reasoning")
            ),
            steps=len(outputs),
            transcript=tuple(_transcript(items)),
            offered=tuple(offer(tool) for tool in body.get("tools", ())),
            max_tokens=body.get("max_output_tokens"),
            temperature=body.get("temperature"),
            settings=_settings(body),
        )

    def events(self, turn: Turn) -> Sequence[bytes]:
        """Write the named events of one answer."""
        opened = _answer(turn, output=[], status="in_progress")
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": opened},
            {"type": "response.in_progress", "response": opened},
        ]
        for index, item in enumerate(_items(turn)):
            events += _item_events(index, item)
        last = "incomplete" if turn.finish in CUT_SHORT else "completed"
        answer = json.loads(self.whole(turn))
        events.append({"type": f"response.{last}", "response": answer})
        numbered = ({**event, "sequence_number": n} for n, event in enumerate(events))
        return [_event(event) for event in numbered]

    def whole(self, turn: Turn) -> bytes:
        """Write one response."""
        status = "incomplete" if turn.finish in CUT_SHORT else "completed"
        output = list(_items(turn))
        return json.dumps(_answer(turn, output=output, status=status)).encode()

    def refusal(self, status: int, words: str) -> bytes:
        """Write an error body."""
        kind = ERROR_TYPES.get(status, "invalid_request_error")
        error = {"message": words, "type": kind, "param": None, "code": None}
        return json.dumps({"error": error}).encode()

    def failure(self, words: str) -> bytes:
        """Write an error event."""
        error = {"code": "server_error", "message": words}
        failed = {"id": "resp_1", "object": "response", "status": "failed"}
        answer = {**failed, "error": error, "output": []}
        return _event({"type": "response.failed", "response": answer})

    def garbage(self) -> bytes:
        """Write an event that is not JSON."""
        return b'event: response.output_text.delta\ndata: {"type": "respon\n\n'

    def told(self, usage: Usage) -> Usage:
        """Keep what the wire can say: not what was written to the cache."""
        return Usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            reasoning_tokens=usage.reasoning_tokens,
        )


def _settings(body: Mapping[str, Any]) -> ModelSettings:
    choice = body.get("tool_choice", "")
    return ModelSettings(
        tool_choice=choice["name"] if isinstance(choice, dict) else choice,
        response_format=body.get("text", {}).get("format", {}).get("schema"),
        parallel_tool_calls=body.get("parallel_tool_calls"),
        top_p=body.get("top_p"),
        user=body.get("safety_identifier", ""),
    )


def _answer(
    turn: Turn, *, output: Sequence[Mapping[str, Any]], status: str
) -> dict[str, Any]:
    reason = CUT_SHORT.get(turn.finish)
    details = {"reason": reason} if status == "incomplete" else None
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "simulated",
        "status": status,
        "error": None,
        "incomplete_details": details,
        "instructions": None,
        "metadata": {},
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if status == "in_progress" else _usage(turn.usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _items(turn: Turn) -> Iterator[dict[str, Any]]:
    if turn.reasoning:
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        yield {
            "type": "reasoning",
            "id": "rs_1",
            "summary": summary,
            "encrypted_content": SEALED,
        }
    if turn.text:
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        yield {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    for index, call in enumerate(turn.calls):
        yield {
            "type": "function_call",
            "id": f"fc_{index}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }


def _item_events(index: int, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    place = {"output_index": index, "item_id": item["id"]}
    empty: dict[str, dict[str, Any]] = {
        "function_call": {"arguments": ""},
        "message": {"content": []},
    }
    opened = {**item, **empty.get(item["type"], {"summary": []})}
    yield {"type": "response.output_item.added", "output_index": index, "item": opened}
    if item["type"] == "function_call":
        kind = "response.function_call_arguments.delta"
        for piece in pieces(item["arguments"]):
            yield {"type": kind, **place, "delta": piece}
    elif item["type"] == "message":
        yield from _text_events(place, item["content"][0])
    else:
        part = {**place, "summary_index": 0}
        blank = {"type": "summary_text", "text": ""}
        yield {"type": "response.reasoning_summary_part.added", **part, "part": blank}
        for piece in pieces(item["summary"][0]["text"]):
            kind = "response.reasoning_summary_text.delta"
            yield {"type": kind, **part, "delta": piece}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _text_events(
    place: Mapping[str, Any], part: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    where = {**place, "content_index": 0}
    blank = {**part, "text": ""}
    yield {"type": "response.content_part.added", **where, "part": blank}
    for piece in pieces(part["text"]):
        kind = "response.output_text.delta"
        yield {"type": kind, **where, "delta": piece, "logprobs": []}
    whole = {"text": part["text"], "logprobs": []}
    yield {"type": "response.output_text.done", **where, **whole}
    yield {"type": "response.content_part.done", **where, "part": part}


def _event(payload: Mapping[str, Any]) -> bytes:
    return f"event: {payload['type']}\ndata: {json.dumps(payload)}\n\n".encode()


def _items_of(asked: Any) -> list[Mapping[str, Any]]:
    """Read an input, which may be one text."""
    said: list[Mapping[str, Any]] = [{"role": "user", "content": asked}]
    return said if isinstance(asked, str) else list(asked)


def _joined(parts: Sequence[Mapping[str, Any]]) -> str:
    return "".join(part.get("text", "") for part in parts)


def _kind(items: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [item for item in items if item.get("type") == kind]


def _parts(items: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    for item in items:
        if item.get("role") == "user":
            content = item["content"]
            text = [{"type": "input_text", "text": content}]
            yield text if isinstance(content, str) else content


def _said(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for parts in _parts(items):
        yield _joined(parts)


def _images(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for parts in _parts(items):
        yield from _pictures(parts)


def _pictures(parts: Sequence[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, dict) and part["type"] == "input_image":
            yield part["image_url"].partition(";base64,")[2]


def _output(item: Mapping[str, Any]) -> str:
    said = item["output"]
    if isinstance(said, str):
        return said
    return _joined([part for part in said if part["type"] == "input_text"])


def _transcript(items: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    for item in items:
        kind, said = item.get("type"), item.get("content", "")
        if kind == "function_call":
            yield called(item["name"], item["arguments"])
        elif kind == "function_call_output":
            yield "result", _output(item)
        elif "role" in item:
            yield item["role"], said if isinstance(said, str) else _joined(said)
