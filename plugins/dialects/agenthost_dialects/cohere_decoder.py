"""Cohere's second chat dialect, read: answers, streamed and whole.

Source: Cohere API reference, "Chat with streaming" (v2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenthost import ChatRequest, Delta, Endpoint, Finish, Usage

from .answers import CallDraft, count_of, objects_of, text_of
from .decoding import EventDecoder
from .faults import stream_fault

NAME = "cohere-v2"

FINISHES = {
    "COMPLETE": Finish.STOP,
    "STOP_SEQUENCE": Finish.STOP,
    "TOOL_CALL": Finish.TOOL_USE,
    "MAX_TOKENS": Finish.LENGTH,
    "ERROR_TOXIC": Finish.CONTENT_BLOCKED,
}


class CohereDecoder(EventDecoder):
    """Reads one answer."""

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        super().__init__(request, endpoint)
        self._calls: dict[str, CallDraft] = {}

    def _take(self, event: bytes) -> Iterable[Delta]:
        if self._done or event.strip() == b"[DONE]":
            return ()
        payload = self._object(event)
        return self._event(payload) if self._streamed else self._whole(payload)

    def _event(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        if "type" not in payload and payload.get("message"):
            raise stream_fault(self._endpoint, payload)
        delta = payload.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        message = delta.get("message")
        if isinstance(message, dict):
            yield from self._said(message, str(payload.get("index")))
        if payload.get("type") == "message-start":
            self._draft.id = text_of(payload.get("id"))
        if payload.get("type") == "message-end":
            if delta.get("error"):
                raise stream_fault(self._endpoint, delta)
            yield from self._end(delta)

    def _said(self, message: Mapping[str, Any], index: str) -> Iterator[Delta]:
        yield from self._thought(text_of(message.get("tool_plan")), "plan")
        content = message.get("content")
        if isinstance(content, dict):
            yield from self._content(content)
        call = message.get("tool_calls")
        if isinstance(call, dict):
            self._call(call, index)

    def _content(self, content: Mapping[str, Any]) -> Iterator[Delta]:
        yield from self._thought(text_of(content.get("thinking")), "thinking")
        yield from self._draft.text(text_of(content.get("text")))

    def _thought(self, piece: str, kind: str) -> Iterable[Delta]:
        if not piece:
            return ()
        deltas = self._draft.thought(piece)
        self._draft.latest_thought().opaque[NAME] = {"kind": kind}
        return deltas

    def _call(self, call: Mapping[str, Any], index: str) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        draft = self._calls.get(index)
        if draft is None:
            draft = self._calls[index] = CallDraft()
            self._draft.begin(draft)
        draft.id = draft.id or text_of(call.get("id"))
        draft.name = draft.name or text_of(function.get("name"))
        self._draft.argue(draft, text_of(function.get("arguments")))

    def _whole(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        """Read a whole answer, as if each part had come in one piece."""
        message = payload.get("message")
        if isinstance(message, dict):
            yield from self._thought(text_of(message.get("tool_plan")), "plan")
            for content in objects_of(message.get("content")):
                yield from self._content(content)
            for index, call in enumerate(objects_of(message.get("tool_calls"))):
                self._call(call, str(index))
        self._draft.id = text_of(payload.get("id"))
        yield from self._end(payload)

    def _end(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        reason = payload.get("finish_reason")
        if str(reason) in {"ERROR", "TIMEOUT", "ERROR_LIMIT"}:
            words = f"ended with the reason {reason}"
            raise stream_fault(self._endpoint, {"message": words})
        if isinstance(reason, str):
            self._draft.ends(reason, FINISHES)
        usage = payload.get("usage")
        if isinstance(usage, dict):
            self._draft.usage = read_usage(usage)
        self._done = True
        yield self._draft.complete()


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Normalise a usage object: tokens as billed, else as counted.

    The count has what the service adds to a prompt of its own, which nobody pays.
    """
    billed = isinstance(usage.get("billed_units"), dict)
    kind = "billed_units" if billed else "tokens"
    return Usage(
        input_tokens=count_of(usage, kind, "input_tokens"),
        output_tokens=count_of(usage, kind, "output_tokens"),
        cached_tokens=count_of(usage, "cached_tokens"),
    )
