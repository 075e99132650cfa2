"""A text as pieces: words, blanks and line breaks, each with its marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .dialects import Dialect

QUOTE, PRE = "quote", "pre"
BLOCKS = {QUOTE, PRE}


class Spot(Enum):
    """Where a text stands: in code, at the start of a line, or elsewhere."""

    CODE = auto()
    START = auto()
    TEXT = auto()


class Mark(NamedTuple):
    """How a piece is shown: ``detail`` is an address, a language or a fence."""

    kind: str
    detail: str = ""
    fence: str = ""


Marks = tuple[Mark, ...]


class Piece(NamedTuple):
    """A word, a blank, or one line break; ``raw`` is markup already.

    ``boundary`` is how good it is to begin a new message after it: 2 between blocks, 1
    between lines, 0 between words.
    """

    text: str
    marks: Marks = ()
    raw: bool = False
    boundary: int = 0

    @property
    def is_blank(self) -> bool:
        """Tell whether nothing of it can be seen."""
        return not self.raw and self.text.isspace()


class Pen:
    """Writes pieces in a dialect, and knows what it has left open."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._open: Marks = ()
        self._at_start = True
        self._no_word_yet = True

    def add(self, piece: Piece) -> str:
        """Write one more piece."""
        dialect = self._dialect
        marks = tuple(each for each in piece.marks if each.kind in dialect.marks)
        quoted = dialect.quote and any(each.kind == QUOTE for each in piece.marks)
        prefix = dialect.quote if quoted and self._at_start else ""
        change = self._change(marks, prefix)
        in_pre = any(each.kind == PRE for each in piece.marks)
        if piece.text == "\n":
            self._at_start = self._no_word_yet = True
            return change + ("\n" if in_pre else dialect.line_break)
        text = (
            piece.text if piece.raw else dialect.escape(piece.text, self._spot(piece))
        )
        self._at_start = False
        # What follows a bullet may be read as one more bullet, or as a rule.
        self._no_word_yet &= piece.raw or piece.is_blank
        return change + text

    def _spot(self, piece: Piece) -> Spot:
        if any(each.kind in {PRE, "code"} for each in piece.marks):
            return Spot.CODE
        bare = all(each.kind == QUOTE for each in piece.marks)
        return Spot.START if self._no_word_yet and bare else Spot.TEXT

    def _change(self, marks: Marks, prefix: str) -> str:
        same = 0
        for ours, theirs in zip(self._open, marks, strict=False):
            if ours != theirs:
                break
            same += 1
        closed = "".join(map(self._dialect.close, reversed(self._open[same:])))
        opened = "".join(map(self._dialect.open, marks[same:]))
        self._open = marks
        return closed + prefix + opened

    def end(self) -> str:
        """Close what is open."""
        return "".join(map(self._dialect.close, reversed(self._open)))


def written(pieces: Iterable[Piece], dialect: Dialect) -> str:
    """Write pieces as one message."""
    pen = Pen(dialect)
    return "".join([pen.add(piece) for piece in pieces]) + pen.end()


def bare(pieces: Sequence[Piece]) -> str:
    """Give the words alone."""
    return "".join(piece.text for piece in pieces)
