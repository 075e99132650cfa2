"""What an error of PostgreSQL means to the caller: try later, make room, or a bug."""

from __future__ import annotations

import psycopg
from agenthost import AgentHostError, InvalidInput, StorageFull, Unavailable

FULL = "53100"
BUSY = frozenset({"55P03", "57014", "40001", "40P01", "25P03", "53300", "53200"})
"""Somebody held a lock for too long, or there is no room for one more."""
LOST_CLASSES = ("08", "57P", "58", "XX")
"""Connections that were lost, a server that stops, disks and files that fail."""
READ_ONLY = "25006"


def original(error: BaseException) -> BaseException:
    """Give psycopg's own error where SQLAlchemy has put its own around it."""
    return getattr(error, "orig", None) or error


def storage_fault(error: BaseException) -> AgentHostError | None:
    """Translate an error of the storage itself; None for any other error."""
    inner = original(error)
    if not isinstance(inner, psycopg.Error):
        return None
    state = inner.sqlstate
    if state == FULL:
        return StorageFull("the database's disk is full; free some space and try again")
    if state in BUSY:
        return Unavailable("the database is busy; try again")
    if state == READ_ONLY:
        return Unavailable("the database takes no writes now; try again")
    lost = state is None and isinstance(
        inner, psycopg.OperationalError | psycopg.InterfaceError
    )
    if lost or (state or "").startswith(LOST_CLASSES):
        return Unavailable("the database cannot be reached; try again")
    return None


def unfit(error: BaseException) -> AgentHostError | None:
    """Say what is wrong with a value that no text of PostgreSQL can hold."""
    inner = original(error)
    if isinstance(inner, psycopg.DataError) and "NUL" in str(inner):
        return InvalidInput("text", "holds a NUL character; leave it out")
    return None
