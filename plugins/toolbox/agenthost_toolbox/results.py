"""What a tool gave, as one outcome: all of it in words, and the media beside them."""

from __future__ import annotations

import base64
import json
from binascii import Error
from collections.abc import Iterator, Mapping
from dataclasses import replace

from agenthost import (
    Audio,
    File,
    Image,
    InvalidInput,
    Json,
    Medium,
    Text,
    ToolOutput,
    ToolResult,
    ToolUse,
)

RESULT_CHARACTERS = 100_000
STEP_BYTES = 400_000
MEDIA_BYTES = 3_500_000
"""Of a result: what the narrowest provider takes of one picture."""
STEP_MEDIA_BYTES = 7_000_000
MOST_PARTS = 32
NAME_CHARACTERS = 200
PICTURES: Mapping[bytes, str] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""How pictures begin that models take. Any other would fail each later call too."""


def outcome_of(call: ToolUse, result: ToolResult) -> ToolOutput:
    """Write a result as an outcome.

    Raises:
        InvalidInput: What it has as ``structured`` is no JSON.
    """
    if not result.parts and result.structured is None:
        return ToolOutput(call.id, call.name, result.text, result.is_error)
    words, media = [result.text], list[Medium]()
    room = MEDIA_BYTES
    for part in result.parts[:MOST_PARTS]:
        if isinstance(part, Text):
            words.append(part.text)
            continue
        note, medium = _taken(part, room)
        words.append(note)
        if medium is not None:
            media.append(medium)
            room -= _size(medium)
    if left_out := len(result.parts) - MOST_PARTS:
        words += [f"[{left_out} more parts left out]"] if left_out > 0 else []
    text = "\n".join(filter(None, words))
    structured, written = _json(result.structured)
    if written and not _is(text, structured):
        text = f"{text}\n{written}" if text else written
    return ToolOutput(
        call.id, call.name, text, result.is_error, tuple(media), structured
    )


def capped(output: ToolOutput) -> ToolOutput:
    """Cut an outcome to what a model can use; what it cannot read whole has no value.

    So what passes the guards as words is all there is.
    """
    left_out = len(output.text) - RESULT_CHARACTERS
    if left_out <= 0:
        return output
    text = f"{output.text[:RESULT_CHARACTERS]}\n[{left_out} characters left out]"
    return replace(output, text=text, structured=None)


def reworded(output: ToolOutput, text: str) -> ToolOutput:
    """Take the words that the guards left.

    Where they took words away, what those stood for goes too; words put around them
    leave it.
    """
    if text is output.text:
        return output
    if output.text in text:
        return replace(output, text=text)
    return replace(output, text=text, media=(), structured=None)


def fitting(output: ToolOutput, room: int, media_room: int) -> ToolOutput:
    """Cut an outcome to the bytes that are left of its step."""
    if output.media and _weight(output) > media_room:
        text = f"{output.text}\n[the media of this step are too large; left out]"
        output = replace(output, text=text, media=())
    if len(output.text) * 4 <= room:
        return output
    data = output.text.encode("utf-8", "surrogatepass")
    if len(data) <= room:
        return output
    kept = data[: max(room, 0)].decode("utf-8", "ignore")
    text = f"{kept}\n[the results of this step are too long; the rest is left out]"
    return replace(output, text=text, structured=None)


def weights(output: ToolOutput) -> tuple[int, int]:
    """The bytes of an outcome's words, and of its media."""
    return len(output.text.encode("utf-8", "surrogatepass")), _weight(output)


def _weight(output: ToolOutput) -> int:
    return sum(map(_size, output.media))


def _size(medium: Medium) -> int:
    return len(medium.data) * 3 // 4 - medium.data[-2:].count("=")


def _taken(medium: Medium, room: int) -> tuple[str, Medium | None]:
    """The words for a medium, and the medium where it is one and fits."""
    size = _size(medium)
    if size > room:
        return _note(medium, size, "left out: too large"), None
    try:
        data = base64.b64decode(medium.data, validate=True)
    except (Error, ValueError):
        return _note(medium, size, "left out: its base64 is broken"), None
    if isinstance(medium, Image):
        kind = _picture(data)
        if kind is None:
            return _note(medium, size, "left out: no picture that models take"), None
        medium = replace(medium, media_type=kind)
    return _note(medium, size), medium


def _picture(data: bytes) -> str | None:
    """What the bytes are: a provider refuses a picture that calls itself another."""
    kinds = (kind for start, kind in PICTURES.items() if data.startswith(start))
    kind = next(kinds, None)
    return None if kind == "image/webp" and data[8:12] != b"WEBP" else kind


def _note(medium: Medium, size: int, fate: str = "") -> str:
    return f"[{', '.join(_described(medium, size))}{fate and f', {fate}'}]"


def _described(medium: Medium, size: int) -> Iterator[str]:
    match medium:
        case Image(kind):
            yield f"image: {_line(kind)}"
        case Audio(kind):
            yield f"audio: {_line(kind)}"
        case File(name, kind, _, uri):
            yield f"file: {_line(name)}"
            yield _line(kind)
            if uri:
                yield _line(uri)
                return
    yield f"{size} bytes" if size < 1000 else f"{size / 1000:,.0f} kB"


def _line(text: str) -> str:
    return " ".join(text.split())[:NAME_CHARACTERS]


def _json(value: Json) -> tuple[Json, str]:
    """A copy of a JSON value that nobody else holds, and its text."""
    if value is None:
        return None, ""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("", f"what it returns is no JSON: {error}") from error
    return json.loads(written), written


def _is(text: str, value: Json) -> bool:
    """Tell whether the words are the value itself, however they are laid out."""
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False
