"""Which capabilities meet a label or an origin: bit sets, remembered for repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .globs import compile_glob, literal_prefix
from .urls import compile_url, host_of, url_matches

REMEMBERED = 1024
_PATTERN_CHARACTERS = frozenset("*:{}()\\?+")
REMEMBERED_LENGTH = 2048


class LabelIndex:
    """Globs, each with the bits of the capabilities that hold it.

    Globs are found by the literal text they start with, so that a label meets only
    those that it may match, however many there are.
    """

    def __init__(self, globs: Iterable[tuple[str, int]]) -> None:
        self._exact: dict[str, int] = {}
        self._starts: dict[str, int] = {}
        self._globs: dict[str, dict[str, int]] = {}
        for glob, bit in globs:
            prefix = literal_prefix(glob)
            if prefix == glob:
                _add(self._exact, glob, bit)
            elif glob == f"{prefix}*":
                _add(self._starts, prefix, bit)
            else:
                _add(self._globs.setdefault(prefix, {}), glob, bit)
        self._exact.pop("", None)
        self._longest = max(map(len, (*self._starts, *self._globs)), default=-1)
        self.match = remembering(self._match)

    def _match(self, label: str) -> int:
        label.encode()
        bits = self._exact.get(label, 0)
        for end in range(min(len(label), self._longest) + 1):
            prefix = label[:end]
            bits |= self._starts.get(prefix, 0)
            for glob, of_glob in self._globs.get(prefix, {}).items():
                if of_glob & ~bits and compile_glob(glob).fullmatch(label):
                    bits |= of_glob
        return bits


def _add(table: dict[str, int], key: str, bit: int) -> None:
    table[key] = table.get(key, 0) | bit


class OriginIndex:
    """URL patterns, each with the bits of the capabilities that hold it.

    Patterns are found by the host they name or the domain they end in; the few whose
    host is a pattern of another kind are all tried.
    """

    def __init__(self, patterns: Iterable[tuple[str, int]]) -> None:
        self._hosts: dict[str, dict[str, int]] = {}
        for pattern, bit in patterns:
            _add(self._hosts.setdefault(_host_key(pattern), {}), pattern, bit)
        self.match = remembering(self._match)

    def _match(self, url: str) -> int:
        bits = 0
        for key in _host_keys(host_of(url)) if self._hosts else ():
            for pattern, of_pattern in self._hosts.get(key, {}).items():
                if of_pattern & ~bits and url_matches(pattern, url):
                    bits |= of_pattern
        return bits


def _host_key(pattern: str) -> str:
    host = compile_url(pattern).hostname
    domain = host.removeprefix("*")
    if _PATTERN_CHARACTERS.intersection(domain) or not domain.startswith("."):
        return "*" if _PATTERN_CHARACTERS.intersection(host) else host
    return domain


def _host_keys(host: str) -> Iterator[str]:
    yield "*"
    yield host
    dots = (at for at, character in enumerate(host) if character == ".")
    yield from (host[at:] for at in dots if at)


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
