"""Indexes of some rows are such in every database."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points

import pytest
from agenthost import SchemaFailed, SchemaSpec
from agenthost_cluster.schema import refuse_wider_indexes
from sqlalchemy import Column, Index, Integer, MetaData, Table, text


def of_ours() -> Iterator[SchemaSpec]:
    """The schemas of all our plugins."""
    for entry in entry_points(group="agenthost.plugins"):
        offer = getattr(entry.load(), "register_schema", None)
        if offer is not None:
            found = offer()
            yield from [found] if isinstance(found, SchemaSpec) else found


def test_no_index_of_ours_is_wider_than_in_sqlite() -> None:
    schemas = [*of_ours()]
    assert {"kernel", "jobs", "keys"} <= {spec.name for spec in schemas}
    for spec in schemas:
        refuse_wider_indexes(spec)


def test_an_index_that_would_be_wider_is_refused() -> None:
    metadata = MetaData()
    table = Table("half", metadata, Column("id", Integer, primary_key=True))
    Index("some_of_half", table.c.id, unique=True, sqlite_where=text("id > 3"))
    with pytest.raises(SchemaFailed, match=r"'some_of_half'.*postgresql_where"):
        refuse_wider_indexes(SchemaSpec("half", metadata))
