"""An answer as a stream of events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any

from agenthost import (
    AgentHostError,
    Call,
    CutShort,
    Done,
    Failed,
    Missed,
    ProviderError,
    TextDelta,
    Thought,
    ToolEnd,
    ToolStart,
    ToolUse,
    TurnEvent,
    TurnFailed,
    TurnResult,
    Usage,
    Watcher,
)

from ..stream import cut
from .answer import (
    arguments_of,
    ending_of,
    head_of,
    redacted,
    signature_of,
    tokens_of,
    use_of,
)
from .errors import as_theirs, written

TEXT: Mapping[str, Any] = {"type": "text", "text": ""}
THINKING: Mapping[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}


class Events:
    """Writes the events of one answer.

    Words before and behind the work of the agent's own tools are blocks of their own.

    Args:
        id_: That of the answer, without what stands before it.
        model: What answers, as the client is told.
        told: Gives calls with the ids that the client is told; their own by default.
    """

    def __init__(
        self,
        id_: str,
        model: str,
        told: Callable[[Sequence[ToolUse]], Sequence[ToolUse]] | None = None,
    ) -> None:
        self._id = id_
        self._model = model
        self._told = told
        self._index = -1
        self._open: Mapping[str, Any] | None = None
        self._sealed = False

    def begin(self) -> bytes:
        """Write what comes before the first word."""
        message = head_of(self._id, self._model) | {
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": tokens_of(Usage()),
        }
        start = _frame("message_start", {"message": message})
        return (start + _frame("ping", {})).encode()

    def of(self, events: Iterable[TurnEvent]) -> bytes:
        """Write what some events say."""
        return b"".join([frame for event in events if (frame := self.one(event))])

    def one(self, event: TurnEvent) -> bytes:
        """Write what an event says, if it says anything to this client."""
        if isinstance(event, TextDelta):
            return self._words(event.text)
        if isinstance(event, Thought):
            said = {"type": "thinking_delta", "thinking": event.text}
            return self._more(THINKING, said).encode()
        if isinstance(event, ToolStart | ToolEnd):
            return self._close().encode()
        if isinstance(event, Done):
            return self.end(event.result)
        if isinstance(event, Failed) and isinstance(event.error, CutShort):
            return self.end(event.so_far)
        return b""

    def seal(self, own: Mapping[str, Any]) -> bytes:
        """Write what a thought's vendor wants back with it, and end it."""
        if "data" in own:
            return (self._start(redacted(own["data"])) + self._close()).encode()
        mark = {"type": "signature_delta", "signature": own["signature"]}
        said = self._more(THINKING, mark)
        self._sealed = True
        return (said + self._close()).encode()

    def cite(self, citations: Sequence[Mapping[str, Any]]) -> bytes:
        """Write where the words at hand come from, and end their block."""
        deltas = ({"type": "citations_delta", "citation": each} for each in citations)
        said = [self._more(TEXT, delta) for delta in deltas]
        return "".join((*said, self._close())).encode()

    def end(self, result: TurnResult) -> bytes:
        """Write the calls that are the client's, how it ended, and what it took."""
        frames = [self._close()]
        for call in self._told(result.calls) if self._told else result.calls:
            text = arguments_of(call)
            said = {"type": "input_json_delta", "partial_json": text}
            frames += [self._more(use_of(call), said), self._close()]
        usage = tokens_of(result.usage)
        frames.append(
            _frame("message_delta", {"delta": ending_of(result), "usage": usage})
        )
        frames.append(_frame("message_stop", {}))
        return "".join(frames).encode()

    def _words(self, text: str) -> bytes:
        if not text:
            return b""
        return self._more(TEXT, {"type": "text_delta", "text": text}).encode()

    def _more(self, block: Mapping[str, Any], delta: Mapping[str, Any]) -> str:
        """Add to a block, which is begun unless it is at hand."""
        begun = "" if self._open is block else self._start(block)
        return begun + self._frame("content_block_delta", {"delta": delta})

    def _start(self, block: Mapping[str, Any]) -> str:
        closed = self._close()
        self._open = block
        self._index += 1
        return closed + self._frame("content_block_start", {"content_block": block})

    def _close(self) -> str:
        block, self._open = self._open, None
        if block is None:
            return ""
        signed = ""
        if block is THINKING and not self._sealed:
            mark = {"type": "signature_delta", "signature": signature_of(self._id)}
            signed = self._frame("content_block_delta", {"delta": mark})
        self._sealed = False
        return signed + self._frame("content_block_stop", {})

    def _frame(self, name: str, told: Mapping[str, Any]) -> str:
        return _frame(name, {"index": self._index, **told})


async def frames_of(
    call: Call, watcher: Watcher, told: Sequence[TurnEvent], events: Events
) -> AsyncGenerator[bytes, None]:
    """Write what was told, and what is told from now on, until the end."""
    yield events.begin() + events.of(told)
    if told and isinstance(told[-1], Done | Failed):
        return
    async for event in watcher.events():
        if isinstance(event, Missed):
            lost = f"{event.count} events were lost: they were not read fast enough"
            yield failure(call, TurnFailed(lost))
            return
        if isinstance(event, Failed) and not cut(event):
            yield failure(call, event.error)
        elif frame := events.one(event):
            yield frame


def failure(call: Call, error: AgentHostError) -> bytes:
    """Write that the answer broke off: its message does not stop."""
    if isinstance(error, ProviderError):
        error = as_theirs(error)
    told = {**written(call.host, error), "request_id": call.request_id}
    return _frame("error", told).encode()


def _frame(name: str, told: Mapping[str, Any]) -> str:
    said = json.dumps({"type": name, **told}, separators=(",", ":"))
    return f"event: {name}\ndata: {said}\n\n"
