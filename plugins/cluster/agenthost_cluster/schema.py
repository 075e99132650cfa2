"""Schema versions: each plugin's tables are made, or brought up to date, at open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenthost import ConfigError, PluginError, SchemaFailed, SchemaSpec
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    select,
    text,
)

from .connect import PREPARING
from .faults import storage_fault

METADATA = MetaData()
VERSIONS = Table(
    "schema_versions",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("version", Integer, nullable=False),
)


def prepare(connection: Connection, schemas: Sequence[SchemaSpec]) -> None:
    """Bring every schema to its newest version, in one transaction.

    Two nodes that start at once stand behind one another: the second finds it done.

    Raises:
        ConfigError: The database was written by a newer agenthost or plugin.
        PluginError: A step failed, or two plugins claim the same name or table.
    """
    refuse_clashes(schemas)
    for spec in schemas:
        refuse_wider_indexes(spec)
    with connection.begin():
        # A step over many rows may take its time.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text(PREPARING))
        METADATA.create_all(connection)
        present = versions(connection)
        for spec in schemas:
            refuse_newer(spec, present.get(spec.name, 0))
        for spec in schemas:
            bring_up(connection, spec, present.get(spec.name))


def refuse_clashes(schemas: Sequence[SchemaSpec]) -> None:
    """Refuse two plugins that claim one schema name or one table."""
    owners = dict.fromkeys(METADATA.tables, "agenthost")
    names: set[str] = set()
    for spec in schemas:
        if spec.name in names:
            raise PluginError(f"two plugins register the schema {spec.name!r}")
        names.add(spec.name)
        for table in spec.metadata.tables:
            if table in owners:
                raise SchemaFailed(
                    spec.name,
                    f"the table {table!r} belongs to {owners[table]!r}; name tables "
                    "after the plugin",
                )
            owners[table] = spec.name


def refuse_wider_indexes(spec: SchemaSpec) -> None:
    """Refuse an index of some rows in SQLite that would be one of all rows here."""
    for table in spec.metadata.tables.values():
        for index in table.indexes:
            here, there = (
                index.dialect_options[name].get("where")
                for name in ("postgresql", "sqlite")
            )
            if here is None and there is not None:
                raise SchemaFailed(
                    spec.name,
                    f"the index {index.name!r} has a sqlite_where; give it a "
                    "postgresql_where as well",
                )


def refuse_newer(spec: SchemaSpec, version: int) -> None:
    """Refuse a database that a newer version has written."""
    if version > len(spec.steps):
        raise ConfigError(
            f"the database holds version {version} of the schema {spec.name!r}, this "
            f"installation knows version {len(spec.steps)}; install the newer version"
        )


def bring_up(connection: Connection, spec: SchemaSpec, version: int | None) -> None:
    """Make the tables of a schema, or run the steps it misses."""
    newest = len(spec.steps)
    if version == newest:
        return
    if version is None:
        spec.metadata.create_all(connection)
    else:
        run_steps(connection, spec, version)
    connection.execute(delete(VERSIONS).where(VERSIONS.c.name == spec.name))
    connection.execute(insert(VERSIONS).values(name=spec.name, version=newest))


def run_steps(connection: Connection, spec: SchemaSpec, version: int) -> None:
    """Run the steps after this version, in order, inside the open transaction."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    operations = Operations(MigrationContext.configure(connection))
    for number, step in enumerate(spec.steps[version:], version + 1):
        try:
            step(operations)
        except Exception as error:
            fault = storage_fault(error)
            if fault:
                raise fault from error
            name = getattr(step, "__name__", "step")
            raise SchemaFailed(
                spec.name,
                f"step {number} ({name}) failed: {error}; the database is unchanged",
            ) from error


def versions(connection: Connection) -> Mapping[str, int]:
    """Give the version of each schema in the database."""
    rows = connection.execute(select(VERSIONS.c.name, VERSIONS.c.version))
    return {name: version for name, version in rows}  # noqa: C416 - rows, not pairs
