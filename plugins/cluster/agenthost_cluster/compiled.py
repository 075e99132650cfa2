"""Statements compiled once: SQLAlchemy's text, without its work at every execution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Select, text

from .dialect import made

LIMIT = 512
"""Statements that are remembered with their text."""
DIALECT = made()


class Compiled:
    """A statement as psycopg takes it, and which values it has of its own.

    Args:
        statement: Built once; values go where it has a ``bindparam``, or ``:name``.
    """

    __slots__ = ("_constants", "_known", "_needed", "sql")

    def __init__(self, statement: Select[Any] | str) -> None:
        built = text(statement) if isinstance(statement, str) else statement
        compiled = built.compile(
            dialect=DIALECT, compile_kwargs={"render_postcompile": True}
        )
        self.sql = compiled.string
        self._known = frozenset(compiled.binds)
        self._needed = {name for name, bind in compiled.binds.items() if bind.required}
        self._constants = {
            name: value
            for name, value in compiled.params.items()
            if name not in self._needed
        }

    def arguments(self, parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Give the values by name, None when the statement has none.

        Raises:
            TypeError: A parameter is missing or not part of the statement.
        """
        unfit = (parameters.keys() - self._known) | (self._needed - parameters.keys())
        if unfit:
            raise TypeError(
                f"the statement does not fit the parameters {sorted(unfit)}"
            )
        return {**self._constants, **parameters}


class Compiler:
    """Remembers what was compiled, by the statement's identity or its text."""

    def __init__(self) -> None:
        self._known: dict[Select[Any] | str, Compiled] = {}

    def __call__(self, statement: Select[Any] | str) -> Compiled:
        """Compile a statement, the first time it is seen."""
        known = self._known.get(statement)
        if known is None:
            if len(self._known) >= LIMIT:
                del self._known[next(iter(self._known))]
            known = self._known[statement] = Compiled(statement)
        return known
