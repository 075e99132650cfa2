"""The port STORE: the database of one home."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agenthost_values.value_class import value_class

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

T = TypeVar("T")
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Row(Protocol):
    """One row of an answer: by column name or by position."""

    def __getitem__(self, key: str | int, /) -> Any: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def keys(self) -> Sequence[str]:
        """Name the columns in order."""


@value_class
class SlowWrite:
    """A write function that held up all others: how often, and longest in seconds."""

    name: str
    count: int
    longest: float


class Signals(Protocol):
    """What the daemons that share a database tell each other, as far as they hear it.

    Nothing rests on it: it spares looking again and again whether rows have changed.
    """

    def tell(self, topic: str, word: str = "") -> None:
        """Tell every other daemon; it starts at once and waits for nobody."""

    def listen(self, topic: str, heard: Callable[[str], None]) -> None:
        """Have a function called with each word of a topic that another one tells.

        It is called with "" also after a time in which something may have been missed.
        """


class Store(Protocol):
    """The database of one home: ``write`` functions, ``read`` statements."""

    signals: Signals | None
    """How the daemons that have it open reach each other; None: there is but one."""

    @property
    def healthy(self) -> bool:
        """Whether the last write and the last probe reached the disk."""

    @property
    def slow(self) -> Sequence[SlowWrite]:
        """Write functions that held up all others, the slowest first.

        A name is that of the module, which begins with its plugin's package, and that
        of the function in it.
        """

    def write(
        self, fn: Callable[[Connection], T], *also: Callable[[Connection], object]
    ) -> asyncio.Future[T]:
        """Run a function in a transaction; it starts at once, awaited or not.

        Args:
            fn: Short and synchronous, touches only its connection, may run twice.
                What it raises rolls back its own work and reaches the caller.
            also: Functions of the same kind that run after it in the same
                transaction: all is on disk or nothing is. The caller gets what the
                first of them raises.

        Returns:
            Its result, once the commit is on disk. It fails with StorageFull or
            Unavailable when the storage does. A cancelled write may still happen.

        Raises:
            Unavailable: The store is closed, or thousands of writes wait.
        """

    async def change(
        self, sql: str, parameters: Mapping[str, Any] = NOTHING
    ) -> list[Row]:
        """Write as a start does, which imports no SQLAlchemy; give what it returns.

        Args:
            sql: A constant text that every database takes, with ``:name`` where values
                go and, where there is an answer, ``RETURNING``.
            parameters: The values, by name.

        Raises:
            Unavailable: As a write does; so is StorageFull.
        """

    async def read(
        self, statement: Select[Any] | str, parameters: Mapping[str, Any] = NOTHING
    ) -> list[Row]:
        """Give the rows of a statement, as of the last commit.

        Args:
            statement: Built once, at module level, with ``bindparam`` where values
                go: it is compiled at its first use and remembered by identity. What
                a start reads is a constant text of SQL that every database takes,
                with ``:name`` where values go: a start imports no SQLAlchemy.
            parameters: The values, by name.

        Raises:
            Unavailable: The database cannot be read now.
        """

    async def first(
        self, statement: Select[Any] | str, parameters: Mapping[str, Any] = NOTHING
    ) -> Row | None:
        """Give the first row of a statement, or None."""

    async def probe(self) -> bool:
        """Read one row and tell whether that worked, from the file that is meant."""

    async def close(self) -> None:
        """Finish what was written and close."""
