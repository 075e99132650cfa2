"""Tables for people: a head, columns as wide as they need, nothing but text."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "
WIDEST = 60


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write rows below a head; a cell that is too long ends in an ellipsis.

    The last column stands as it is: nothing is behind it that would be moved, and it
    is where ids and texts are.
    """
    cells = [
        [_head(each) for each in heads],
        *([plain(c) for c in row] for row in rows),
    ]
    last = len(heads) - 1
    short = [[c if i == last else _cut(c) for i, c in enumerate(row)] for row in cells]
    widths = [max(len(row[index]) for row in short) for index in range(last)] + [0]
    return "\n".join(
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in short
    )


def plain(value: object) -> str:
    """Write a value in one line that cannot command a terminal."""
    if value is None or value == "":
        return "-"
    text = ("no", "yes")[value] if isinstance(value, bool) else str(value)
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def printable(text: str) -> str:
    """Keep the lines and tabs of a text, and nothing that commands a terminal."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


def _head(name: str) -> str:
    return name.upper()


def _cut(cell: str) -> str:
    return cell if len(cell) <= WIDEST else f"{cell[: WIDEST - 1]}…"
