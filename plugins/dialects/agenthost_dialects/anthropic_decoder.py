"""The Anthropic messages dialect, read: answers, streamed and whole.

Source: Claude API reference, "Streaming messages".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenthost import (
    ChatRequest,
    Delta,
    Endpoint,
    Finish,
    ReasoningChunk,
    TextChunk,
    Usage,
)

from .answers import (
    CallDraft,
    Draft,
    TextDraft,
    ThoughtDraft,
    compact,
    count_of,
    objects_of,
    text_of,
)
from .decoding import EventDecoder
from .faults import stream_fault

NAME = "anthropic-messages"

FINISHES = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "pause_turn": Finish.STOP,
    "tool_use": Finish.TOOL_USE,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.CONTENT_BLOCKED,
}


class AnthropicDecoder(EventDecoder):
    """Reads one answer."""

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        super().__init__(request, endpoint)
        self._blocks: dict[str, Draft | None] = {}
        self._usage: dict[str, Any] = {}
        self._cites = "cites" in (request.native or {}).get(NAME, {})
        self._readers = {
            "message": self._message,
            "message_start": self._start,
            "content_block_start": self._begin,
            "content_block_delta": self._continue,
            "content_block_stop": self._end,
            "message_delta": self._amend,
            "message_stop": self._finish,
        }

    def _take(self, event: bytes) -> Iterable[Delta]:
        if self._done:
            return ()
        payload = self._object(event)
        kind = payload.get("type")
        if kind == "error":
            raise stream_fault(self._endpoint, payload)
        reader = self._readers.get(str(kind))
        return reader(payload) if reader else ()

    def _message(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        """Read a whole answer: its blocks as if each had come in one piece."""
        for index, block in enumerate(objects_of(payload.get("content"))):
            yield from self._begin({"index": index, "content_block": block})
            yield from self._end({"index": index})
        self._draft.id = text_of(payload.get("id"))
        self._account(payload.get("usage"))
        self._reason(payload)
        yield from self._finish(payload)

    def _start(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        message = payload.get("message")
        if isinstance(message, dict):
            self._draft.id = text_of(message.get("id"))
            self._account(message.get("usage"))
        yield from ()

    def _begin(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        block = payload.get("content_block")
        block = block if isinstance(block, dict) else {}
        draft = _draft_of(block)
        if self._cites and block.get("type") == "text":
            cited = objects_of(block.get("citations"))
            draft = TextDraft(opaque={NAME: {"citations": cited}})
        self._blocks[str(payload.get("index"))] = draft
        if draft is not None:
            self._draft.begin(draft)
        yield from self._draft.text(text_of(block.get("text")))
        if isinstance(draft, ThoughtDraft):
            yield from self._draft.thought(text_of(block.get("thinking")))

    def _continue(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        delta = payload.get("delta")
        if not isinstance(delta, dict):
            return
        draft = self._blocks.get(str(payload.get("index")))
        yield from self._draft.text(text_of(delta.get("text")))
        if isinstance(draft, ThoughtDraft):
            yield from self._draft.thought(text_of(delta.get("thinking")))
            _sign(draft, text_of(delta.get("signature")))
        elif isinstance(draft, TextDraft) and isinstance(delta.get("citation"), dict):
            draft.opaque[NAME]["citations"].append(delta["citation"])
        elif isinstance(draft, CallDraft):
            self._argue(draft, text_of(delta.get("partial_json")))

    def _end(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        draft = self._blocks.get(str(payload.get("index")))
        if isinstance(draft, ThoughtDraft) and draft.opaque:
            yield ReasoningChunk("", {NAME: {**draft.opaque[NAME]}})
        elif isinstance(draft, TextDraft):
            yield TextChunk("", (), draft.opaque)

    def _argue(self, draft: CallDraft, piece: str) -> None:
        # The block opens with ``input: {}``, which the pieces replace.
        if piece and draft.arguments == ["{}"]:
            draft.arguments.clear()
        self._draft.argue(draft, piece)

    def _amend(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        delta = payload.get("delta")
        if isinstance(delta, dict):
            self._reason(delta)
        self._account(payload.get("usage"))
        yield from ()

    def _finish(self, _: Mapping[str, Any]) -> Iterator[Delta]:
        self._done = True
        self._draft.usage = read_usage(self._usage)
        yield self._draft.complete()

    def _reason(self, payload: Mapping[str, Any]) -> None:
        reason = payload.get("stop_reason")
        if isinstance(reason, str):
            self._draft.ends(reason, FINISHES)
            self._draft.stopped_before(text_of(payload.get("stop_sequence")))

    def _account(self, usage: Any) -> None:
        # Counts are cumulative, and a later event may leave some out or null.
        if isinstance(usage, dict):
            told = {name: count for name, count in usage.items() if count is not None}
            self._usage.update(told)


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Normalise a usage object; cached tokens stand beside ``input_tokens``."""
    read = count_of(usage, "cache_read_input_tokens")
    written = count_of(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=count_of(usage, "input_tokens") + read + written,
        output_tokens=count_of(usage, "output_tokens"),
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=count_of(usage, "output_tokens_details", "thinking_tokens"),
    )


def _draft_of(block: Mapping[str, Any]) -> Draft | None:
    kind = block.get("type")
    if kind == "tool_use":
        given = block.get("input")
        arguments = [] if given is None else [compact(given)]
        return CallDraft(
            text_of(block.get("id")), text_of(block.get("name")), arguments
        )
    if kind == "redacted_thinking":
        return ThoughtDraft(opaque={NAME: {"data": text_of(block.get("data"))}})
    if kind == "thinking":
        draft = ThoughtDraft()
        _sign(draft, text_of(block.get("signature")))
        return draft
    return None


def _sign(draft: ThoughtDraft, piece: str) -> None:
    if piece:
        own = draft.opaque.setdefault(NAME, {"signature": ""})
        own["signature"] += piece
