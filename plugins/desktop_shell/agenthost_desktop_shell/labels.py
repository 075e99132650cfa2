"""Which capabilities meet a label or an origin: bit sets, remembered for repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .globs import compile_glob, literal_prefix
from .urls import compile_url

REMEMBERED = 1024
REMEMBERED_LENGTH = 2048


def label_index(globs: Iterable[tuple[str, int]]) -> Callable[[str], int]:
    """Look up the bits of the globs that match a label, compiled when they may.

    The answer raises UnicodeEncodeError for a label that is not Unicode text.
    """
    literal: dict[str, int] = {}
    others: dict[str, list[tuple[str, int]]] = {}
    for glob, bits in _together(globs).items():
        start = literal_prefix(glob)
        if start == glob:
            literal[glob] = bits
        else:
            others.setdefault(start, []).append((glob, bits))
    # The empty glob matches nothing, the empty label included.
    literal.pop("", None)
    lengths = sorted(set(map(len, others)))

    def match(label: str) -> int:
        label.encode()
        near = (each for size in lengths for each in others.get(label[:size], ()))
        met = (bits for glob, bits in near if compile_glob(glob).fullmatch(label))
        return literal.get(label, 0) | _union(met)

    return remembering(match)


def origin_index(patterns: Iterable[tuple[str, int]]) -> Callable[[str], int]:
    """Look up the bits of the patterns that accept a URL, compiled already."""
    known = [(compile_url(p).test, bits) for p, bits in _together(patterns).items()]
    return remembering(lambda url: _union(bits for test, bits in known if test(url)))


def _together(patterns: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Join the bits of each pattern."""
    known: dict[str, int] = {}
    for pattern, bits in patterns:
        known[pattern] = known.get(pattern, 0) | bits
    return known


def _union(found: Iterable[int]) -> int:
    every = 0
    for bits in found:
        every |= bits
    return every


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
