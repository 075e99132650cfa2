"""Text out of bytes and out of tags, in time that grows with the length and no faster.

Each character is looked at a fixed number of times: no pattern here can begin anew at
a place that another one has passed, and none can fail after more than a few characters.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

LONGEST_PAGE = 500_000
"""Characters of a page that are looked at; ten times what is shown."""

LAST_RESORT = 200_000
"""Bytes that are looked at in a thread of the daemon: it takes time from the loop."""

HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe"})
WITHIN_A_LINE = frozenset(
    {"a", "abbr", "b", "code", "em", "font", "i", "kbd", "mark", "q", "s", "small"}
    | {"span", "strong", "sub", "sup", "tt", "u", "var"}
)

_TAG = re.compile(r"<(/?[A-Za-z][A-Za-z0-9]*|[!?])[^<>]*>?")
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z0-9]{1,32});")


def text_of(document: bytes, *, charset: str, limit: int) -> str:
    """Decode a document and cut it to so many characters."""
    return cut(decoded(document, charset), limit)


def words_of(document: bytes, *, charset: str, limit: int) -> str:
    """Return words of the beginning of a page that nothing better could read."""
    return cut(plain_text(decoded(document[:LAST_RESORT], charset)), limit)


def decoded(document: bytes, charset: str) -> str:
    """Decode, marking what does not fit; an unknown character set is UTF-8."""
    try:
        return document.decode(charset or "utf-8", "replace")
    except (LookupError, UnicodeError):
        return document.decode("utf-8", "replace")


def cut(text: str, limit: int) -> str:
    """Keep the beginning, and say how much there was."""
    length = len(text)
    return (
        text if length <= limit else f"{text[:limit]}\n[cut after {limit} of {length}]"
    )


def plain_text(page: str) -> str:
    """Return the words of a page without its tags, a block a line."""
    text = _REFERENCE.sub(_character, "".join(_words(page[:LONGEST_PAGE])))
    return "\n".join(
        single_blanks(" ".join(line.split()) for line in text.splitlines())
    )


def single_blanks(lines: Iterator[str]) -> Iterator[str]:
    """Leave out blank lines at the beginning and after another one."""
    blank = True
    for line in lines:
        if line or not blank:
            yield line
        blank = not line


def shown_tags(page: str) -> Iterator[tuple[str, str, re.Match[str] | None]]:
    """Go through a page by its tags, past what is hidden.

    Yields:
        The words before a tag, its name in lower case with ``/`` before that of an
        end, and the tag; at the end the last words alone.
    """
    hidden, end = "", 0
    for tag in _TAG.finditer(page):
        name = tag[1].lower()
        if not hidden:
            yield page[end : tag.start()], name, tag
            hidden = name if name in HIDDEN else ""
        elif name == f"/{hidden}":
            hidden = ""
        end = tag.end()
    if not hidden:
        yield page[end:], "", None


def _words(page: str) -> Iterator[str]:
    for words, name, _ in shown_tags(page):
        yield words
        yield "" if name.removeprefix("/") in WITHIN_A_LINE else "\n"


def _character(reference: re.Match[str]) -> str:
    return html.unescape(reference[0])
