"""Decide whether everything one glob matches is matched by another.

The globs are those of ``fnmatch``. A child that could match a single name more than its
parent is told apart by walking both as automata at once; when the walk grows too large
the answer is no, so that a doubt never grants anything.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

_STAR = "*"
_LONGEST = 256
_STATES = 4_000
_LAST = 0x10FFFF

Tokens = tuple[str, ...]


def contains(parent: str, child: str) -> bool:
    """Tell whether ``parent`` matches every name that ``child`` matches."""
    if parent in (child, _STAR):
        return True
    # What is remembered must not be long.
    return max(len(parent), len(child)) <= _LONGEST and _holds(parent, child)


@lru_cache(maxsize=4096)
def _holds(parent: str, child: str) -> bool:
    return _walk(_tokens(parent), _tokens(child), _letters(parent + child))


def _walk(parent: Tokens, child: Tokens, letters: list[str]) -> bool:
    start = (0, _closed(parent, {0}))
    seen, todo = {start}, [start]
    while todo:
        place, above = todo.pop()
        if place == len(child) and len(parent) not in above:
            return False
        for state in _next(parent, child, place, above, letters):
            if state not in seen:
                seen.add(state)
                todo.append(state)
        if len(seen) > _STATES:
            return False
    return True


def _next(
    parent: Tokens,
    child: Tokens,
    place: int,
    above: frozenset[int],
    letters: list[str],
) -> set[tuple[int, frozenset[int]]]:
    if place == len(child):
        return set()
    token = child[place]
    after = place if token == _STAR else place + 1
    found = {
        (after, _stepped(parent, above, letter))
        for letter in letters
        if _fits(letter, token)
    }
    if token == _STAR:
        found.add((place + 1, above))
    return found


def _stepped(parent: Tokens, above: frozenset[int], letter: str) -> frozenset[int]:
    reached = set()
    for place in above:
        if place < len(parent) and _fits(letter, parent[place]):
            reached.add(place if parent[place] == _STAR else place + 1)
    return _closed(parent, reached)


def _fits(letter: str, token: str) -> bool:
    # fnmatch compiles an expression of each token, which most need not.
    if token.startswith("["):
        return fnmatchcase(letter, token)
    return token in {letter, "?", _STAR}


def _closed(parent: Tokens, places: set[int]) -> frozenset[int]:
    """Add the places behind stars, since a star may match nothing."""
    reached = set(places)
    for place in places:
        behind = place
        while behind < len(parent) and parent[behind] == _STAR:
            behind += 1
            reached.add(behind)
    return frozenset(reached)


def _tokens(pattern: str) -> Tokens:
    """Split a pattern into letters, ``?``, ``*`` and classes, as fnmatch reads it."""
    found: list[str] = []
    place = 0
    while place < len(pattern):
        end = _class_end(pattern, place) if pattern[place] == "[" else place
        token = pattern[place : end + 1]
        if not (token == _STAR and found and found[-1] == _STAR):
            found.append(token)
        place = end + 1
    return tuple(found)


def _class_end(pattern: str, start: int) -> int:
    """Return where the class ends; a bracket that is never closed is a letter."""
    place = start + 1
    if pattern[place : place + 1] == "!":
        place += 1
    return max(pattern.find("]", place + 1), start)


def _letters(text: str) -> list[str]:
    """One letter of every kind that the patterns can tell apart."""
    codes = {ord(letter) + offset for letter in text for offset in (-1, 0, 1)}
    return [chr(code) for code in sorted(codes) if 0 <= code <= _LAST]
