"""What a simulated provider is told to say, and what it heard."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agenthost_chat.chat import Finish, ModelSettings, Usage


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call to make; ``arguments`` is written as it stands, JSON or not."""

    name: str
    arguments: str = "{}"
    id: str = "call_1"


SMALL = Usage(input_tokens=20, output_tokens=10)


@dataclass(frozen=True, slots=True)
class Turn:
    """A healthy answer; ``redacted`` is opaque thinking, where the wire has it."""

    text: str = ""
    reasoning: str = ""
    redacted: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: Finish = Finish.STOP
    usage: Usage = SMALL


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer byte by byte.

    ``drop`` cuts the connection instead of ending the answer, ``reset`` cuts it with
    a TCP reset, which may take unread bytes with it, and ``stall`` leaves it
    unfinished until the client goes away. ``chunks`` may be endless.
    """

    chunks: Iterable[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    stall: bool = False
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as it was offered."""

    name: str
    description: str
    schema: Mapping[str, Any]


def offer(tool: Mapping[str, Any], schema: str = "parameters") -> Offer:
    """Read a tool whose schema stands in a field of its own."""
    described = tool.get("description", "")
    return Offer(tool["name"], described, tool.get(schema, {}))


Line = tuple[str, str]
"""Who, and what: user, assistant, call or result."""


def called(name: str, arguments: Mapping[str, Any] | str) -> Line:
    """Write the line of a call; arguments may be JSON."""
    taken = json.loads(arguments) if isinstance(arguments, str) else arguments
    return "call", f"{name} {json.dumps(taken, sort_keys=True)}"


@dataclass(frozen=True, slots=True)
class Heard:
    """A request in no vendor's words.

    ``results`` are pairs of a tool call's id (its name where the wire has no ids)
    and text, ``result_images`` the pictures in them, ``thoughts`` pairs of reasoning
    and its signature, ``steps`` how many messages carried tool results. ``transcript``
    is the whole conversation in its order, without thoughts and pictures, ``errors``
    the ids of results that are marked as errors, None where the wire has no such mark.
    ``settings`` are what else was asked of the answer, under the names we have for it.
    ``url`` and ``headers`` are as they came; the simulator fills them in.
    """

    path: str
    key: str | None
    raw: bytes
    body: Mapping[str, Any]
    model: str
    stream: bool
    system: str
    said: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    result_images: tuple[str, ...] = ()
    thoughts: tuple[tuple[str, str], ...] = ()
    steps: int = 0
    transcript: tuple[Line, ...] = ()
    offered: tuple[Offer, ...] = ()
    errors: tuple[str, ...] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    settings: ModelSettings = field(default_factory=ModelSettings)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class Wire(Protocol):
    """How one dialect writes what the script says."""

    @property
    def base(self) -> str:
        """The path of the base URL, such as ``/v1``."""
        ...

    @property
    def path(self) -> str:
        """The path that requests go to; ``*`` stands for any part of it."""
        ...

    @property
    def content_type(self) -> str:
        """The media type of a streamed answer."""
        ...

    def hear(self, headers: Mapping[str, str], raw: bytes) -> Heard:
        """Read a request; header names are lower case, ``:path`` is one of them."""
        ...

    def events(self, turn: Turn) -> Sequence[bytes]:
        """Write a streamed answer; the last event is the end marker."""
        ...

    def whole(self, turn: Turn) -> bytes:
        """Write an answer that does not stream."""
        ...

    def refusal(self, status: int, words: str) -> bytes:
        """Write the body of an error answer."""
        ...

    def failure(self, words: str) -> bytes:
        """Write an error event for the middle of a stream."""
        ...

    def garbage(self) -> bytes:
        """Write an event that is not JSON."""
        ...

    def told(self, usage: Usage) -> Usage:
        """Keep of a usage what this wire can say."""
        ...


def pieces(text: str, size: int = 5) -> list[str]:
    """Cut a text into what a stream would bring at a time."""
    return [text[start : start + size] for start in range(0, len(text), size)]
