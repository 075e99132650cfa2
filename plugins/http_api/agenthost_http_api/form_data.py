"""The one file of a ``multipart/form-data`` body (RFC 7578).

Werkzeug's own reader takes seconds for headers of many megabytes; here they are bounded
before anything looks into them.
"""

from __future__ import annotations

from collections.abc import Mapping

from agenthost import InvalidInput

FIELD = "file"
HEADER_BYTES = 8 * 1024
MOST_PARTS = 8
BREAK = b"\r\n"


def read_file(content_type: str, body: bytes) -> tuple[str, bytes]:
    """Read the name and the bytes of the form's field ``file``.

    Raises:
        InvalidInput: The body is no form, or has no such file.
    """
    from werkzeug.http import parse_options_header

    kind, options = parse_options_header(content_type[:HEADER_BYTES])
    boundary = options.get("boundary", "").encode("latin-1", "replace")
    if kind != "multipart/form-data" or not 0 < len(boundary) <= 70:
        raise InvalidInput(
            "content-type",
            "send the file as the field `file` of multipart/form-data, "
            "as `curl -F file=@notes.pdf` does",
        )
    mark = b"--" + boundary
    # As a line of its own each, the first one too.
    at = 0 if body.startswith(mark) else body.find(BREAK + mark)
    for _ in range(MOST_PARTS):
        begins = body.find(BREAK, at + len(mark)) if at >= 0 else -1
        ends = body.find(BREAK + mark, begins)
        if begins < 0 or ends < 0:
            break
        said, found = _part(body, begins + len(BREAK), ends)
        _, named = parse_options_header(said.get("content-disposition"))
        if named.get("name") == FIELD:
            return named.get("filename", ""), found
        at = ends + len(BREAK)
    raise InvalidInput(FIELD, "the form has no whole field of this name")


def _part(body: bytes, begins: int, ends: int) -> tuple[Mapping[str, str], bytes]:
    """Read the headers of a part, and what stands behind them."""
    blank = body.find(BREAK + BREAK, begins, min(ends + 4, begins + HEADER_BYTES))
    if blank < 0:
        raise InvalidInput(FIELD, "the form's headers have no end")
    lines = body[begins:blank].decode("utf-8", "replace").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    said = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return said, body[blank + 2 * len(BREAK) : ends]
