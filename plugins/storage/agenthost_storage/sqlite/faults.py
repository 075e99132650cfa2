"""What a SQLite error means to the caller: try later, make room, or a bug."""

from __future__ import annotations

import sqlite3

from agenthost import AgentHostError, StorageFull, Unavailable

UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "the database is locked by another process; try again",
    sqlite3.SQLITE_LOCKED: "the database is locked by another process; try again",
    sqlite3.SQLITE_PROTOCOL: "the database is locked by another process; try again",
    sqlite3.SQLITE_IOERR: "the disk refused to read or write the database",
    sqlite3.SQLITE_CANTOPEN: "the database cannot be opened",
    sqlite3.SQLITE_READONLY: "the database cannot be written",
    sqlite3.SQLITE_NOMEM: "there is no memory left for the database",
    sqlite3.SQLITE_CORRUPT: "the database is damaged; restore the last backup",
    sqlite3.SQLITE_NOTADB: "the database is damaged; restore the last backup",
}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def primary_code(error: BaseException) -> int | None:
    """Give SQLite's primary result code of an error, wrapped or bare, if it has one."""
    # SQLAlchemy's errors have it as ``orig``; asking by type would import them.
    original = getattr(error, "orig", None) or error
    code = getattr(original, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def storage_fault(error: BaseException) -> AgentHostError | None:
    """Translate an error of the storage itself; None for any other error."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_FULL:
        return StorageFull("the disk is full; free some space and try again")
    if code in UNAVAILABLE:
        return Unavailable(UNAVAILABLE[code])
    return None
