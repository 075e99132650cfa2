"""Gather the pieces of one answer into deltas and its Completion."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from agenthost import (
    ChatRequest,
    Citation,
    Completion,
    Delta,
    Finish,
    JsonObject,
    Message,
    Part,
    ProviderError,
    ProviderFault,
    Reasoning,
    ReasoningChunk,
    Role,
    Text,
    TextChunk,
    ToolUse,
    Usage,
)

from .framing import malformed, read_object

OPEN_TAG = "<think>"
CLOSE_TAG = "</think>"
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
KIB = 1024
# A token has four bytes on average; a server that sends far more went astray, and what
# came is kept and sent again with every later turn.
BYTES_PER_TOKEN = 16
LEAST_ROOM, USUAL_ROOM, MOST_ROOM = 64 * KIB, 1024 * KIB, 32 * 1024 * KIB
OF_A_PART = 64
SHOWN = 200
MOST_CITED = 50
LONGEST_URL = 2_048
FOLLOWED = re.compile(r"https?://[^\s\x00-\x1f\x7f<>\"]+", re.IGNORECASE)
"""Pages are shown as links: nothing else may stand in one."""
NAMELESS = "unnamed"


@dataclass(slots=True)
class CallDraft:
    """A tool call whose pieces are still arriving; arguments are unparsed JSON."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    opaque: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ThoughtDraft:
    """Reasoning whose pieces are still arriving."""

    pieces: list[str] = field(default_factory=list)
    opaque: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class TextDraft:
    """Words that are still arriving, and how likely their tokens were."""

    pieces: list[str] = field(default_factory=list)
    logprobs: list[JsonObject] = field(default_factory=list)
    opaque: dict[str, Any] = field(default_factory=dict)


Draft = CallDraft | ThoughtDraft | TextDraft


class AnswerDraft:
    """One answer in the making: drafts in the order in which they began."""

    def __init__(self, provider: str, request: ChatRequest) -> None:
        self._provider = provider
        self._request = request
        self._drafts: list[Draft] = []
        self._room = room_for(request.max_tokens)
        self._overflowed = False
        self.size = 0
        self.finish: Finish | None = None
        self.usage = Usage()
        self.id = ""
        self.stop = ""
        self._cited: dict[str, Citation] = {}
        self._found: dict[str, Citation] = {}

    def begin(self, draft: Draft) -> None:
        """Start another part."""
        given = draft.arguments if isinstance(draft, CallDraft) else []
        self._count(OF_A_PART + sum(map(_bytes, given)))
        if not self._overflowed:
            self._drafts.append(draft)

    def text(self, piece: str) -> Iterable[Delta]:
        """Add words to the text at hand, or begin one."""
        if not piece:
            return ()
        if not self._drafts or not isinstance(self._drafts[-1], TextDraft):
            self.begin(TextDraft())
        last = self._drafts[-1]
        taken = self._grow(last.pieces, piece) if isinstance(last, TextDraft) else ""
        return (TextChunk(taken),) if taken else ()

    def thought(self, piece: str) -> Iterable[Delta]:
        """Add to the reasoning at hand, or begin one."""
        if not piece:
            return ()
        taken = self._grow(self.latest_thought().pieces, piece)
        return (ReasoningChunk(taken),) if taken else ()

    def score(self, tokens: Sequence[JsonObject]) -> Iterable[Delta]:
        """Say how likely tokens of the text at hand were; there is one for each."""
        if not tokens:
            return ()
        if not self._drafts:
            self.begin(TextDraft())
        last = self._drafts[-1] if self._drafts else None
        if not isinstance(last, TextDraft):
            return ()
        taken = tuple(tokens[: max(self.size - len(last.logprobs), 0)])
        last.logprobs.extend(taken)
        return (TextChunk("", taken),) if taken else ()

    def cite(self, page: Mapping[str, Any]) -> None:
        """Note a page that words of the answer point to."""
        _note(self._cited, page)

    def find(self, page: Mapping[str, Any]) -> None:
        """Note a page that was found for the answer; it counts where none is cited."""
        _note(self._found, page)

    def argue(self, draft: CallDraft, piece: str) -> None:
        """Add to the arguments of a call."""
        self._grow(draft.arguments, piece)

    def check(self) -> None:
        """Refuse an answer that was cut, once what there was room for is handed on.

        Raises:
            ProviderError: TOO_LONG.
        """
        if self._overflowed:
            raise ProviderError(
                ProviderFault.TOO_LONG,
                self._provider,
                f"the answer is longer than {self._room // KIB} KiB and was cut; ask "
                "for less, or raise max_tokens",
            )

    def _grow(self, pieces: list[str], piece: str) -> str:
        """Take as much of the piece as there is room for."""
        if self._overflowed:
            return ""
        left = self._room - self.size
        self._count(_bytes(piece))
        if self._overflowed:
            piece = piece.encode()[:left].decode(errors="ignore")
        pieces.append(piece)
        return piece

    def _count(self, size: int) -> None:
        self.size += size
        self._overflowed = self.size > self._room

    def ends(self, reason: str, known: Mapping[str, Finish]) -> None:
        """Take the reason to stop, by a table of those that end an answer well.

        Raises:
            ProviderError: MALFORMED: nobody knows whether that is the whole answer.
        """
        if reason not in known:
            raise malformed(self._provider, f"it stopped with {reason[:SHOWN]!r}")
        self.finish = known[reason]

    def stopped_before(self, word: str) -> None:
        """Note the word to stop before that ended it; one that was asked for."""
        self.stop = word if word in self._request.stop else ""

    def latest_thought(self) -> ThoughtDraft:
        """Find the reasoning at hand, or begin one."""
        last = self._drafts[-1] if self._drafts else None
        if not isinstance(last, ThoughtDraft):
            last = ThoughtDraft()
            self.begin(last)
        return last

    def complete(self) -> Completion:
        """Turn what came into a Completion.

        Raises:
            ProviderError: MALFORMED, no finish was named; or TOO_LONG.
        """
        self.check()
        if self.finish is None:
            raise malformed(self._provider, "it ended without a reason to stop")
        calls = [draft for draft in self._drafts if isinstance(draft, CallDraft)]
        finish = self._settle(self.finish, has_calls=bool(calls))
        parts = self._parts(keep_calls=finish is Finish.TOOL_USE)
        cut = bool(calls) and finish is Finish.LENGTH
        said = Message(Role.ASSISTANT, parts)
        return Completion(said, finish, self.usage, cut, self.id[:SHOWN], self.stop)

    def _settle(self, finish: Finish, *, has_calls: bool) -> Finish:
        # A forced call ends with "stop" at OpenAI, and always at several servers.
        if finish is Finish.STOP and has_calls:
            return Finish.TOOL_USE
        if finish is Finish.TOOL_USE and not has_calls:
            raise malformed(self._provider, "it announced a tool call and made none")
        return finish

    def _parts(self, *, keep_calls: bool) -> tuple[Part, ...]:
        ids = UniqueIds(self._request)
        parts: list[Part] = []
        for draft in self._drafts:
            if isinstance(draft, TextDraft):
                told = tuple(draft.logprobs)
                text = Text("".join(draft.pieces), logprobs=told)
                if draft.opaque:
                    text = replace(text, opaque=self._stamped(draft.opaque))
                parts.append(text)
            elif isinstance(draft, ThoughtDraft):
                opaque = self._stamped(draft.opaque)
                parts.append(Reasoning("".join(draft.pieces), opaque))
            elif keep_calls:
                parts.append(self._call(draft, ids))
        if pages := self._cited or self._found:
            _attach(parts, tuple(pages.values()))
        return tuple(parts)

    def _call(self, draft: CallDraft, ids: UniqueIds) -> ToolUse:
        name, problem = draft.name or NAMELESS, ""
        written = "".join(draft.arguments)
        try:
            arguments = read_object(self._provider, written) if written.strip() else {}
        except ProviderError:
            arguments = {}
            problem = (
                f"the arguments are not a JSON object: {written[:SHOWN]!r}; call it "
                "again with an object"
            )
        if not draft.name:
            problem = "the call names no tool; call again and name one"
        opaque = self._stamped(draft.opaque)
        return ToolUse(ids.take(draft.id), name, arguments, opaque, problem)

    def _stamped(self, opaque: Mapping[str, Any]) -> dict[str, Any]:
        """Say who made what only they may have back."""
        by = {"provider": self._provider, "model": self._request.model}
        return {dialect: {**own, **by} for dialect, own in opaque.items()}


def _attach(parts: list[Part], pages: tuple[Citation, ...]) -> None:
    """Give the last words the pages that they rest on."""
    for at, part in reversed([*enumerate(parts)]):
        if isinstance(part, Text) and part.text:
            parts[at] = replace(part, citations=pages)
            return


def _note(pages: dict[str, Citation], page: Mapping[str, Any]) -> None:
    """Keep a page that a browser may follow, the first of its address."""
    url = text_of(page.get("url"))
    fit = len(url) <= LONGEST_URL and FOLLOWED.fullmatch(url)
    if fit and len(pages) < MOST_CITED:
        title = " ".join(text_of(page.get("title")).split())[:SHOWN]
        pages.setdefault(url, Citation(url, title))


def room_for(max_tokens: int | None) -> int:
    """How many bytes an answer may have, its thoughts and calls included."""
    if max_tokens is None:
        return USUAL_ROOM
    return min(max(LEAST_ROOM, BYTES_PER_TOKEN * max_tokens), MOST_ROOM)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


class UniqueIds:
    """Ids of tool calls, unique in the whole conversation.

    Results find their calls by id, yet some providers send none, or the same again
    in every answer. A replacement is counted, not drawn, so that runs repeat.
    """

    def __init__(self, request: ChatRequest) -> None:
        self._request = request

    @cached_property
    def _taken(self) -> set[str]:
        said = self._request.messages
        return {use.id for message in said for use in message.tool_uses}

    def take(self, wanted: str) -> str:
        """Use the id itself when it is free, else one that is."""
        unique = wanted
        count = len(self._taken)
        while not unique or unique in self._taken:
            count += 1
            unique = f"{wanted or 'call'}_{count}"
        self._taken.add(unique)
        return unique


class ThinkTags:
    """Split a text that opens with ``<think>`` into reasoning and answer.

    Only a tag at the very start counts: later ones are words about tags. Line breaks
    around the tags belong to neither side.
    """

    def __init__(self) -> None:
        self._held = ""
        self._step: Callable[[], tuple[str, str]] = self._start

    def feed(self, piece: str) -> tuple[str, str]:
        """Take more text; return what is known to be reasoning, and to be answer."""
        self._held += piece
        return self._step()

    def close(self) -> tuple[str, str]:
        """Return what was held back because it might have been a tag."""
        rest, self._held = self._held, ""
        return (rest, "") if self._step == self._think else ("", rest)

    def _start(self) -> tuple[str, str]:
        text = self._held.lstrip()
        if text.startswith(OPEN_TAG):
            self._held = text[len(OPEN_TAG) :]
            return self._go(self._think)
        return ("", "") if OPEN_TAG.startswith(text) else self._go(self._answer)

    def _think(self) -> tuple[str, str]:
        thought, tag, after = self._held.partition(CLOSE_TAG)
        if tag:
            self._held = after
            _, answer = self._go(self._between)
            return thought, answer
        kept = self._overlap()
        cut = len(self._held) - kept
        thought, self._held = self._held[:cut], self._held[cut:]
        return thought, ""

    def _between(self) -> tuple[str, str]:
        self._held = self._held.lstrip("\n")
        return self._go(self._answer) if self._held else ("", "")

    def _answer(self) -> tuple[str, str]:
        answer, self._held = self._held, ""
        return "", answer

    def _go(self, step: Callable[[], tuple[str, str]]) -> tuple[str, str]:
        self._step = step
        return step()

    def _overlap(self) -> int:
        sizes = range(min(len(CLOSE_TAG) - 1, len(self._held)), 0, -1)
        return next((n for n in sizes if self._held.endswith(CLOSE_TAG[:n])), 0)


def compact(value: Any) -> str:
    """Write JSON the same way every time: no spaces, keys as they stand."""
    return _COMPACT(value)


def body_of(value: Mapping[str, Any]) -> bytes:
    """Write a request's body: byte-stable, and whole even with lone surrogates."""
    return compact(value).encode("utf-8", "replace")


def text_of(value: Any) -> str:
    """Take a value that should be a text; anything else says nothing."""
    return value if isinstance(value, str) else ""


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Take the objects of a value that should be a list of them."""
    listed = value if isinstance(value, list) else []
    return [item for item in listed if isinstance(item, dict)]


def count_of(usage: Mapping[str, Any], *path: str) -> int:
    """Read a token count at a path; 0 where there is none."""
    found: Any = usage
    for step in path:
        found = found.get(step) if isinstance(found, (dict, Mapping)) else None
    if found is None:
        return 0
    if isinstance(found, float) and math.isfinite(found):
        found = int(found)
    return max(0, found) if isinstance(found, int) else 0
