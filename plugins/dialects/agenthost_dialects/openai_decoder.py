"""The OpenAI chat completions dialect, read: answers, streamed and whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

from agenthost import ChatRequest, Delta, Endpoint, Finish, Usage

from .answers import (
    CallDraft,
    ThinkTags,
    compact,
    count_of,
    objects_of,
    text_of,
)
from .decoding import EventDecoder
from .faults import stream_fault
from .likelihood import scored
from .repeats import Repeats

if TYPE_CHECKING:
    from .openai_chat import OpenAIQuirks

NAME = "openai-chat"
# What most pieces of an answer are made of.
PLAIN = frozenset({"role", "content"})
# Fields of a detail whose pieces follow one another.
JOINED = frozenset({"text", "summary", "data"})
# The second line is Together's and that of text-generation-inference.
FINISHES = {
    "stop": Finish.STOP,
    **dict.fromkeys(("eos", "eos_token", "stop_sequence"), Finish.STOP),
    "tool_calls": Finish.TOOL_USE,
    "function_call": Finish.TOOL_USE,
    "length": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "content_filter": Finish.CONTENT_BLOCKED,
}

# Reasons that are failures of the service: OpenRouter's and Mistral's, DeepSeek's.
FAILURES = ("error", "insufficient_system_resource")


class OpenAIDecoder(EventDecoder):
    """Reads one answer."""

    def __init__(
        self, request: ChatRequest, endpoint: Endpoint, quirks: OpenAIQuirks
    ) -> None:
        super().__init__(request, endpoint)
        self._quirks = quirks
        self._calls: dict[int | str, CallDraft] = {}
        self._tags = ThinkTags() if quirks.think_tags else None
        self._details: list[dict[str, Any]] | None = None
        self._repeats = Repeats(b"content")

    def feed(self, chunk: bytes) -> list[Delta]:
        """Take the next bytes of the body.

        Words alone, nearly all that comes, are gathered: a tenth of a message's time
        went into reading them one by one (``make bench``).
        """
        if self._tags is not None or not self._streamed:
            return super().feed(chunk)
        self._draft.check()
        deltas: list[Delta] = []
        words: list[str] = []
        events, at = list(self._framing.feed(chunk)), 0
        while True:
            known = [] if self._done else self._repeats.read(events, at)
            words += known
            at += len(known)
            if at == len(events):
                return [*deltas, *self._draft.text("".join(words))]
            said = self._read(events[at])
            at += 1
            if isinstance(said, str):
                words.append(said)
                continue
            deltas += self._draft.text("".join(words))
            deltas += said
            words.clear()

    def _read(self, event: bytes) -> str | Iterable[Delta]:
        """Give the words of an event that has nothing else, or its deltas."""
        if self._done or not event.startswith(b"{"):
            return self._take(event)
        payload = self._object(event)
        words = _only_words(payload)
        if words is None:
            return self._payload(payload)
        self._repeats.learn(event, words)
        return words

    def _take(self, event: bytes) -> Iterable[Delta]:
        if self._done:
            return ()
        if not event.startswith(b"{") and event.strip() == b"[DONE]":
            return self._finish()
        return self._payload(self._object(event))

    def _end_unsaid(self) -> Iterable[Delta]:
        needed = self._streamed and self._quirks.done_marker
        return super()._end_unsaid() if needed else self._finish()

    def _finish(self) -> Iterator[Delta]:
        self._done = True
        if self._tags is not None:
            yield from self._split(*self._tags.close())
        yield self._draft.complete()

    def _payload(self, payload: dict[str, Any]) -> Iterator[Delta]:
        if payload.get("error"):
            raise stream_fault(self._endpoint, payload)
        if "usage" in payload or "x_groq" in payload:
            self._usage(payload)
        self._draft.id = text_of(payload.get("id"))
        for choice in objects_of(payload.get("choices"))[:1]:
            said = choice.get("delta") or choice.get("message")
            if isinstance(said, dict):
                yield from self._said(said)
            if isinstance(told := choice.get("logprobs"), dict):
                for name in ("content", "refusal"):
                    yield from self._draft.score(scored(told.get(name)))
            self._reason(choice.get("finish_reason"))

    def _said(self, said: Mapping[str, Any]) -> Iterable[Delta]:
        if said.keys() <= PLAIN:
            return self._content(said.get("content"))
        return self._said_more(said)

    def _said_more(self, said: Mapping[str, Any]) -> Iterator[Delta]:
        for name in self._quirks.reasoning_fields:
            thought = said.get(name)
            if isinstance(thought, str) and thought:
                yield from self._draft.thought(thought)
                break
        for piece in objects_of(said.get(self._quirks.details_field)):
            self._detail(piece)
        yield from self._content(said.get("content"))
        yield from self._draft.text(text_of(said.get("refusal")))
        for position, call in enumerate(objects_of(said.get("tool_calls"))):
            self._call(call, position)

    def _content(self, content: Any) -> Iterable[Delta]:
        if isinstance(content, str):
            if self._tags is None:
                return self._draft.text(content)
            return self._split(*self._tags.feed(content))
        return chain.from_iterable(map(self._typed, objects_of(content)))

    def _typed(self, piece: Mapping[str, Any]) -> Iterator[Delta]:
        """Read content as Mistral's reasoning models write it: a list of pieces."""
        yield from self._draft.text(text_of(piece.get("text")))
        for inner in objects_of(piece.get("thinking")):
            yield from self._draft.thought(text_of(inner.get("text")))

    def _detail(self, piece: Mapping[str, Any]) -> None:
        """Gather an opaque piece of reasoning; parts of one piece are joined."""
        if self._details is None:
            self._details = []
            self._draft.latest_thought().opaque[NAME] = {"details": self._details}
        last = self._details[-1] if self._details else {}
        if any(last.get(name) != piece.get(name) for name in ("type", "index")):
            self._details.append(dict(piece))
            return
        for name, value in piece.items():
            if name in JOINED and isinstance(value, str):
                last[name] = text_of(last.get(name)) + value
            elif value is not None:
                last[name] = value

    def _split(self, thought: str, text: str) -> Iterator[Delta]:
        yield from self._draft.thought(thought)
        yield from self._draft.text(text)

    def _call(self, call: Mapping[str, Any], position: int) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        draft = self._draft_of(call, position)
        draft.id = draft.id or text_of(call.get("id"))
        draft.name = draft.name or text_of(function.get("name"))
        arguments = function.get("arguments")
        if arguments is not None:
            written = arguments if isinstance(arguments, str) else compact(arguments)
            self._draft.argue(draft, written)

    def _draft_of(self, call: Mapping[str, Any], position: int) -> CallDraft:
        """Find the call that a piece belongs to, or begin it.

        Some servers give every call the index 0; then a new id begins a new call.
        """
        index = call.get("index")
        key: int | str = index if isinstance(index, int) else position
        known = self._calls.get(key)
        call_id = text_of(call.get("id"))
        another = known and known.id and call_id and known.id != call_id
        if known is None or another:
            known = CallDraft()
            self._calls[key] = known
            self._draft.begin(known)
        return known

    def _reason(self, reason: Any) -> None:
        if reason in FAILURES:
            words = f"it ended with the reason {reason}"
            raise stream_fault(self._endpoint, {"code": reason, "message": words})
        if isinstance(reason, str) and reason:
            self._draft.ends(reason, FINISHES)

    def _usage(self, payload: Mapping[str, Any]) -> None:
        usage = payload.get("usage")
        if not isinstance(usage, dict):
            vendor = payload.get("x_groq")
            usage = vendor.get("usage") if isinstance(vendor, dict) else None
        if isinstance(usage, dict):
            self._draft.usage = read_usage(usage, self._quirks.cost_field)


def _only_words(payload: dict[str, Any]) -> str | None:
    """Give the words of an event that says nothing else."""
    try:
        (choice,) = payload["choices"]
        said = choice["delta"]
        words = said["content"]
    except (KeyError, TypeError, ValueError):
        return None
    if choice.get("finish_reason") or not said.keys() <= PLAIN:
        return None
    if choice.get("logprobs"):
        return None
    if payload.get("error") or payload.get("usage") or "x_groq" in payload:
        return None
    return words if isinstance(words, str) else None


def read_usage(usage: Mapping[str, Any], cost_field: str = "") -> Usage:
    """Normalise a usage object.

    Reasoning is part of the completion's count, unless the total says that it stands
    beside it (xAI).
    """
    prompt = count_of(usage, "prompt_tokens")
    output = count_of(usage, "completion_tokens")
    cached = count_of(usage, "prompt_tokens_details", "cached_tokens")
    thought = count_of(usage, "completion_tokens_details", "reasoning_tokens")
    if count_of(usage, "total_tokens") == prompt + output + thought:
        output += thought
    return Usage(
        input_tokens=prompt,
        output_tokens=output,
        cached_tokens=cached or count_of(usage, "prompt_cache_hit_tokens"),
        cache_write_tokens=count_of(
            usage, "prompt_tokens_details", "cache_write_tokens"
        ),
        reasoning_tokens=thought,
        cost_micro_usd=read_cost(usage, cost_field),
    )


def read_cost(usage: Mapping[str, Any], path: str) -> int | None:
    """Read a price in US dollars at a path with dots, in micro-USD."""
    if not path:
        return None
    found: Any = usage
    for step in path.split("."):
        found = found.get(step) if isinstance(found, (dict, Mapping)) else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    if not math.isfinite(found) or found < 0:
        return None
    return math.ceil(Decimal(str(found)) * 1_000_000)
