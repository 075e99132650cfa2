"""Words of Word, Excel and PowerPoint files: ZIP archives with XML, read with limits.

Nothing is written, no name of the archive is followed, and no entity is known: what
cannot be read so is refused.
"""

from __future__ import annotations

import io
import re
import xml.parsers.expat  # nosec B407 # a document type is refused before it is read
import zipfile
from collections.abc import Callable, Iterator

from .plain import cut

LARGEST_PART = 16 * 1024 * 1024
"""Bytes of an XML file within; those of all files together are four times as many."""

MOST_FILES = 5_000
CHUNK = 65_536

PARTS = {
    "docx": re.compile(r"word/(document|footnotes|endnotes)\.xml"),
    "pptx": re.compile(r"ppt/slides/slide([0-9]{1,6})\.xml"),
    "xlsx": re.compile(r"xl/worksheets/sheet([0-9]{1,6})\.xml"),
}
SHARED = "xl/sharedStrings.xml"
ENDS = {"p": "\n", "tab": "\t", "br": "\n", "row": "\n", "c": "\t", "si": "\0"}
"""What stands for the end of an element, by its name without a namespace."""

WORDS = frozenset({"t", "v"})


def text_of(document: bytes, *, first: int, last: int, limit: int) -> str:
    """Return the words of some parts: slides, sheets, or all of a text.

    Args:
        document: The file.
        first: The first slide or sheet, from 1.
        last: The last one.
        limit: Characters after which it is cut.

    Raises:
        ValueError: It is no such file, or holds far more than it weighs.
    """
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        kind, names = _parts(archive)
        shared = _shared(archive) if kind == "xlsx" else ()
        chosen = names if kind == "docx" else names[first - 1 : last]
        texts = []
        room = limit + 1
        for number, name in enumerate(chosen, 1 if kind == "docx" else first):
            text = _words(_read(archive, name), shared)
            head = "" if kind == "docx" else f"[{number} of {len(names)}]\n"
            texts.append(f"{head}{text[:room]}")
            room -= len(text)
            if room <= 0:
                break
    return cut("\n\n".join(texts), limit)


def _parts(archive: zipfile.ZipFile) -> tuple[str, list[str]]:
    """Tell what kind of file it is, and its parts in their order."""
    infos = archive.infolist()
    if len(infos) > MOST_FILES:
        raise ValueError("too many files within")
    if sum(info.file_size for info in infos) > 4 * LARGEST_PART:
        raise ValueError("it holds far more than it weighs")
    for kind, pattern in PARTS.items():
        found = [m for m in (pattern.fullmatch(i.filename) for i in infos) if m]
        if found:
            found.sort(key=lambda match: (len(match[1]), match[1]))
            return kind, [match[0] for match in found]
    raise ValueError("no Word, Excel or PowerPoint file")


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as part:
        # What the archive says of a size may be a lie.
        data = part.read(LARGEST_PART + 1)
    if len(data) > LARGEST_PART:
        raise ValueError("a part of it is too large")
    return data


def _shared(archive: zipfile.ZipFile) -> tuple[str, ...]:
    """Read the texts that cells of all sheets name by number."""
    if SHARED not in archive.namelist():
        return ()
    return tuple(_words(_read(archive, SHARED), (), strip=False).split("\0"))


def _words(data: bytes, shared: tuple[str, ...], *, strip: bool = True) -> str:
    words = "".join(_Reader(shared).read(data))
    if not strip:
        return words
    lines = (line.rstrip() for line in words.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Reader:
    """Gathers the words of an XML file as it goes by."""

    def __init__(self, shared: tuple[str, ...]) -> None:
        self._shared = shared
        self._said: list[str] = []
        self._inside = self._by_number = False

    def read(self, data: bytes) -> Iterator[str]:
        parser = xml.parsers.expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        feed: Callable[[bytes, bool], int] = parser.Parse
        for at in range(0, len(data), CHUNK):
            feed(data[at : at + CHUNK], False)  # noqa: FBT003 - expat has it so
            yield from self._said
            self._said.clear()
        feed(b"", True)  # noqa: FBT003 - expat has it so
        yield from self._said

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(" ")[2]
        if name == "c":
            self._by_number = attributes.get("t") == "s"
        self._inside = name in WORDS

    def _end(self, name: str) -> None:
        self._inside = False
        self._said.append(ENDS.get(name.rpartition(" ")[2], ""))

    def _text(self, text: str) -> None:
        if not self._inside:
            return
        if self._by_number and text.isdigit() and len(text) <= 9:
            number = int(text)
            text = self._shared[number] if number < len(self._shared) else ""
        self._said.append(text)


def _refuse(*_: object) -> None:
    raise ValueError("it has a document type of its own")
