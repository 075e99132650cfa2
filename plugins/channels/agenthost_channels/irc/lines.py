"""Lines of IRC: how they are read, and how a text fits into them.

Source: https://modern.ircdocs.horse and https://ircv3.net/specs/extensions/message-tags
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

LINE_BYTES = 512
LONGEST_USER = 11
LONGEST_HOST = 63

# Bold, colours, reset, monospace, reverse, italics, strike-through and underline stay.
_CONTROLS = re.compile(r"[\x00\x01\x05-\x0e\x10\x12-\x15\x17-\x1c\x7f\x85]")
_BREAKS = re.compile(r"\r\n|[\r\n\u2028\u2029]")
_CODES = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04[0-9a-fA-F]{0,6}|[\x00-\x1f]")
_TARGET = re.compile(r"[^\s\x00-\x1f\x7f,:$@!*?][^\s\x00-\x1f\x7f,:@!*?]{0,49}")
_LOWER = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ[]\\~", "abcdefghijklmnopqrstuvwxyz{}|^"
)
_ESCAPES = {":": ";", "s": " ", "r": "\r", "n": "\n", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the server's: tags, who it is from, the command and its parameters."""

    command: str
    params: tuple[str, ...] = ()
    source: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def nick(self) -> str:
        """The name at the start of the source."""
        return self.source.partition("!")[0]

    def at(self, index: int) -> str:
        """Give a parameter, "" where there is none."""
        return self.params[index] if index < len(self.params) else ""


def parse(raw: bytes) -> Line:
    """Read a line; whatever comes is read as something."""
    rest = raw.decode("utf-8", "replace").strip("\r\n").replace("\0", "")
    tags: dict[str, str] = {}
    source = ""
    if rest.startswith("@"):
        words, _, rest = rest[1:].partition(" ")
        tags = dict(_tag(word) for word in words.split(";") if word)
    rest = rest.lstrip(" ")
    if rest.startswith(":"):
        source, _, rest = rest[1:].partition(" ")
    middle, colon, trailing = rest.partition(" :")
    command, *params = middle.split() or [""]
    return Line(
        command.upper(), (*params, *([trailing] if colon else [])), source, tags
    )


def _tag(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key, re.sub(r"\\(.?)", lambda m: _ESCAPES.get(m[1], m[1]), value)


def lowered(name: str) -> str:
    """Give the one form of a name: case means nothing in it."""
    return name.translate(_LOWER)


def is_target(name: str) -> bool:
    """Tell whether it names one person or one channel, and nothing more."""
    return _TARGET.fullmatch(name) is not None


def plain(text: str) -> str:
    """Take colours and other formatting out of what somebody said."""
    return _CODES.sub("", text)


def pieces(text: str, room: int) -> Iterator[str]:
    """Cut a text into what one line each takes: ``room`` bytes, no line break.

    It is cut behind a space where there is one, never inside what a person sees as
    one character.
    """
    for line in _BREAKS.split(text):
        rest = _CONTROLS.sub("", line)
        while len(rest.encode()) > room:
            cut = _cut(rest, room)
            yield rest[:cut]
            rest = rest[cut:]
        if rest.strip():
            yield rest


def _cut(text: str, room: int) -> int:
    most = len(text.encode()[:room].decode("utf-8", "ignore"))
    space = text.rfind(" ", 0, most) + 1
    if space > most // 2:
        return space
    whole = most
    while whole > 1 and _joined(text, whole):
        whole -= 1
    # Marks without end, as some pile up, are cut like anything else.
    return whole if whole > 1 or not _joined(text, 1) else most


def _joined(text: str, at: int) -> bool:
    """Tell whether two characters are one for the eye."""
    before, after = text[at - 1], text[at]
    if before == "\u200d" or after in "\u200d\ufe0e\ufe0f":
        return True
    if unicodedata.category(after) in {"Mn", "Mc", "Me"}:
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    flags = len(text[:at]) - len(text[:at].rstrip(_FLAGS))
    return after in _FLAGS and flags % 2 == 1


_FLAGS = "".join(chr(code) for code in range(0x1F1E6, 0x1F200))
