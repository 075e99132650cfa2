"""Tables where a vendor has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

WIDEST = 60


def rows(tokens: Sequence[Token]) -> list[list[Token]]:
    """Give the cells of each row, the header's first."""
    found: list[list[Token]] = []
    for token in tokens:
        if token.type == "tr_open":
            found.append([])
        elif token.type == "inline":
            found[-1].append(token)
    return found


def laid_out(cells: Sequence[Sequence[Token]]) -> str | None:
    """Align the columns; None for a table that is too wide for a small screen."""
    texts = [[_words(cell) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    if sum(widths) + 3 * (len(widths) - 1) > WIDEST:
        return None
    lines = [_line(row, widths) for row in texts]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(lines)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = zip(row, widths, strict=True)
    return " | ".join(text.ljust(width) for text, width in cells).rstrip()


def _words(cell: Token) -> str:
    """Give what is seen of a cell; the addresses of its links follow their words."""
    found: list[str] = []
    address = ""
    for token in cell.children or []:
        if token.type == "link_open":
            address = str(token.attrGet("href") or "")
        elif token.type == "link_close":
            found.append(f" ({address})")
        elif token.type == "image":
            found.append(f"{token.content} ({token.attrGet('src')})")
        else:
            found.append(token.content)
    return " ".join("".join(found).split())
