"""Labels of what a summary stands for."""

from __future__ import annotations

from agenthost import Store
from sqlalchemy import Connection, bindparam, literal_column, select, union, update

from .codec import dump_labels, load_labels
from .tables import LABELLED, messages, sessions

# What is summarised is still there; what a fork has of its origin's summary is not.
_BEHIND = union(
    select(messages.c.labels).where(messages.c.session_id == bindparam("id"), LABELLED),
    select(sessions.c.labels).where(
        sessions.c.id == bindparam("id"),
        sessions.c.labels != literal_column("''"),
    ),
).subquery()
_LABELS = select(_BEHIND.c.labels)


async def labels_behind(store: Store, session_id: str) -> frozenset[str]:
    """Read the labels of all that was ever said in a session, and before it."""
    rows = await store.read(_LABELS, {"id": session_id})
    return frozenset().union(*(load_labels(row["labels"]) for row in rows))


def inherit(connection: Connection, session_id: str, labels: frozenset[str]) -> None:
    """Give a session the labels of what stands behind the summary it begins with."""
    of_fork = update(sessions).where(sessions.c.id == session_id)
    connection.execute(of_fork.values(labels=dump_labels(labels)))
