"""Schema versions: each plugin's tables are made, or brought up to date, at open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

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

from .backup import back_up
from .connect import enforce_foreign_keys
from .damage import CHECK, CLEAN, damaged
from .driver import driver
from .faults import storage_fault
from .ready import LAYOUT, layout

METADATA = MetaData()

VERSIONS = Table(
    "schema_versions",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("version", Integer, nullable=False),
)

MARKS = Table(
    "store_marks",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Integer, nullable=False),
)


def prepare(connection: Connection, path: Path, schemas: Sequence[SchemaSpec]) -> bool:
    """Check the database and bring every schema to its newest version.

    Everything happens in one transaction: after an error the database is as before.

    Returns:
        Whether the file is known to be whole: it is new, or was looked through because
        it had not been closed cleanly. Otherwise nobody has looked yet.

    Raises:
        ConfigError: The file is damaged, or written by a newer agenthost or plugin.
        PluginError: A step failed, or two plugins claim the same name or table.
    """
    refuse_clashes(schemas)
    with connection.begin():
        METADATA.create_all(connection)
        clean = mark(connection, CLEAN)
        present = versions(connection)
    if clean is not None and not clean:
        check(connection, path)
    refuse_newer(schemas, present)
    if behind(schemas, present):
        back_up(driver(connection), path, sum(present.values()))
    enforce_foreign_keys(connection, on=False)
    with connection.begin():
        for spec in schemas:
            bring_up(connection, spec, present.get(spec.name))
        set_mark(connection, CLEAN, 0)
        set_mark(connection, LAYOUT, layout(schemas))
    enforce_foreign_keys(connection, on=True)
    return not clean


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


def refuse_newer(schemas: Sequence[SchemaSpec], present: Mapping[str, int]) -> None:
    """Refuse a database that a newer version has written."""
    for spec in schemas:
        version = present.get(spec.name, 0)
        if version > len(spec.steps):
            raise ConfigError(
                f"the database holds version {version} of the schema {spec.name!r}, "
                f"this installation knows version {len(spec.steps)}; install the newer "
                "version again, or restore a backup made before the upgrade"
            )


def behind(schemas: Sequence[SchemaSpec], present: Mapping[str, int]) -> bool:
    """Tell whether a schema that exists has steps to run."""
    return any(
        present.get(spec.name, len(spec.steps)) < len(spec.steps) for spec in schemas
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
        name = getattr(step, "__name__", "step")
        try:
            step(operations)
            broken = connection.execute(text("PRAGMA foreign_key_check")).first()
        except Exception as error:
            fault = storage_fault(error)
            if fault:
                raise fault from error
            raise SchemaFailed(
                spec.name,
                f"step {number} ({name}) failed: {error}; the database is unchanged",
            ) from error
        if broken:
            raise SchemaFailed(
                spec.name,
                f"step {number} ({name}) leaves rows of {broken[0]!r} that refer to "
                "nothing; the database is unchanged",
            )


def versions(connection: Connection) -> dict[str, int]:
    """Give the version of each schema in the database."""
    rows = connection.execute(select(VERSIONS.c.name, VERSIONS.c.version))
    return {name: version for name, version in rows}  # noqa: C416 - rows, not pairs


def mark(connection: Connection, name: str) -> int | None:
    """Read a mark; None when it was never set."""
    return connection.execute(
        select(MARKS.c.value).where(MARKS.c.name == name)
    ).scalar_one_or_none()


def set_mark(connection: Connection, name: str, value: int) -> None:
    """Set a mark."""
    connection.execute(delete(MARKS).where(MARKS.c.name == name))
    connection.execute(insert(MARKS).values(name=name, value=value))


def check(connection: Connection, path: Path) -> None:
    """Look for damage after a crash.

    Raises:
        ConfigError: The file is damaged.
    """
    verdict = driver(connection).execute(CHECK).fetchone()[0]
    if verdict != "ok":
        raise damaged(path)
