"""The database: one writer thread that commits together, compiled reads.

``SqliteStore.write(fn)`` starts at once and gives a future; ``fn(connection)`` is a
plain function over a SQLAlchemy Core connection, touches nothing else and may run
twice. When the future has a result, the commit is on disk (fsynced).
"""

from .store import SqliteStore

__all__ = ["SqliteStore"]
