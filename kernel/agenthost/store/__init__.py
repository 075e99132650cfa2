"""The database: one writer thread that commits together, compiled reads.

``Store.write(fn)`` starts at once and gives a future; ``fn(connection)`` is a plain
function over a SQLAlchemy Core connection, touches nothing else and may run twice.
When the future has a result, the commit is on disk (fsynced).
"""

from .lock import HomeLock, lock_home
from .reader import Row
from .store import Store

__all__ = ["HomeLock", "Row", "Store", "lock_home"]
