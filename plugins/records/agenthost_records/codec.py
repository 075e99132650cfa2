"""Messages as rows: parts as compact JSON, with a digest that is checked on read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from agenthost import (
    Audio,
    Citation,
    File,
    Image,
    Medium,
    Message,
    ModelSettings,
    Part,
    Reasoning,
    Role,
    Text,
    ToolOutput,
    ToolUse,
    Unavailable,
)

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dump_json(value: Any) -> str:
    """Write compact JSON."""
    return _ENCODE(value)


def dump_labels(labels: frozenset[str]) -> str:
    """Write labels sorted; none, which is the rule, are nothing."""
    return dump_json(sorted(map(str, labels))) if labels else ""


def load_labels(text: str) -> frozenset[str]:
    """Read what :func:`dump_labels` wrote."""
    return frozenset(json.loads(text)) if text else frozenset()


def dump_settings(settings: ModelSettings) -> str:
    """Write what is asked of a turn's answers."""
    # In ASCII: a schema may hold half a surrogate pair, which no store takes.
    return json.dumps(asdict(settings))


def load_settings(text: str | None) -> ModelSettings | None:
    """Read what :func:`dump_settings` wrote."""
    if text is None:
        return None
    row = json.loads(text)
    return ModelSettings(**{**row, "stop": tuple(row["stop"])})


def dump_citations(citations: Iterable[Citation]) -> str:
    """Write pages as address and title."""
    return dump_json(_rows_of(citations))


def load_citations(text: str | None) -> tuple[Citation, ...]:
    """Read what :func:`dump_citations` wrote, or nothing."""
    return _citations_of(json.loads(text)) if text else ()


def _rows_of(citations: Iterable[Citation]) -> list[list[str]]:
    return [[each.url, each.title] for each in citations]


def _citations_of(rows: Iterable[Iterable[str]]) -> tuple[Citation, ...]:
    return tuple(Citation(*row) for row in rows)


def _part_row(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, citations, logprobs):
            cited = {"citations": _rows_of(citations)} if citations else {}
            told = {"logprobs": logprobs} if logprobs else {}
            return {"type": "text", "text": text, **cited, **told}
        case Image() | File():
            return _medium_row(part)
        case Reasoning(text, opaque):
            return {"type": "reasoning", "text": text, "opaque": dict(opaque)}
        case ToolUse(id_, name, arguments, opaque, malformed):
            return {
                "type": "tool_use",
                "id": id_,
                "name": name,
                "arguments": dict(arguments),
                "opaque": dict(opaque),
                **({"malformed": malformed} if malformed else {}),
            }
        case ToolOutput(id_, name, text, is_error, media, structured):
            return {
                "type": "tool_output",
                "id": id_,
                "name": name,
                "text": text,
                "is_error": is_error,
                **({"media": [_medium_row(m) for m in media]} if media else {}),
                **({} if structured is None else {"structured": structured}),
            }


def _medium_row(medium: Medium) -> dict[str, Any]:
    match medium:
        case Image(media_type, data, detail):
            looked_at = {"detail": detail} if detail else {}
            picture = {"type": "image", "media_type": media_type, "data": data}
            return {**picture, **looked_at}
        case Audio(media_type, data):
            return {"type": "audio", "media_type": media_type, "data": data}
        case File(name, media_type, data, uri):
            file = {"type": "file", "name": name, "media_type": media_type}
            return {**file, "data": data, "uri": uri}


_MEDIA: Mapping[str, type[Medium]] = {"image": Image, "audio": Audio, "file": File}
_PARTS: Mapping[str, type[Part]] = {
    "text": Text,
    "image": Image,
    "file": File,
    "reasoning": Reasoning,
    "tool_use": ToolUse,
    "tool_output": ToolOutput,
}


def _part_of(row: dict[str, Any]) -> Part:
    if cited := row.pop("citations", ()):
        row["citations"] = _citations_of(cited)
    if told := row.pop("logprobs", ()):
        row["logprobs"] = tuple(told)
    if media := row.pop("media", ()):
        row["media"] = tuple(_MEDIA[each.pop("type")](**each) for each in media)
    return _PARTS[row.pop("type")](**row)


def dump_part(part: Part) -> str:
    """Write one part."""
    return dump_json(_part_row(part))


def load_part(text: str) -> Part:
    """Read what :func:`dump_part` wrote."""
    return _part_of(json.loads(text))


def digest_of(text: str) -> str:
    """The digest stored beside what is written, checked when it is read."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def dump_parts(message: Message) -> str:
    """Write a message's parts."""
    return dump_json([_part_row(part) for part in message.parts])


def load_message(role: str, parts: str, digest: str) -> Message:
    """Read a message back.

    Raises:
        Unavailable: The row does not match its digest: the database is damaged.
    """
    if digest_of(parts) != digest:
        raise Unavailable("a stored message is damaged; restore the last backup")
    return Message(Role(role), load_parts(parts))


def load_parts(parts: str) -> tuple[Part, ...]:
    """Read what :func:`dump_parts` wrote."""
    return tuple(_part_of(row) for row in json.loads(parts))
