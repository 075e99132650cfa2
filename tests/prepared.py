"""Databases with empty tables: made once in a process, and copied for each new home.

To make the tables takes a fifth of a daemon's start, and thousands of tests start one.
A copy is a home that was closed in order, which most starts find.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenthost_storage.sqlite import store
from agenthost_storage.sqlite.driver import driver
from agenthost_storage.sqlite.store import note

if TYPE_CHECKING:
    from agenthost import SchemaSpec
    from agenthost_storage.sqlite.writer import Opened
    from sqlalchemy import Connection

Open = Callable[[Path, Sequence["SchemaSpec"]], "tuple[Opened, bool]"]


class Prepared:
    """Stands in for ``open_prepared``.

    Args:
        really: What it stands for.
    """

    def __init__(self, really: Open) -> None:
        self._really = really
        # The schemas are kept, so that none gets the number of another.
        self._known: dict[tuple[object, ...], tuple[bytes, Sequence[SchemaSpec]]] = {}

    def __call__(
        self, path: Path, schemas: Sequence[SchemaSpec]
    ) -> tuple[Opened, bool]:
        """Open a database; one that is not there yet is a copy."""
        if not path.exists():
            key = tuple((s.name, s.steps, id(s.metadata)) for s in schemas)
            if key not in self._known:
                self._known[key] = self._made(schemas), schemas
            path.write_bytes(self._known[key][0])
        return self._really(path, schemas)

    def _made(self, schemas: Sequence[SchemaSpec]) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            connection, _ = self._really(Path(folder, "empty.db"), schemas)
            try:
                return _closed_in_order(connection)  # type: ignore[arg-type]  # reason: a new one is SQLAlchemy's
            finally:
                connection.close()


def _closed_in_order(connection: Connection) -> bytes:
    with connection.begin():
        note(connection, 1)
    return driver(connection).serialize()


REALLY = store.open_prepared


def install() -> None:
    """Have the daemons of this process open their databases so."""
    store.open_prepared = Prepared(REALLY)
