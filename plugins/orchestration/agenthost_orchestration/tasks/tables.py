"""The table of tasks."""

from __future__ import annotations

from sqlalchemy import REAL, Column, Index, MetaData, Table, Text

metadata = MetaData()

tasks = Table(
    "tasks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("posted_by", Text, nullable=False),
    Column("assigned_to", Text, nullable=False),
    Column("claimed_by", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("updated_at", REAL, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
Index("tasks_by_status", tasks.c.status, tasks.c.created_at)
