"""Statements compiled once: SQLAlchemy's text, without its work at every execution."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, cast

from sqlalchemy import (
    Connection,
    CursorResult,
    Engine,
    Float,
    Select,
    UpdateBase,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

from .driver import COMPILED_LIMIT, driver

DIALECT = sqlite.dialect(paramstyle="qmark")


class Compiled:
    """A statement as SQL text, and the order of its parameters.

    Values reach SQLite as they are: columns are TEXT, INTEGER, REAL and BLOB.

    Args:
        statement: Built once; values go where it has a ``bindparam``.
        columns: What an insert or update writes besides what it says itself.

    ``plain`` says that values go as they are, all of them, and that no row comes back.
    """

    __slots__ = ("_constants", "_known", "_pick", "plain", "sql")

    def __init__(
        self,
        statement: Select[Any] | UpdateBase,
        columns: Iterable[str] | None = None,
    ) -> None:
        compiled = statement.compile(
            dialect=DIALECT,
            column_keys=None if columns is None else list(columns),
            compile_kwargs={"render_postcompile": True},
        )
        binds = compiled.binds
        required = {name for name, bind in binds.items() if bind.required}
        self.sql = compiled.string
        order = compiled.positiontup or ()
        # An itemgetter of one name gives the value itself; of none there is none.
        self._pick: Callable[[Mapping[str, Any]], Sequence[Any]] = (
            itemgetter(*order)
            if len(order) > 1
            else lambda values: [values[name] for name in order]
        )
        self._known = frozenset(binds)
        self._constants = {
            name: value
            for name, value in compiled.params.items()
            if name not in required
        }
        self.plain = not (
            " RETURNING " in self.sql
            or compiled.insert_prefetch
            or compiled.update_prefetch
        ) and all(_goes_as_it_is(bind.type) for bind in binds.values())

    def arguments(self, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Put the parameters in the order of the SQL text.

        Raises:
            TypeError: A parameter is missing or not part of the statement.
        """
        self.require(parameters)
        return self.values(parameters)

    def require(self, names: Iterable[str]) -> None:
        """Refuse names that are not part of the statement.

        Raises:
            TypeError: One is not.
        """
        if not self._known.issuperset(names):
            unknown = sorted(set(names) - self._known)
            raise TypeError(f"the statement has no parameters {unknown}")

    def values(self, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Put parameters, whose names are known to be right, in order.

        Raises:
            TypeError: A parameter is missing.
        """
        values = {**self._constants, **parameters} if self._constants else parameters
        try:
            return self._pick(values)
        except KeyError as error:
            raise TypeError(f"the statement needs the parameter {error}") from None


class Changed:
    """What a write tells of itself: the rows it touched."""

    __slots__ = ("rowcount",)

    def __init__(self, rowcount: int) -> None:
        self.rowcount = rowcount


class QuickConnection(Connection):
    """A connection whose writes with parameters skip SQLAlchemy's execution.

    It halves what such a write costs; ``make bench`` shows that on a message. Build
    the statement once, at module level: it is compiled at its first use. Its answer
    has a ``rowcount`` and nothing else. Everything else is SQLAlchemy's own.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._known: dict[tuple[Any, ...], Compiled] = {}

    def execute(
        self, statement: Any, parameters: Any = None, **options: Any
    ) -> CursorResult[Any]:
        """Execute a statement in the transaction at hand."""
        if parameters and not options and isinstance(statement, UpdateBase):
            compiled = self._compile(statement, parameters)
            if compiled.plain:
                return cast("CursorResult[Any]", self._run(compiled, parameters))
        return super().execute(statement, parameters, **options)

    def _compile(self, statement: UpdateBase, parameters: Any) -> Compiled:
        columns = parameters if _is_row(parameters) else parameters[0]
        key = (statement, *columns)
        compiled = self._known.get(key)
        if compiled is None:
            if len(self._known) >= COMPILED_LIMIT:
                del self._known[next(iter(self._known))]
            compiled = Compiled(statement, columns)
            # The key says the names: once for all rows that have them.
            compiled.require(columns)
            self._known[key] = compiled
        return compiled

    def _run(self, compiled: Compiled, parameters: Any) -> Changed:
        database = driver(self)
        try:
            if _is_row(parameters):
                cursor = database.execute(compiled.sql, compiled.values(parameters))
            else:
                rows = [compiled.arguments(each) for each in parameters]
                cursor = database.executemany(compiled.sql, rows)
        except sqlite3.Error as error:
            raise DBAPIError.instance(
                compiled.sql, None, error, sqlite3.Error, hide_parameters=True
            ) from error
        return Changed(cursor.rowcount)


def _is_row(parameters: Any) -> bool:
    # Asking the abstract class takes longer than all else here.
    return type(parameters) is dict or isinstance(parameters, Mapping)


def _goes_as_it_is(kind: TypeEngine[Any]) -> bool:
    # SQLite makes a REAL of an integer by itself.
    if isinstance(kind, Float):
        return True
    return kind.dialect_impl(DIALECT).bind_processor(DIALECT) is None
