"""Read a prediction's output: server-sent events, or a finished prediction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenthost import ChatRequest, Delta, Endpoint, Finish, Usage

from .answers import AnswerDraft, ThinkTags, count_of, text_of
from .faults import stream_fault
from .framing import NamedEvents, malformed, read_object

ENDS = frozenset({"succeeded", "failed", "canceled", "aborted"})


def ended(prediction: Mapping[str, Any]) -> bool:
    """Tell whether the service has stopped working on it."""
    return str(prediction.get("status")) in ENDS


class PredictionDecoder:
    """Reads one answer."""

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._events = NamedEvents(endpoint.provider)
        self._draft = AnswerDraft(endpoint.provider, request)
        self._tags = ThinkTags()
        self._done = False

    @property
    def heard(self) -> int:
        """How many bytes of the answer came so far."""
        return self._draft.size

    def feed(self, chunk: bytes) -> list[Delta]:
        """Take the next bytes of a stream."""
        self._draft.check()
        return [d for event in self._events.feed(chunk) for d in self._take(*event)]

    def close(self) -> list[Delta]:
        """End a stream, which must have said that it is done."""
        self._draft.check()
        deltas = [d for event in self._events.close() for d in self._take(*event)]
        if not self._done:
            raise malformed(self._endpoint.provider, "it broke off before its end")
        return deltas

    def whole(self, prediction: Mapping[str, Any]) -> Iterator[Delta]:
        """Read the output of a finished prediction: a text or a list of texts."""
        output = prediction.get("output")
        pieces = output if isinstance(output, list) else [output]
        for piece in pieces:
            yield from self._split(*self._tags.feed(text_of(piece)))
        yield from self.finish(prediction)

    def finish(self, prediction: Mapping[str, Any]) -> Iterator[Delta]:
        """Take the outcome and the counts of a finished prediction."""
        status = prediction.get("status")
        if status != "succeeded":
            words = text_of(prediction.get("error")) or f"the prediction is {status!r}"
            raise stream_fault(self._endpoint, {"message": words})
        yield from self._split(*self._tags.close())
        self._draft.finish = Finish.STOP
        self._draft.usage = read_usage(prediction)
        yield self._draft.complete()

    def _take(self, name: str, data: bytes) -> Iterable[Delta]:
        if name == "output":
            return self._split(*self._tags.feed(data.decode("utf-8", "replace")))
        if name == "error":
            raise stream_fault(self._endpoint, self._words(data))
        if name == "done":
            self._done = True
            self._reason(data)
        return ()

    def _words(self, data: bytes) -> dict[str, Any]:
        words = data.decode("utf-8", "replace")
        try:
            told = json.loads(words)
        except (ValueError, RecursionError):
            told = None
        return told if isinstance(told, dict) else {"message": words}

    def _reason(self, data: bytes) -> None:
        told = read_object(self._endpoint.provider, data) if data.strip() else {}
        reason = told.get("reason")
        if reason == "error":
            raise stream_fault(self._endpoint, {"message": "the prediction failed"})
        if reason:
            raise malformed(self._endpoint.provider, f"it ended with {reason!r:.200}")

    def _split(self, thought: str, text: str) -> Iterator[Delta]:
        yield from self._draft.thought(thought)
        yield from self._draft.text(text)


def read_usage(prediction: Mapping[str, Any]) -> Usage:
    """Read the counts of a finished prediction."""
    return Usage(
        input_tokens=count_of(prediction, "metrics", "input_token_count"),
        output_tokens=count_of(prediction, "metrics", "output_token_count"),
    )
