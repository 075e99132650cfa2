"""A database in memory, for tests of what keeps rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Select, create_engine, text
from sqlalchemy.pool import StaticPool

from ...errors import Unavailable
from ...plugins.specs import SchemaSpec
from ...ports.store import NOTHING, Row, Signals, SlowWrite

T = TypeVar("T")


def memory_engine() -> Engine:
    """Make an empty database that lives as long as what is returned."""
    return create_engine("sqlite://", poolclass=StaticPool)


class MemoryStore:
    """A store in memory: each write is a transaction that is over when it returns.

    Args:
        schemas: The tables; they are made where they are missing, as they stand.
        engine: What is there already; rows go there, as to a file.
    """

    signals: Signals | None = None

    def __init__(
        self, schemas: Sequence[SchemaSpec] = (), engine: Engine | None = None
    ) -> None:
        self._engine = engine or memory_engine()
        self._owned = engine is None
        self._closed = False
        for schema in schemas:
            schema.metadata.create_all(self._engine)

    @property
    def healthy(self) -> bool:
        """Whether it is open."""
        return not self._closed

    @property
    def slow(self) -> Sequence[SlowWrite]:
        """Nothing: in memory no write is slow."""
        return ()

    def write(
        self, fn: Callable[[Connection], T], *also: Callable[[Connection], object]
    ) -> asyncio.Future[T]:
        """Run functions in one transaction, here and now.

        Raises:
            Unavailable: The store is closed.
        """
        self._refuse_when_closed()
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            with self._engine.begin() as connection:
                result = fn(connection)
                for each in also:
                    each(connection)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits
            done.set_exception(error)
        else:
            done.set_result(result)
        return done

    async def change(
        self, sql: str, parameters: Mapping[str, Any] = NOTHING
    ) -> list[Row]:
        """Run a constant text in a transaction; give the rows that it returns.

        Raises:
            Unavailable: The store is closed.
        """

        def run(connection: Connection) -> list[Row]:
            done = connection.execute(text(sql), dict(parameters))
            if not done.returns_rows:
                return []
            columns = tuple(done.keys())
            return [_Row(columns, row) for row in done.all()]

        return await self.write(run)

    async def read(
        self, statement: Select[Any] | str, parameters: Mapping[str, Any] = NOTHING
    ) -> list[Row]:
        """Give the rows of a statement.

        Raises:
            Unavailable: The store is closed.
        """
        self._refuse_when_closed()
        built = text(statement) if isinstance(statement, str) else statement
        with self._engine.connect() as connection:
            found = connection.execute(built, dict(parameters))
            columns = tuple(found.keys())
            return [_Row(columns, row) for row in found.all()]

    async def first(
        self, statement: Select[Any] | str, parameters: Mapping[str, Any] = NOTHING
    ) -> Row | None:
        """Give the first row of a statement, or None."""
        rows = await self.read(statement, parameters)
        return rows[0] if rows else None

    async def probe(self) -> bool:
        """Tell whether it is open."""
        return not self._closed

    async def close(self) -> None:
        """Take no more reads and writes."""
        self._closed = True
        if self._owned:
            self._engine.dispose()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")


class _Row:
    """A row by column name or by position."""

    __slots__ = ("_columns", "_values")

    def __init__(self, columns: Sequence[str], values: Sequence[Any]) -> None:
        self._columns = columns
        self._values = values

    def __getitem__(self, key: str | int, /) -> Any:
        place = self._columns.index(key) if isinstance(key, str) else key
        return self._values[place]

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def keys(self) -> Sequence[str]:
        """Name the columns in order."""
        return self._columns
