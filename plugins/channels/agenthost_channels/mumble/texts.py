"""Texts of Mumble, which are HTML of few tags."""

from __future__ import annotations

import re
from html.parser import HTMLParser

BREAKS = {"br", "p", "div", "li", "tr", "blockquote", "pre", "h1", "h2", "h3", "ul"}
UNSEEN = {"style", "script", "head", "title"}
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.said: list[str] = []
        self._unseen = 0

    def handle_starttag(
        self,
        tag: str,
        attrs: list[tuple[str, str | None]],  # noqa: ARG002
    ) -> None:
        self._unseen += tag in UNSEEN
        if tag in BREAKS and (tag == "br" or self.said):
            self._break(always=tag == "br")

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in UNSEEN and self._unseen > 0
        if tag in BREAKS - {"br"}:
            self._break(always=False)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.said.append(data)

    def _break(self, *, always: bool) -> None:
        if always or (self.said and not self.said[-1].endswith("\n")):
            self.said.append("\n")


def plain(html: str) -> str:
    """Give the words of a message."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return CONTROLS.sub("", "".join(reader.said)).strip()


def printable(text: str) -> str:
    """Take away what no message may hold."""
    return CONTROLS.sub("", text)
