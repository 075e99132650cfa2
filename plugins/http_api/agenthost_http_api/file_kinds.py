"""What a file is, by its bytes alone, and what it may be called."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import category

from agenthost import InvalidInput

TEXT = "text/plain"
NAME_LENGTH = 200

_BEGINNINGS: Sequence[tuple[bytes, str]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_NEVER_IN_TEXT = bytes(set(range(32)) - set(b"\t\n\f\r\x1b")) + b"\x7f"


def media_type_of(data: bytes) -> str:
    """Tell what a file is, whatever its sender calls it.

    Raises:
        InvalidInput: It is empty, or nothing that models read.
    """
    if not data:
        raise InvalidInput("file", "is empty")
    for beginning, kind in _BEGINNINGS:
        if data.startswith(beginning):
            return kind
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if _is_text(data):
        return TEXT
    raise InvalidInput(
        "file", "is no PNG, JPEG, GIF or WebP image, no PDF and no UTF-8 text"
    )


def plain_name(name: str) -> str:
    """Make a name that can be shown: the last step of a path, without odd signs."""
    step = name.replace("\\", "/").rpartition("/")[2]
    # Controls, halves of surrogate pairs, and what turns the order of letters round.
    shown = "".join(each for each in step if category(each)[0] != "C").strip()
    return shown[:NAME_LENGTH] or "file"


def _is_text(data: bytes) -> bool:
    if len(data.translate(None, _NEVER_IN_TEXT)) != len(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
