"""Typed facts about how a provider bends a dialect, with exceptions by model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from agenthost import InvalidInput

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class QuirkRow(Protocol):
    """A frozen dataclass with a default for every field."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Q = TypeVar("Q", bound=QuirkRow)


@dataclass(frozen=True, slots=True)
class Quirks(Generic[Q]):
    """A provider's quirks and, for models by glob pattern, what differs.

    ``rows`` are tried in order; the first whose pattern matches the id on the wire
    is used instead of ``base``.
    """

    base: Q
    rows: tuple[tuple[tuple[str, ...], Q], ...] = ()

    def of(self, model: str) -> Q:
        """Find the quirks of one model."""
        for patterns, row in self.rows:
            if any(fnmatchcase(model, pattern) for pattern in patterns):
                return row
        return self.base


def read_quirks(base: Q, table: Mapping[str, Any]) -> Quirks[Q]:
    """Read a quirks table; its ``models`` are tables with ``match`` and quirks.

    Raises:
        InvalidInput: A quirk is not known, or its value is of another type.
    """
    own = {name: value for name, value in table.items() if name != "models"}
    changed = _changed(base, own)
    rows = []
    for entry in table.get("models", ()):
        differs = {name: value for name, value in entry.items() if name != "match"}
        rows.append((tuple(entry["match"]), _changed(changed, differs)))
    return Quirks(changed, tuple(rows))


def _changed(base: Q, table: Mapping[str, Any]) -> Q:
    from pydantic import ValidationError

    known = [item.name for item in fields(base)]
    for name in table:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {sorted(known)}"
            raise InvalidInput(f"quirks.{name}", f"unknown quirk; {hint}")
    merged = {name: getattr(base, name) for name in known} | dict(table)
    try:
        checked = _reader_of(type(base)).validate_python(merged)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise InvalidInput(f"quirks.{place}", first["msg"]) from error
    return replace(base, **{name: getattr(checked, name) for name in known})


@cache
def _reader_of(row: type[Q]) -> TypeAdapter[Q]:
    """Make what checks a row, once: twenty providers share a few kinds of row."""
    from pydantic import TypeAdapter

    return TypeAdapter(row)
