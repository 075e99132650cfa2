"""The table of workflows, and its writes."""

from __future__ import annotations

from collections.abc import Mapping

from agenthost import Conflict, NotFound
from sqlalchemy import (
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

MOST = 1_000
"""Workflows that exist at once."""

metadata = MetaData()

workflows = Table(
    "workflows",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, index=True),
    Column("description", Text, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("max_cost_micro_usd", Integer),
    Column("definition", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("file", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
# Of one file there is one workflow, however often it is loaded at once.
Index(
    "workflows_by_file",
    workflows.c.file,
    unique=True,
    sqlite_where=text("file <> ''"),
    postgresql_where=text("file <> ''"),
)


def add(connection: Connection, row: Mapping[str, object]) -> None:
    """Keep a new workflow.

    Raises:
        Conflict: There are too many.
    """
    count = select(func.count()).select_from(workflows)
    if connection.execute(count).scalar_one() >= MOST:
        raise Conflict(f"there are {MOST} workflows; delete one that is not needed")
    connection.execute(insert(workflows).values(**row))


def replace(connection: Connection, row: Mapping[str, object]) -> None:
    """Keep another definition of a workflow.

    Raises:
        NotFound: It was deleted meanwhile.
    """
    there = update(workflows).where(workflows.c.id == row["id"]).values(**row)
    if not connection.execute(there).rowcount:
        raise NotFound("workflow", str(row["id"]))


def remove(connection: Connection, workflow_id: str) -> None:
    """Delete a workflow.

    Raises:
        NotFound: There is none.
    """
    gone = delete(workflows).where(workflows.c.id == workflow_id)
    if not connection.execute(gone).rowcount:
        raise NotFound("workflow", workflow_id)
