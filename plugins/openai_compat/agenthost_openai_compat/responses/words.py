"""What a turn said and did, as it stands in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenthost import (
    Audio,
    Citation,
    File,
    Image,
    Medium,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolOutput,
    ToolUse,
)

_KINDS: Mapping[str, type[Part | Medium]] = {
    kind.__name__: kind
    for kind in (Audio, File, Image, Reasoning, Text, ToolOutput, ToolUse)
}


def rows_of(said: Sequence[Message]) -> list[Any]:
    """Write messages as JSON."""
    return [[m.role.value, [_row_of(part) for part in m.parts]] for m in said]


def said_of(rows: Sequence[Any]) -> tuple[Message, ...]:
    """Read what :func:`rows_of` wrote."""
    return tuple(
        Message(Role(role), tuple(_part_of(row) for row in parts))
        for role, parts in rows
    )


def _row_of(part: Part | Medium) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": type(part).__name__}
    for name in type(part).__match_args__:
        value = getattr(part, name)
        row[name] = dict(value) if isinstance(value, Mapping) else value
    if isinstance(part, Text):
        row["citations"] = [[page.url, page.title] for page in part.citations]
    elif isinstance(part, ToolOutput):
        row["media"] = [_row_of(each) for each in part.media]
    return row


def _part_of(row: Mapping[str, Any]) -> Any:
    given = dict(row)
    kind = _KINDS[given.pop("kind")]
    if kind is Text:
        given["citations"] = tuple(Citation(*page) for page in given["citations"])
    elif kind is ToolOutput:
        given["media"] = tuple(_part_of(each) for each in given["media"])
    return kind(**given)
