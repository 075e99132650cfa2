"""Tables that a plugin which is gone has left in the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import psycopg
from agenthost import Conflict
from sqlalchemy import (
    Connection,
    MetaData,
    delete,
    func,
    inspect,
    select,
    table,
)
from sqlalchemy.exc import SQLAlchemyError

from .connect import engine_of, options_of
from .faults import storage_fault
from .schema import METADATA, VERSIONS, versions

Owned = Callable[[str], bool]


def tables(url: str, owned: Owned) -> Mapping[str, int]:
    """Count the rows of each table whose name is owned."""
    with _opened(url) as connection:
        return {name: _rows(connection, name) for name in _names(connection, owned)}


def drop(url: str, owned: Owned) -> None:
    """Drop the tables whose names are owned, and forget schemas of such names.

    Raises:
        Conflict: A table of somebody else refers to one of them.
    """
    with _opened(url) as connection:
        names = _names(connection, owned)
        _refuse_referred(connection, names)
        gone = MetaData()
        gone.reflect(connection, only=names)
        gone.drop_all(connection)
        for schema in filter(owned, versions(connection)):
            connection.execute(delete(VERSIONS).where(VERSIONS.c.name == schema))


@contextmanager
def _opened(url: str) -> Iterator[Connection]:
    """Work in one transaction on a database."""
    try:
        with engine_of(options_of(url)).begin() as connection:
            METADATA.create_all(connection)
            yield connection
    except (SQLAlchemyError, psycopg.Error) as error:
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
