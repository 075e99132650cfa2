"""Web pages as Markdown, without what nobody reads."""

from __future__ import annotations

UNREAD = ("script", "style", "noscript", "template", "svg", "iframe", "head > *")
LONGEST_PAGE = 500_000


def markdown_of(page: str) -> str:
    """Return the page as Markdown, or as plain text when it is huge or too deep.

    Takes time that grows with the page; call it off the event loop.
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(page)
    title = tree.css_first("title")
    heading = title.text(strip=True) if title is not None else ""
    for selector in UNREAD:
        for node in tree.css(selector):
            node.decompose()
    body = _text(tree.html or "") or (tree.text(separator="\n", strip=True))
    return f"# {heading}\n\n{body}" if heading and heading not in body else body


def _text(page: str) -> str:
    from markdownify import markdownify

    if len(page) > LONGEST_PAGE:
        return ""
    try:
        text = str(markdownify(page, heading_style="ATX"))
    except RecursionError:
        return ""
    return "\n".join(_single_blanks(text.splitlines())).strip()


def _single_blanks(lines: list[str]) -> list[str]:
    kept: list[str] = []
    for line in (raw.rstrip() for raw in lines):
        if line or (kept and kept[-1]):
            kept.append(line)
    return kept
