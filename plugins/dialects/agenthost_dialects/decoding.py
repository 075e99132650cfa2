"""What the decoders of most dialects share: one answer, cut into events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from agenthost import ChatRequest, Delta, Endpoint

from .answers import AnswerDraft
from .framing import (
    Framing,
    JsonLines,
    ServerSentEvents,
    WholeBody,
    malformed,
    read_object,
)


class EventDecoder:
    """Reads one answer, streamed or whole; a dialect says what an event means."""

    streams: ClassVar[type[ServerSentEvents | JsonLines]] = ServerSentEvents

    def __init__(self, request: ChatRequest, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._streamed = request.stream
        framing = self.streams if request.stream else WholeBody
        self._framing: Framing = framing(endpoint.provider)
        self._draft = AnswerDraft(endpoint.provider, request)
        self._done = False

    @property
    def heard(self) -> int:
        """How many bytes of the answer came so far."""
        return self._draft.size

    def feed(self, chunk: bytes) -> list[Delta]:
        """Take the next bytes of the body."""
        self._draft.check()
        return [d for event in self._framing.feed(chunk) for d in self._take(event)]

    def close(self) -> list[Delta]:
        """End the body: emit the Completion, if it is whole."""
        self._draft.check()
        deltas = [d for event in self._framing.close() for d in self._take(event)]
        return deltas if self._done else [*deltas, *self._end_unsaid()]

    def _take(self, event: bytes) -> Iterable[Delta]:
        """Read one event."""
        raise NotImplementedError

    def _end_unsaid(self) -> Iterable[Delta]:
        """Take the end of a body whose answer has not said that it is whole."""
        raise malformed(self._endpoint.provider, "it broke off before its end")

    def _object(self, event: bytes) -> dict[str, Any]:
        return read_object(self._endpoint.provider, event)
