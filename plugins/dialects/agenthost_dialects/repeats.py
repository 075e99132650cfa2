"""Events that differ from an earlier one in one string alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

TRIES = 4


class Repeats:
    """Reads the string of such events without parsing the rest of them again.

    The string is the only value of a key. Around it every byte must be as it was, and
    it must stand there as it is, without escapes, so that a parser could read nothing
    else. A stream whose events all differ elsewhere is soon left alone.
    """

    __slots__ = ("_after", "_before", "_key", "_tries")

    def __init__(self, key: bytes) -> None:
        self._key = b'"%s"' % key
        self._before = b""
        self._after = b""
        self._tries = TRIES

    def read(self, events: Sequence[bytes], at: int) -> list[str]:
        """Give the strings of the events from ``at`` on, up to one to be parsed."""
        before, after = self._before, self._after
        strings: list[str] = []
        if not before:
            return strings
        first, last, both = len(before), -len(after), len(before) + len(after)
        for event in islice(events, at, None):
            if not (event.startswith(before) and event.endswith(after)):
                break
            raw = event[first:last]
            if b'"' in raw or b"\\" in raw or len(event) < both:
                break
            string = raw.decode("utf-8", "replace")
            if not string.isprintable() or "\ufffd" in string:
                break
            strings.append(string)
            self._tries = TRIES
        return strings

    def learn(self, event: bytes, string: str) -> None:
        """Remember what stands around the string in an event that was parsed."""
        if not self._tries:
            return
        self._tries -= 1
        raw = string.encode("utf-8", "replace")
        head, _, rest = event.partition(self._key)
        space, quote, rest = rest.partition(b'"')
        once = self._key not in rest and space.strip() == b":"
        if once and rest.startswith(raw + b'"'):
            self._before = head + self._key + space + quote
            self._after = rest[len(raw) :]
