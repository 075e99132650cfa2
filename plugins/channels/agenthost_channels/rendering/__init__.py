"""Markdown as a chat service takes it: its markup, within its limit."""

from __future__ import annotations

from dataclasses import dataclass

from .dialects import DIALECTS
from .pages import pages
from .pieces import bare, written
from .reading import read
from .units import UNITS


@dataclass(frozen=True, slots=True)
class Rendered:
    """One message: in the vendor's markup, and the same as plain text."""

    text: str
    plain: str


def rendered(markdown: str, dialect: str, limit: int, unit: str) -> list[Rendered]:
    """Write Markdown in a dialect, as messages of at most ``limit`` ``unit``s each.

    Args:
        markdown: What a model said: CommonMark with tables and ~~struck~~ words.
            HTML in it is text.
        dialect: A name of ``dialects.DIALECTS``.
        limit: The longest message, at least 64.
        unit: A name of ``units.UNITS``.

    Returns:
        The messages in order, none of them empty; no message for blank Markdown.
    """
    target, size = DIALECTS[dialect], UNITS[unit]
    found = []
    for page in pages(read(markdown, target, limit), target, limit, size):
        text, plain = written(page, target), written(page, DIALECTS["plain"])
        if text.strip():
            fits = size(plain) <= limit
            found.append(Rendered(text, plain if fits else bare(page)))
    return found
