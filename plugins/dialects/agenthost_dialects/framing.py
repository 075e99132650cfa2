"""Cut a body into lines, server-sent events and JSON documents as bytes arrive."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agenthost import ProviderError, ProviderFault
from pydantic_core import from_json

MAX_LINE = 8 * 1024 * 1024
MAX_BODY = 64 * 1024 * 1024


def malformed(provider: str, problem: str) -> ProviderError:
    """Make the error of an answer that cannot be read."""
    return ProviderError(
        ProviderFault.MALFORMED, provider, f"sent an unreadable answer: {problem}"
    )


def read_object(provider: str, text: bytes | str) -> dict[str, Any]:
    """Parse one JSON object.

    Raises:
        ProviderError: MALFORMED, the text is no JSON or no object.
    """
    try:
        value = from_json(text)
    except ValueError:
        value = _leniently_read(provider, text)
    if not isinstance(value, dict):
        raise malformed(provider, "an event is not a JSON object")
    return value


def _leniently_read(provider: str, text: bytes | str) -> Any:
    """Read JSON with half a surrogate pair, an error above; models do send them."""
    try:
        return _unicode(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise malformed(provider, "an event is not JSON") from error


def _unicode(value: Any) -> Any:
    """Put U+FFFD where half a pair stands, which no store and no wire can take."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_unicode(item) for item in value]
    if isinstance(value, dict):
        return {_unicode(name): _unicode(item) for name, item in value.items()}
    return value


class Lines:
    r"""Whole lines of a body whose chunks break anywhere; ends are \n, \r\n or \r."""

    def __init__(self, provider: str, limit: int = MAX_LINE) -> None:
        self._provider = provider
        self._limit = limit
        self._rest = bytearray()
        self._after_return = False

    @property
    def begun(self) -> bool:
        """Whether a line is open, or its end may go on."""
        return bool(self._rest) or self._after_return

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take more bytes; yield the lines that they complete, without their ends.

        Raises:
            ProviderError: MALFORMED, a line is longer than the limit.
        """
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_return = False
        if not chunk:
            return
        self._after_return = chunk.endswith(b"\r")
        for piece in chunk.splitlines(keepends=True):
            if len(self._rest) + len(piece) > self._limit:
                raise malformed(self._provider, "a line is longer than 8 MiB")
            ended = piece.endswith((b"\n", b"\r"))
            if ended and not self._rest:
                yield piece.rstrip(b"\r\n")
                continue
            self._rest += piece
            if ended:
                yield self.rest()

    def rest(self) -> bytes:
        """Hand out what has been gathered of the line at hand."""
        line = bytes(self._rest).rstrip(b"\r\n")
        self._rest.clear()
        return line


@dataclass(slots=True)
class NamedEvents:
    """Names and data of server-sent events; comments and ids are skipped.

    Source: WHATWG HTML, section 9.2.6, interpreting an event stream. Unlike a browser
    it hands out a last event that no blank line follows: servers forget that line.
    """

    provider: str
    _lines: Lines = field(init=False)
    _name: str = ""
    _data: list[bytes] = field(default_factory=list)
    _size: int = 0

    def __post_init__(self) -> None:
        self._lines = Lines(self.provider)

    @property
    def between(self) -> bool:
        """Whether nothing of an event has been taken yet."""
        return not (self._name or self._data or self._lines.begun)

    def feed(self, chunk: bytes) -> Iterator[tuple[str, bytes]]:
        """Take more bytes; yield the events that they complete."""
        for line in self._lines.feed(chunk):
            if line:
                self._take(line)
            elif self._data:
                yield self._event()

    def close(self) -> Iterator[tuple[str, bytes]]:
        """Yield an event that was left open."""
        line = self._lines.rest()
        if line:
            self._take(line)
        if self._data:
            yield self._event()

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        if name != b"data":
            return
        self._size += len(value)
        if self._size > MAX_LINE:
            raise malformed(self.provider, "an event is longer than 8 MiB")
        self._data.append(value.removeprefix(b" "))

    def _event(self) -> tuple[str, bytes]:
        event = self._name, b"\n".join(self._data)
        self._name = ""
        self._data.clear()
        self._size = 0
        return event


def _plain_events(chunk: bytes) -> list[bytes]:
    """Take whole events of one data line each apart; none when some is not like that.

    Nearly all that models send is so, and reading it line by line takes twice as long.
    """
    if not (chunk.startswith(b"data: ") and chunk.endswith(b"\n\n")):
        return []
    events = chunk[6:-2].split(b"\n\ndata: ")
    only = chunk.count(b"\n") == 2 * len(events) and b"\r" not in chunk
    return events if only and len(chunk) <= MAX_LINE else []


class ServerSentEvents:
    """Data of server-sent events, whatever their names."""

    def __init__(self, provider: str) -> None:
        self._events = NamedEvents(provider)

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Take more bytes; give the data of the events that they complete."""
        if self._events.between and (plain := _plain_events(chunk)):
            return plain
        return (data for _, data in self._events.feed(chunk))

    def close(self) -> Iterator[bytes]:
        """Yield the data of an event that was left open."""
        return (data for _, data in self._events.close())


@dataclass(slots=True)
class JsonLines:
    """JSON documents, one a line; blank lines are skipped."""

    provider: str
    _lines: Lines = field(init=False)

    def __post_init__(self) -> None:
        self._lines = Lines(self.provider)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take more bytes; yield the documents that they complete."""
        return (line for line in self._lines.feed(chunk) if line.strip())

    def close(self) -> Iterator[bytes]:
        """Yield a last document that no line end follows."""
        line = self._lines.rest()
        if line.strip():
            yield line


@dataclass(slots=True)
class WholeBody:
    """One JSON document: the answer of a call that does not stream."""

    provider: str
    _body: bytearray = field(default_factory=bytearray)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take more bytes; nothing is complete before the end."""
        if len(self._body) + len(chunk) > MAX_BODY:
            raise malformed(self.provider, "the body is longer than 64 MiB")
        self._body += chunk
        return iter(())

    def close(self) -> Iterator[bytes]:
        """Yield the body.

        Raises:
            ProviderError: MALFORMED, there is none.
        """
        if not self._body.strip():
            raise malformed(self.provider, "the body is empty")
        yield bytes(self._body)


Framing = ServerSentEvents | JsonLines | WholeBody
