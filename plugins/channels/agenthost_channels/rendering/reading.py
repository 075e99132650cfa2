"""Markdown read into pieces, for one dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .pieces import BLOCKS, PRE, QUOTE, Mark, Marks, Piece
from .tables import laid_out, rows

if TYPE_CHECKING:
    from markdown_it.token import Token

    from .dialects import Dialect

WORDS = re.compile(r"\n|[^\S\n]+|\S+")
NESTING = 60
RULE = "\u2014" * 3
LANGUAGE = re.compile(r"[\w+#.-]{1,20}")
LINKED = ("http://", "https://", "mailto:")
DEEPEST_LIST = 8
INLINE = {"strong": "bold", "em": "italic", "s": "strike"}


def read(markdown: str, dialect: Dialect, limit: int) -> list[Piece]:
    """Read Markdown; what is nested beyond all reason is read as plain text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": NESTING})
    # The parser leaves out what is nested too deep: then nothing is markup.
    tokens = parser.enable(["table", "strikethrough"]).parse(markdown)
    reader = Reader(dialect, limit)
    if any(token.level >= NESTING - 2 for token in tokens):
        reader.words(markdown)
    else:
        reader.blocks(tokens)
    return _blanks_outside(reader.pieces)


def _blanks_outside(pieces: list[Piece]) -> list[Piece]:
    """Give blanks only the marks of both neighbours: no ``** word**``."""
    found: list[Piece] = []
    for index, piece in enumerate(pieces):
        if not piece.raw and piece.text.isspace() and piece.text != "\n":
            before = found[-1].marks if found else ()
            after = pieces[index + 1].marks if index + 1 < len(pieces) else ()
            piece = piece._replace(marks=_common(piece.marks, before, after))  # noqa: PLW2901
        found.append(piece)
    return found


def _common(marks: Marks, before: Marks, after: Marks) -> Marks:
    count = 0
    for each in zip(marks, before, after, strict=False):
        if len(set(each)) > 1:
            break
        count += 1
    return marks[:count]


class Reader:
    """Walks the parser's tokens and keeps what is around the words."""

    def __init__(self, dialect: Dialect, limit: int) -> None:
        self.pieces: list[Piece] = []
        self._dialect = dialect
        self._limit = limit
        self._marks: list[Mark] = []
        self._lists: list[int | None] = []
        self._links: list[str] = []
        self._bullet = ""
        self._lines = 0
        self._link_from = 0

    # Words.

    def words(self, text: str, *, code: bool = False) -> None:
        """Add text under the marks that are open."""
        for found in WORDS.finditer(text):
            if found[0] == "\n":
                self._line()
            else:
                self._add(Piece(found[0], self._shown(code=code)))

    def _shown(self, *, code: bool = False) -> Marks:
        kept = dict.fromkeys(self._marks)
        if code:
            return tuple(each for each in kept if each.kind in {"code", *BLOCKS})
        return tuple(kept)

    def _line(self, boundary: int = 1) -> None:
        marks = tuple(each for each in self._shown() if each.kind in BLOCKS)
        self.pieces.append(Piece("\n", marks, boundary=boundary))

    def _add(self, piece: Piece) -> None:
        self._separate()
        self.pieces.append(piece)

    def _separate(self) -> None:
        """Write the line breaks and the bullet that stand before the next word."""
        if self._lines and self.pieces:
            inside = self._marks if self._lines == 1 else []
            blocks = tuple(each for each in inside if each.kind == QUOTE)
            self.pieces.extend(
                Piece("\n", blocks, boundary=min(2, self._lines))
                for _ in range(self._lines)
            )
        if self._lines and not self._in_pre():
            indent = "  " * (min(len(self._lists), DEEPEST_LIST) - bool(self._bullet))
            quotes = tuple(each for each in self._marks if each.kind == QUOTE)
            if indent:
                self.pieces.append(Piece(indent, quotes))
        if self._bullet:
            quotes = tuple(each for each in self._marks if each.kind == QUOTE)
            self.pieces.append(Piece(self._bullet, quotes, raw=True))
        self._lines, self._bullet = 0, ""

    def _in_pre(self) -> bool:
        return any(each.kind == PRE for each in self._marks)

    def _block(self) -> None:
        self._lines = max(self._lines, 1 if self._lists else 2)

    # Blocks.

    def blocks(self, tokens: Sequence[Token]) -> None:
        """Read the tokens of a document."""
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.type == "table_open":
                index = self._table(tokens, index)
            elif token.type == "inline":
                self.inline(token.children or [])
            elif token.type in {"fence", "code_block"}:
                self._code_block(token)
            elif token.type == "hr":
                self._block()
                self._add(Piece(RULE, raw=True))
                self._block()
            else:
                self._frame(token)
            index += 1

    def _frame(self, token: Token) -> None:
        """Open or close what stands around blocks."""
        name, _, way = token.type.rpartition("_")
        opening = way == "open"
        if name == "list_item":
            self._item(opening=opening)
            return
        self._block()
        if name in {"bullet_list", "ordered_list"}:
            if opening:
                first = int(token.attrGet("start") or 1)
                self._lists.append(first if name == "ordered_list" else None)
            else:
                self._lists.pop()
                self._block()
        elif name in {"blockquote", "heading"}:
            self._toggle(Mark(QUOTE if name == "blockquote" else "bold"), on=opening)

    def _item(self, *, opening: bool) -> None:
        if not opening:
            # An item without a word still has its bullet.
            if self._bullet:
                self._separate()
            return
        number = self._lists[-1]
        self._lines = max(self._lines, 1)
        self._bullet = self._dialect.bullet if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1

    def _toggle(self, mark: Mark, *, on: bool) -> None:
        if on:
            self._marks.append(mark)
        else:
            place = len(self._marks) - 1 - self._marks[::-1].index(mark)
            del self._marks[place]

    def _code_block(self, token: Token) -> None:
        language = LANGUAGE.match(token.info.strip()) if token.info else None
        self.code(token.content, language[0] if language else "")

    def code(self, text: str, language: str = "") -> None:
        """Add a code block; it stands outside quotes, which not all vendors nest."""
        text = text.strip("\n")
        if not text.strip():
            return
        fence = "```"
        if self._dialect.any_fence:
            longest = max(map(len, re.findall("`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
        elif "```" in text and self._dialect.marks.get(PRE) == ("", ""):
            text = re.sub("`(?=``)", "`\u2060", text)
        self._block()
        if self._bullet:
            self._separate()
            self._lines = 1
        kept, self._marks = self._marks, []
        self._separate()
        shown = language if self._dialect.languages else ""
        self._marks = [Mark(PRE, shown, fence)]
        self.words(text, code=True)
        self._marks = kept
        self._block()

    # Lines.

    def inline(self, tokens: Sequence[Token]) -> None:
        """Read what stands in a line."""
        for token in tokens:
            name, _, way = token.type.rpartition("_")
            if name in INLINE:
                self._toggle(Mark(INLINE[name]), on=way == "open")
            elif name == "link":
                self._link(token, opening=way == "open")
            elif token.type == "code_inline":
                self._code(token.content)
            elif token.type in {"softbreak", "hardbreak"}:
                self._line()
            elif token.type == "image":
                self._image(token)
            else:
                self.words(token.content)

    def _link(self, token: Token, *, opening: bool) -> None:
        if opening:
            self._begin_link(str(token.attrGet("href") or ""))
        else:
            self._end_link()

    def _begin_link(self, address: str) -> None:
        self._links.append(address)
        if self._marks_links(address):
            self._toggle(Mark("link", address), on=True)
        self._link_from = len(self.pieces)

    def _marks_links(self, address: str) -> bool:
        short = len(address.encode()) * 8 <= self._limit * 2
        return short and "link" in self._dialect.marks and address.startswith(LINKED)

    def _end_link(self) -> None:
        """Name the address after the words where the dialect has no links."""
        address = self._links.pop()
        if self._marks_links(address):
            self._toggle(Mark("link", address), on=False)
            return
        said = "".join(piece.text for piece in self.pieces[self._link_from :])
        if address and said.strip() != address.removeprefix("mailto:"):
            self.words(f" ({address})")

    def _image(self, token: Token) -> None:
        self._begin_link(str(token.attrGet("src") or ""))
        self.words(token.content or "image")
        self._end_link()

    def _code(self, text: str) -> None:
        longest = max(map(len, re.findall("`+", text)), default=0)
        by_ticks = self._dialect.marks.get("code") == ("", "")
        if longest and by_ticks and not self._dialect.any_fence:
            self.words(text)
            return
        pad = " " if text.startswith("`") or text.endswith("`") else ""
        self._marks.append(Mark("code", fence="`" * (longest + 1) + pad))
        self.words(text, code=True)
        self._marks.pop()

    # Tables.

    def _table(self, tokens: Sequence[Token], start: int) -> int:
        """Add a table: as aligned columns where it is narrow, else as a list."""
        end = next(
            at for at in range(start, len(tokens)) if tokens[at].type == "table_close"
        )
        cells = rows(tokens[start:end])
        if (text := laid_out(cells)) is not None:
            self.code(text)
            return end
        self._block()
        header, *lines = cells
        for line in lines or [header]:
            self._lists.append(None)
            self._item(opening=True)
            # Cells that the parser made up for a short row are nothing to say.
            said = [(header[at], cell) for at, cell in enumerate(line) if cell.content]
            for place, (title, cell) in enumerate(said):
                self._cell(title, cell, last=place + 1 == len(said))
            self._item(opening=False)
            self._lists.pop()
        self._block()
        return end

    def _cell(self, title: Token, cell: Token, *, last: bool) -> None:
        if cell is not title and title.content.strip():
            self._marks.append(Mark("bold"))
            self.inline(title.children or [])
            self._marks.pop()
            self.words(": ")
        self.inline(cell.children or [])
        if not last:
            self.words("; ")
