"""The Bedrock Converse dialect, read: answers, streamed in frames and whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenthost import ChatRequest, Delta, Endpoint, Finish, Usage

from .answers import (
    AnswerDraft,
    CallDraft,
    Draft,
    ThoughtDraft,
    compact,
    count_of,
    objects_of,
    text_of,
)
from .event_stream import EventStreamFrames, Frame
from .faults import stream_fault
from .framing import WholeBody, malformed, read_object

NAME = "bedrock-converse"

FINISHES = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "tool_use": Finish.TOOL_USE,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "guardrail_intervened": Finish.CONTENT_BLOCKED,
    "content_filtered": Finish.CONTENT_BLOCKED,
}


class BedrockDecoder:
    """Reads one answer; a stream ends with its metadata."""

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._frames = EventStreamFrames(endpoint.provider) if request.stream else None
        self._body = WholeBody(endpoint.provider)
        self._draft = AnswerDraft(endpoint.provider, request)
        self._blocks: dict[str, Draft] = {}
        self._done = False
        self._readers = {
            "contentBlockStart": self._begin,
            "contentBlockDelta": self._continue,
            "messageStop": self._reason,
            "metadata": self._end,
        }

    @property
    def heard(self) -> int:
        """How many bytes of the answer came so far."""
        return self._draft.size

    def feed(self, chunk: bytes) -> list[Delta]:
        """Take the next bytes of the body."""
        self._draft.check()
        if self._frames is None:
            return [d for body in self._body.feed(chunk) for d in self._whole(body)]
        return [d for frame in self._frames.feed(chunk) for d in self._take(frame)]

    def close(self) -> list[Delta]:
        """End the body: emit the Completion, if it is whole."""
        self._draft.check()
        if self._frames is None:
            return [d for body in self._body.close() for d in self._whole(body)]
        deltas = [d for frame in self._frames.close() for d in self._take(frame)]
        if not self._done:
            raise malformed(self._endpoint.provider, "it broke off before its end")
        return deltas

    def _take(self, frame: Frame) -> Iterable[Delta]:
        if self._done:
            return ()
        payload = read_object(self._endpoint.provider, frame.payload or b"{}")
        if frame.headers.get(":message-type", "event") != "event":
            name = frame.headers.get(":exception-type")
            name = name or frame.headers.get(":error-code", "")
            words = frame.headers.get(":error-message", "")
            raise stream_fault(
                self._endpoint, {"message": words, **payload, "code": name}
            )
        reader = self._readers.get(frame.headers.get(":event-type", ""))
        return reader(payload) if reader else ()

    def _whole(self, body: bytes) -> Iterator[Delta]:
        """Read a whole answer, as if each block had come in one piece."""
        payload = read_object(self._endpoint.provider, body)
        output = payload.get("output")
        message = output.get("message") if isinstance(output, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        for index, block in enumerate(objects_of(content)):
            yield from self._block(index, block)
        yield from self._reason(payload)
        yield from self._end(payload)

    def _block(self, index: int, block: Mapping[str, Any]) -> Iterator[Delta]:
        place = {"contentBlockIndex": index}
        call = block.get("toolUse")
        if isinstance(call, dict):
            yield from self._begin({**place, "start": block})
            given = {"toolUse": {"input": compact(call.get("input", {}))}}
            yield from self._continue({**place, "delta": given})
            return
        thought = block.get("reasoningContent")
        if isinstance(thought, dict):
            told = thought.get("reasoningText")
            block = {"reasoningContent": told if isinstance(told, dict) else thought}
        yield from self._continue({**place, "delta": block})

    def _begin(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        start = payload.get("start")
        call = start.get("toolUse") if isinstance(start, dict) else None
        if isinstance(call, dict):
            draft = CallDraft(text_of(call.get("toolUseId")), text_of(call.get("name")))
            self._blocks[str(payload.get("contentBlockIndex"))] = draft
            self._draft.begin(draft)
        yield from ()

    def _continue(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        delta = payload.get("delta")
        if not isinstance(delta, dict):
            return
        index = str(payload.get("contentBlockIndex"))
        yield from self._draft.text(text_of(delta.get("text")))
        thought = delta.get("reasoningContent")
        if isinstance(thought, dict):
            yield from self._thought(index, thought)
        call, draft = delta.get("toolUse"), self._blocks.get(index)
        if isinstance(call, dict) and isinstance(draft, CallDraft):
            self._draft.argue(draft, text_of(call.get("input")))

    def _thought(self, index: str, thought: Mapping[str, Any]) -> Iterator[Delta]:
        draft = self._blocks.get(index)
        if not isinstance(draft, ThoughtDraft):
            draft = self._blocks[index] = ThoughtDraft()
            self._draft.begin(draft)
        yield from self._draft.thought(text_of(thought.get("text")))
        own = draft.opaque.setdefault(NAME, {})
        for name, field in (
            ("signature", "signature"),
            ("redacted", "redactedContent"),
        ):
            if text_of(thought.get(field)):
                own[name] = own.get(name, "") + text_of(thought.get(field))

    def _reason(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        reason = payload.get("stopReason")
        if isinstance(reason, str):
            self._draft.ends(reason, FINISHES)
        yield from ()

    def _end(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        usage = payload.get("usage")
        if isinstance(usage, dict):
            self._draft.usage = read_usage(usage)
        self._done = True
        yield self._draft.complete()


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Normalise a usage object; cached tokens stand beside ``inputTokens``."""
    read = count_of(usage, "cacheReadInputTokens")
    written = count_of(usage, "cacheWriteInputTokens")
    return Usage(
        input_tokens=count_of(usage, "inputTokens") + read + written,
        output_tokens=count_of(usage, "outputTokens"),
        cached_tokens=read,
        cache_write_tokens=written,
    )
