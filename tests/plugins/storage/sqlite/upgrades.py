"""Judge a plugin's schema steps against its tables as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agenthost import SchemaSpec
from agenthost_storage.sqlite.connect import connect
from agenthost_storage.sqlite.schema import bring_up, prepare
from sqlalchemy import Connection, MetaData, inspect


def assert_steps_reach_newest(spec: SchemaSpec, first: MetaData) -> None:
    """Assert that all steps, run on the first version, make what create_all makes.

    Args:
        spec: The schema with its steps.
        first: The tables as version 0 had them.
    """
    assert shape(first, spec) == shape(spec.metadata)


def shape(metadata: MetaData, upgrade: SchemaSpec | None = None) -> dict[str, Any]:
    connection = connect(Path(":memory:"))
    try:
        prepare(connection, Path("unused.db"), [SchemaSpec("made", metadata)])
        if upgrade:
            with connection.begin():
                bring_up(connection, upgrade, 0)
        return described(connection)
    finally:
        connection.close()


def described(connection: Connection) -> dict[str, Any]:
    found = inspect(connection)
    return {
        table: {
            "columns": [
                {**column, "type": str(column["type"])}
                for column in found.get_columns(table)
            ],
            "primary key": found.get_pk_constraint(table)["constrained_columns"],
            "foreign keys": found.get_foreign_keys(table),
            "indexes": [_index(each) for each in found.get_indexes(table)],
            "unique": found.get_unique_constraints(table),
        }
        for table in found.get_table_names()
        if table not in ("schema_versions", "store_marks")
    }


def _index(told: Any) -> dict[str, Any]:
    """Write the condition of a partial one as a text: two of them are not equal."""
    where = str(told.get("dialect_options", {}).get("sqlite_where", ""))
    return {**told, "dialect_options": where}
