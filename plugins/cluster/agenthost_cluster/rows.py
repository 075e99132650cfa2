"""Rows of an answer: by column name or by position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from psycopg import AsyncCursor


class Record:
    """One row."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: Sequence[Any]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, key: str | int, /) -> Any:
        return self._values[self._places[key] if isinstance(key, str) else key]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def keys(self) -> Sequence[str]:
        """Name the columns in order."""
        return list(self._places)


def places_of(names: Sequence[str]) -> dict[str, int]:
    """Say at which place each column stands."""
    return {name: place for place, name in enumerate(names)}


def as_record(cursor: AsyncCursor[Any]) -> Callable[[Sequence[Any]], Record]:
    """Make the rows of a cursor of psycopg."""
    places = places_of([column.name for column in cursor.description or ()])
    return lambda values: Record(places, values)
