"""Words: of a message for its reader, and as they are compared in a search."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from unicodedata import category, normalize

CUT = "\N{HORIZONTAL ELLIPSIS}"
CHARS = 1_000
"""Characters of a text that a line is made of: what is left of much white space."""
TITLE = 80
"""Characters of a message that make a title."""
TITLE_LIMIT = 200
"""Characters of a title that somebody chose."""
TEXT_LIMIT = 20_000
"""Characters of a message that a search looks at."""
WORDS = 6
"""Words of a query that count."""
# Scripts that put no space between words: Thai to Burmese, Khmer, Chinese, Japanese.
_ALONE = (
    "[\u0e00-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# Vowels of Hebrew and Arabic, which are written or not, and what draws a word out.
_POINTS = "[\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]"


def text_of(parts: str) -> str:
    """Read the plain text out of a message's parts as they are stored."""
    found = json.loads(parts)
    return "\n".join(part["text"] for part in found if part["type"] == "text")


def one_line(text: str, limit: int) -> str:
    """Put a text on one line, and cut it where it is too long."""
    plain = (" " if category(each) in {"Cc", "Cs"} else each for each in text[:CHARS])
    line = " ".join("".join(plain).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + CUT


def title_of(parts: str) -> str:
    """Make a title of the message that began a session."""
    return one_line(text_of(parts), TITLE)


def folded(text: str) -> str:
    """Write words alike that are read alike: one case, one form, single spaces."""
    plain = text[:TEXT_LIMIT]
    plain = plain if plain.isascii() else normalize("NFKC", plain)
    # A database ends its comparison at a NUL, and cannot hold half a surrogate pair.
    plain = plain.casefold().replace("\0", " ").encode("utf-8", "replace").decode()
    return " ".join(plain.split())


def patterns(query: str) -> Sequence[str]:
    """The words of a query as patterns of LIKE, whose escape is ``/``."""
    words = folded(query).split()[:WORDS]
    escaped = [
        word.replace("/", "//").replace("%", "/%").replace("_", "/_") for word in words
    ]
    return [f"%{word}%" for word in escaped]


def spaced(text: str) -> str:
    """Write folded words as they are indexed; "" where that is as they stand."""
    if text.isascii():
        return ""
    # Compiled here, once: a start needs neither.
    apart = re.sub(_ALONE, r" \g<0> ", re.sub(_POINTS, "", text))
    return "" if apart == text else " ".join(apart.split())


def matching(query: str) -> tuple[str, Sequence[str]]:
    """Write a query for the index, and what else its words have to be like.

    Each word stands in quotes, so that none has a meaning to the index. Of one with
    signs the index knows only the letters: it is compared as well.
    """
    words = [(word, spaced(word) or word) for word in folded(query).split()[:WORDS]]
    quoted = (each.replace('"', '""') for _, each in words)
    signs = [word for word, each in words if not each.replace(" ", "").isalnum()]
    every = " ".join(f'"{each}"*' for each in quoted)
    return f"words : ({every})", patterns(" ".join(signs))
