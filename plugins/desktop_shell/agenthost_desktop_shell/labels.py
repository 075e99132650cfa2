"""Which capabilities meet a label or an origin: bit sets, remembered for repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .globs import compile_glob, is_literal
from .urls import url_matches

REMEMBERED = 1024
REMEMBERED_LENGTH = 2048


class LabelIndex:
    """Globs, each with the bits of the capabilities that hold it."""

    def __init__(self, globs: Iterable[tuple[str, int]]) -> None:
        self._exact: dict[str, int] = {}
        self._globs: dict[str, int] = {}
        for glob, bit in globs:
            side = self._exact if is_literal(glob) else self._globs
            if glob:
                side[glob] = side.get(glob, 0) | bit
        self.match = remembering(self._match)

    def _match(self, label: str) -> int:
        bits = self._exact.get(label, 0)
        for glob, of_glob in self._globs.items():
            if of_glob & ~bits and compile_glob(glob).fullmatch(label):
                bits |= of_glob
        return bits


class OriginIndex:
    """URL patterns, each with the bits of the capabilities that hold it."""

    def __init__(self, patterns: Iterable[tuple[str, int]]) -> None:
        self._patterns: dict[str, int] = {}
        for pattern, bit in patterns:
            self._patterns[pattern] = self._patterns.get(pattern, 0) | bit
        self.match = remembering(self._match)

    def _match(self, url: str) -> int:
        bits = 0
        for pattern, of_pattern in self._patterns.items():
            if of_pattern & ~bits and url_matches(pattern, url):
                bits |= of_pattern
        return bits


def remembering(find: Callable[[str], int]) -> Callable[[str], int]:
    """Keep the latest answers: a shell asks for few labels and origins, and often."""
    known: dict[str, int] = {}

    def match(text: str) -> int:
        bits = known.get(text)
        if bits is None:
            bits = find(text)
            if len(text) <= REMEMBERED_LENGTH:
                if len(known) >= REMEMBERED:
                    known.pop(next(iter(known)))
                known[text] = bits
        return bits

    return match
