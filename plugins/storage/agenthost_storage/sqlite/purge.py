"""Tables that a plugin which is gone has left in the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agenthost import Conflict
from sqlalchemy import (
    Connection,
    MetaData,
    Table,
    delete,
    func,
    inspect,
    select,
    table,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import DropTable

from .connect import connect, enforce_foreign_keys
from .faults import storage_fault
from .schema import METADATA, VERSIONS, versions

Owned = Callable[[str], bool]


def tables(path: Path, owned: Owned) -> Mapping[str, int]:
    """Count the rows of each table whose name is owned."""
    with _opened(path) as connection:
        if connection is None:
            return {}
        return {name: _rows(connection, name) for name in _names(connection, owned)}


def drop(path: Path, owned: Owned) -> None:
    """Drop the tables whose names are owned, and forget schemas of such names.

    Raises:
        Conflict: A table of somebody else refers to one of them.
    """
    with _opened(path) as connection:
        if connection is None:
            return
        names = _names(connection, owned)
        _refuse_referred(connection, names)
        # Shorter names first: a virtual table takes its own further tables along.
        for name in sorted(names, key=lambda each: (len(each), each)):
            if inspect(connection).has_table(name):
                connection.execute(DropTable(Table(name, MetaData())))
        for schema in filter(owned, versions(connection)):
            connection.execute(delete(VERSIONS).where(VERSIONS.c.name == schema))


@contextmanager
def _opened(path: Path) -> Iterator[Connection | None]:
    """Work in one transaction on a database, None where there is none."""
    if not path.exists():
        yield None
        return
    try:
        with connect(path) as connection:
            # What refers to a table that goes is looked at before, and goes with it.
            enforce_foreign_keys(connection, on=False)
            with connection.begin():
                METADATA.create_all(connection)
                yield connection
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise storage_fault(error) or error from error


def _names(connection: Connection, owned: Owned) -> list[str]:
    found = inspect(connection).get_table_names()
    return [name for name in found if owned(name) and name not in METADATA.tables]


def _rows(connection: Connection, name: str) -> int:
    counted = select(func.count()).select_from(table(name))
    return int(connection.execute(counted).scalar_one())


def _refuse_referred(connection: Connection, names: list[str]) -> None:
    inspector = inspect(connection)
    for other in set(inspector.get_table_names()) - set(names):
        for key in inspector.get_foreign_keys(other):
            if key["referred_table"] in names:
                raise Conflict(
                    f"the table {other!r} of another plugin refers to "
                    f"{key['referred_table']!r}; purge that plugin first"
                )
