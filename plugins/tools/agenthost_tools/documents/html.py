"""Web pages as Markdown, without what nobody reads.

The parsers are imported with this module, which only a worker process does: they are
large, and some pages keep them busy for ever.
"""

from __future__ import annotations

import re

from markdownify import markdownify
from selectolax.lexbor import LexborHTMLParser

from .plain import cut, decoded, plain_text, shown_tags, single_blanks

UNREAD = ("script", "style", "noscript", "template", "svg", "iframe", "head > *")
LONGEST_PAGE = 500_000
DEEPEST = 500
LONGEST_BLANK = 100
"""Blanks in a row that mean something, as code that is indented does."""

NOT_NESTING = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"}
    | {"param", "source", "track", "wbr", "html", "head", "body", "p", "li", "dt"}
    | {"dd", "td", "th", "tr", "tbody", "thead", "tfoot", "colgroup", "caption"}
    | {"option", "optgroup", "rp", "rt"}
)

_BLANKS = re.compile(r"\s+")


def markdown_of(document: bytes, *, charset: str, limit: int) -> str:
    """Return the page as Markdown, or its words when it is too deep or too long.

    Args:
        document: The page as it came.
        charset: What it is encoded in; empty for UTF-8.
        limit: Characters of the text to keep.
    """
    page = decoded(document, charset)
    if _deeper(page, DEEPEST):
        return cut(plain_text(page), limit)
    tree = LexborHTMLParser(page)
    title = tree.css_first("title")
    heading = title.text(strip=True) if title is not None else ""
    for selector in UNREAD:
        for node in tree.css(selector):
            node.decompose()
    body = _markdown(tree.html or "")
    if heading and heading not in body:
        body = f"# {heading}\n\n{body}"
    return cut(body, limit)


def _deeper(page: str, deepest: int) -> bool:
    """Tell, before a parser has to, whether elements stand too deep in each other.

    An element whose end may be left out counts for nothing: it does not nest.
    """
    depth = 0
    for _, name, tag in shown_tags(page):
        kind = name.removeprefix("/")
        if not kind.isalnum() or kind in NOT_NESTING or (tag and tag[0][-2:] == "/>"):
            continue
        depth = max(0, depth - 1) if name != kind else depth + 1
        if depth > deepest:
            return True
    return False


def _markdown(page: str) -> str:
    # markdownify looks at each blank of a run from each other one.
    page = _BLANKS.sub(lambda run: run[0][:LONGEST_BLANK], page)
    if len(page) > LONGEST_PAGE:
        return plain_text(page)
    text = str(markdownify(page, heading_style="ATX"))
    return "\n".join(single_blanks(line.rstrip() for line in text.splitlines())).strip()
