"""An answer as a completion, or as a stream of chunks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from agenthost import (
    AgentHostError,
    CutShort,
    Done,
    Failed,
    Finish,
    Host,
    JsonObject,
    Message,
    Missed,
    Text,
    TextDelta,
    Thought,
    ToolEnd,
    ToolUse,
    TurnEvent,
    TurnFailed,
    TurnResult,
    Usage,
    Watcher,
)

from .errors import written
from .tools import call_of

PATIENCE = 5.0
"""Seconds in which what fails is still answered with the status of its error."""
BETWEEN = "\n\n"
"""Stands between words before and behind the work of the agent's own tools."""
LAST = b"data: [DONE]\n\n"
_MATTERS = (TextDelta, Thought, Done, Failed)


def tokens_of(usage: Usage) -> dict[str, Any]:
    """Write what an answer took."""
    told: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_tokens:
        told["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.reasoning_tokens:
        details = {"reasoning_tokens": usage.reasoning_tokens}
        told["completion_tokens_details"] = details
    return told


def logprobs_of(messages: Iterable[Message]) -> Sequence[JsonObject]:
    """Give how likely the tokens of what was said were, as far as that is known."""
    texts = (part for each in messages for part in each.parts if isinstance(part, Text))
    return [token for text in texts for token in text.logprobs]


def completion_of(
    head: Mapping[str, Any],
    result: TurnResult,
    calls: Sequence[ToolUse],
    logprobs: Sequence[JsonObject] | None = None,
) -> dict[str, Any]:
    """Write a whole answer.

    Args:
        head: What it says of itself.
        result: What came of it.
        calls: As the client is told them.
        logprobs: Of its tokens; None where they are not asked for.
    """
    message: dict[str, Any] = {"role": "assistant", "content": result.text}
    if calls:
        message["content"] = result.text or None
        message["tool_calls"] = [call_of(use) for use in calls]
    finish = result.finish or Finish.STOP
    choice: dict[str, Any] = {"index": 0, "message": message}
    if logprobs is not None:
        choice["logprobs"] = _scores(logprobs)
    choice["finish_reason"] = finish.value
    return {
        **head,
        "object": "chat.completion",
        "choices": [choice],
        "usage": tokens_of(result.usage),
    }


def _scores(logprobs: Sequence[JsonObject]) -> dict[str, Any] | None:
    return {"content": logprobs, "refusal": None} if logprobs else None


class Chunks:
    """Writes the chunks of one answer; what is alike in all is written once.

    Args:
        head: What each says of the answer: its id, when it began, its model.
        told: Gives calls with the ids that the client is told; their own by default.
        usage: Whether the client asks for a chunk of its own that says what it took;
            None when it says nothing of it.
        logprobs: Gives, at the end, how likely all tokens were, where that is told
            there; words that bring it with them tell it themselves.
    """

    def __init__(
        self,
        head: Mapping[str, Any],
        told: Callable[[Iterable[ToolUse]], Sequence[ToolUse]] = tuple,
        *,
        usage: bool | None,
        logprobs: Callable[[], Sequence[JsonObject]] | None = None,
    ) -> None:
        self._told = told
        self._logprobs = logprobs
        known = {**head, "object": "chat.completion.chunk"}
        self._alone = usage
        self._begin = f"data: {json.dumps(known)[:-1]}"
        self._open = f'{self._begin}, "choices": [{{"index": 0, "delta": '
        self._close = ', "usage": null}\n\n' if usage else "}\n\n"
        self._begun = False
        self._broken = False

    def of(self, events: Iterable[TurnEvent]) -> bytes:
        """Write what some events say."""
        return b"".join([frame for event in events if (frame := self.one(event))])

    def one(self, event: TurnEvent) -> bytes:
        """Write what an event says, if it says anything to this client."""
        if isinstance(event, TextDelta):
            return self.words(event.text)
        if isinstance(event, ToolEnd):
            self._broken = self._begun
        elif isinstance(event, Done):
            return self.end(event.result)
        elif isinstance(event, Failed) and isinstance(event.error, CutShort):
            return self.end(event.so_far)
        return b""

    def end(self, result: TurnResult) -> bytes:
        """Write the calls that are the client's, how it ended, and what it took."""
        finish = result.finish or Finish.STOP
        calls = self._told(result.calls)
        frames = [] if self._begun else [self._first(calls)]
        for index, use in enumerate(calls):
            frames.append(
                self._delta({"tool_calls": [{"index": index, **call_of(use)}]})
            )
        tokens = json.dumps(tokens_of(result.usage))
        scores = "" if self._logprobs is None else _written(self._logprobs())
        ended = f'{self._open}{{}}{scores}, "finish_reason": "{finish.value}"}}]'
        if self._alone is None:
            frames.append(f'{ended}, "usage": {tokens}}}\n\n')
        else:
            frames.append(ended + self._close)
        if self._alone:
            frames.append(f'{self._begin}, "choices": [], "usage": {tokens}}}\n\n')
        return "".join(frames).encode() + LAST

    def _first(self, calls: Sequence[ToolUse]) -> str:
        return self._delta({"role": "assistant", "content": None if calls else ""})

    def words(self, text: str, logprobs: Sequence[JsonObject] = ()) -> bytes:
        """Write more of the answer, and how likely its tokens were."""
        if self._broken:
            text, self._broken = BETWEEN + text, False
        if self._begun:
            return self._delta({"content": text}, logprobs).encode()
        self._begun = True
        first = {"role": "assistant", "content": text}
        return self._delta(first, logprobs).encode()

    def _delta(
        self, delta: Mapping[str, Any], logprobs: Sequence[JsonObject] = ()
    ) -> str:
        said = json.dumps(delta)
        if logprobs:
            said += _written(logprobs)
        return f'{self._open}{said}, "finish_reason": null}}]{self._close}'


def _written(logprobs: Sequence[JsonObject]) -> str:
    return f', "logprobs": {json.dumps(_scores(logprobs))}' if logprobs else ""


async def begun(watcher: Watcher) -> Sequence[TurnEvent]:
    """Wait a while for the first word; give what was told by then.

    Raises:
        AgentHostError: The turn failed before it.
    """
    told: list[TurnEvent] = []
    # What a reader that breaks off has not read, the next one of the watcher reads.
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE), aclosing(watcher.events()) as events:  # type: ignore[type-var]  # reason: it is a generator
            async for event in events:
                told.append(event)
                if isinstance(event, _MATTERS):
                    break
    if told and isinstance(last := told[-1], Failed) and not cut(last):
        raise last.error
    return told


async def frames_of(
    host: Host, watcher: Watcher, told: Sequence[TurnEvent], chunks: Chunks
) -> AsyncGenerator[bytes, None]:
    """Write what was told, and what is told from now on, until the end."""
    if first := chunks.of(told):
        yield first
    if told and isinstance(told[-1], Done | Failed):
        return
    async for event in watcher.events():
        if isinstance(event, Missed):
            lost = f"{event.count} events were lost: they were not read fast enough"
            yield failure(host, TurnFailed(lost))
            return
        if isinstance(event, Failed) and not cut(event):
            yield failure(host, event.error)
        elif frame := chunks.one(event):
            yield frame


def failure(host: Host, error: AgentHostError) -> bytes:
    """Write that the answer broke off: it has no last chunk."""
    return f"data: {json.dumps(written(host, error))}\n\n".encode()


def cut(event: Failed) -> bool:
    """Tell whether the answer only ended too early."""
    return isinstance(event.error, CutShort)
