"""Writes that skip SQLAlchemy's execution mean the same as those that do not."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path

import pytest
from agenthost_storage.sqlite.connect import connect
from sqlalchemy import (
    REAL,
    Column,
    Connection,
    Enum,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

METADATA = MetaData()


class Colour(enum.Enum):
    """A value that SQLAlchemy writes by its name."""

    RED = 1


THINGS = Table(
    "things",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("count", Integer, nullable=False, default=7),
    Column("at", REAL),
    Column("colour", Enum(Colour)),
)
ADD = insert(THINGS)
RAISE = (
    update(THINGS)
    .where(THINGS.c.id == bindparam("thing"))
    .values(count=THINGS.c.count + bindparam("by"), at=5)
)
REMOVE = delete(THINGS).where(THINGS.c.id == bindparam("thing"))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with connect(tmp_path / "x.db") as opened:
        METADATA.create_all(opened)
        opened.commit()
        with opened.begin():
            yield opened


def rows(connection: Connection) -> list[tuple[object, ...]]:
    found = connection.execute(select(THINGS).order_by(THINGS.c.id))
    return [tuple(row) for row in found]


def test_a_write_counts_its_rows(connection: Connection) -> None:
    connection.execute(ADD, {"id": "a", "count": 1})
    assert connection.execute(RAISE, {"thing": "a", "by": 2}).rowcount == 1
    assert connection.execute(RAISE, {"thing": "b", "by": 2}).rowcount == 0
    assert rows(connection) == [("a", 3, 5.0, None)]
    assert connection.execute(REMOVE, {"thing": "a"}).rowcount == 1


def test_one_statement_takes_other_columns_each_time(connection: Connection) -> None:
    connection.execute(ADD, [{"id": "a", "count": 1}, {"id": "b", "count": 2}])
    connection.execute(ADD, {"id": "c", "count": 3, "at": 2})
    assert rows(connection) == [
        ("a", 1, None, None),
        ("b", 2, None, None),
        ("c", 3, 2.0, None),
    ]


def test_what_python_fills_in_or_converts_is_not_lost(connection: Connection) -> None:
    connection.execute(ADD, {"id": "a", "colour": Colour.RED})
    assert rows(connection) == [("a", 7, None, Colour.RED)]


def test_rows_that_come_back_come_back(connection: Connection) -> None:
    added = ADD.returning(THINGS.c.id)
    assert connection.execute(added, {"id": "a", "count": 1}).scalar_one() == "a"


def test_a_broken_rule_is_an_error_of_sqlalchemy(connection: Connection) -> None:
    connection.execute(ADD, {"id": "a", "count": 1})
    with pytest.raises(IntegrityError) as caught:
        connection.execute(ADD, {"id": "a", "count": 12_345})
    assert "12345" not in str(caught.value)


def test_a_parameter_that_is_missing_is_named(connection: Connection) -> None:
    with pytest.raises(TypeError, match="thing"):
        connection.execute(RAISE, {"by": 1})
