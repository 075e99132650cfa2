"""Where a text is cut into messages: between blocks, lines, words, in that order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from .pieces import PRE, Pen, Piece, Spot
from .units import continues

if TYPE_CHECKING:
    from .dialects import Dialect

Size = Callable[[str], int]
LOOK_BACK = 32


def pages(
    pieces: Sequence[Piece], dialect: Dialect, limit: int, size: Size
) -> Iterator[list[Piece]]:
    """Give the pieces of each message."""
    cut = [part for piece in pieces for part in _parts(piece, dialect, limit, size)]
    start = 0
    while start < len(cut):
        end = _end(cut, start, dialect, limit, size)
        if page := _trimmed(cut[start:end]):
            yield page
        start = end


def _end(
    pieces: Sequence[Piece], start: int, dialect: Dialect, limit: int, size: Size
) -> int:
    """Tell where a message that begins at ``start`` ends."""
    pen, used, best = Pen(dialect), 0, {1: 0, 2: 0}
    for index in range(start, len(pieces)):
        piece = pieces[index]
        used += size(pen.add(piece))
        if used + size(pen.end()) > limit:
            return max(start + 1, best[2] or best[1] or index)
        # A message that is at least half full may end at a better place.
        if piece.boundary and used * 2 >= limit:
            best[piece.boundary] = index + 1
    return len(pieces)


def _trimmed(page: list[Piece]) -> list[Piece]:
    """Take away blanks at both ends; code keeps what its first line begins with."""
    while page and page[-1].is_blank:
        page.pop()
    first = 0
    while first < len(page) and page[first].is_blank:
        in_code = any(mark.kind == PRE for mark in page[first].marks)
        if in_code and page[first].text != "\n":
            break
        first += 1
    return page[first:]


def _parts(piece: Piece, dialect: Dialect, limit: int, size: Size) -> Iterator[Piece]:
    """Cut a piece that would take much of a message: a word without an end."""
    most = max(1, limit // 8)
    text = piece.text
    if piece.raw or len(text) * 8 <= most or _cost(text, dialect, size) <= most:
        yield _affordable(piece, dialect, limit, size)
        return
    # No sign takes more than eight units, escaped.
    step, at = max(1, most // 8), 0
    while at < len(text):
        end = _whole_sign(text, at, min(len(text), at + step))
        yield _affordable(piece._replace(text=text[at:end]), dialect, limit, size)
        at = end


def _cost(text: str, dialect: Dialect, size: Size) -> int:
    return max(size(dialect.escape(text, spot)) for spot in Spot)


def _whole_sign(text: str, at: int, end: int) -> int:
    """Move a cut back so that an accent stays with its letter."""
    for place in range(end, max(at, end - LOOK_BACK), -1):
        if place >= len(text) or not continues(text[place - 1], text[place]):
            return place
    return end


def _affordable(piece: Piece, dialect: Dialect, limit: int, size: Size) -> Piece:
    """Take away marks that leave no room for words."""
    shown = [mark for mark in piece.marks if mark.kind in dialect.marks]
    cost = sum(size(dialect.open(mark) + dialect.close(mark)) for mark in shown)
    return piece._replace(marks=()) if cost * 2 > limit else piece
