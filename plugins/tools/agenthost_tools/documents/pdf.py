"""Words of PDF files, by pypdf: imported in a worker process alone."""

from __future__ import annotations

import io

from pypdf import PdfReader

from .plain import cut


def text_of(document: bytes, *, first: int, last: int, limit: int) -> str:
    """Return the words of some pages.

    Args:
        document: The file.
        first: The first page, from 1.
        last: The last one.
        limit: Characters after which it is cut.
    """
    reader = PdfReader(io.BytesIO(document), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        return "[the file is locked with a password]"
    texts, room, count = [], limit + 1, len(reader.pages)
    for number in range(first, min(last, count) + 1):
        text = reader.pages[number - 1].extract_text().strip()
        texts.append(f"[page {number} of {count}]\n{text[:room]}")
        room -= len(text)
        if room <= 0:
            break
    return cut("\n\n".join(texts) or f"[it has {count} pages]", limit)
