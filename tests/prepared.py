"""What is the same at every start of a daemon: worked out once in a process.

Thousands of tests start one. To make the tables of an empty database takes a fifth of
that; a copy is a home that was closed in order, which most starts find. To word SQL
statements, to look through the installed plugins and to read the system's certificates
take a tenth each, and so do the self-tests of the security systems; to make the schemas
of the API's description takes half a second.

Nobody takes the power from these daemons: their commits do not wait for the disk. A
daemon in a process of its own, which tests of crashes start, has none of this.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from operator import is_
from pathlib import Path
from sqlite3 import Connection
from types import FunctionType
from typing import TYPE_CHECKING, Any

from agenthost.plugins import loader, security
from agenthost.plugins.hooks import Hooks
from agenthost.plugins.validation import hook_names, hooks_of, known_hooks
from agenthost_egress import session
from agenthost_front import openapi
from agenthost_storage.sqlite import compiled, store
from agenthost_storage.sqlite.driver import driver
from agenthost_storage.sqlite.store import note

if TYPE_CHECKING:
    import pluggy
    from agenthost import SchemaSpec, SecuritySystem
    from agenthost.plugins.calls import Implementation
    from agenthost.plugins.discovery import Entry
    from agenthost.ports.backend import Backends
    from agenthost_front.dispatch import Endpoint
    from agenthost_storage.sqlite.compiled import Compiled
    from agenthost_storage.sqlite.writer import Opened
    from sqlalchemy import Connection as Wrapped
    from sqlalchemy import Select, UpdateBase

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
        opened, whole = self._really(path, schemas)
        bare = opened if isinstance(opened, Connection) else driver(opened)
        bare.execute("PRAGMA synchronous = OFF")
        return opened, whole

    def _made(self, schemas: Sequence[SchemaSpec]) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            connection, _ = self._really(Path(folder, "empty.db"), schemas)
            try:
                return _closed_in_order(connection)  # type: ignore[arg-type]  # reason: a new one is SQLAlchemy's
            finally:
                connection.close()


def _closed_in_order(connection: Wrapped) -> bytes:
    with connection.begin():
        note(connection, 1)
    return driver(connection).serialize()


class Looked:
    """Stands in for ``hooks_of``: modules are looked through once.

    One of which a test has replaced, added or removed a hook is looked through again.
    What others are checked against, with the hooks of now, is lent to one at a time.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], dict[str, Implementation]] = {}
        self._managers: dict[tuple[str, ...], list[pluggy.PluginManager]] = {}

    def __call__(self, entry: Entry, _: None) -> dict[str, Implementation]:
        """Find a plugin's implementations by hook."""
        if type(entry).__module__ != "importlib_metadata":
            return self._look(entry)
        names = vars(entry.load())
        key = entry, *map(names.get, hook_names())
        if key not in self._known:
            self._known[key] = self._look(entry)
        return dict(self._known[key])

    def _look(self, entry: Entry) -> dict[str, Implementation]:
        idle = self._managers.setdefault(tuple(dir(Hooks)), [])
        manager = idle.pop() if idle else known_hooks()
        try:
            return hooks_of(entry, manager)
        finally:
            idle.append(manager)


class Proved:
    """Stands in for what runs a self-test: a module's proves the same at each start.

    It is run again where a test has replaced something in its module, or proves another
    backend by it, and while a daemon runs. What proves its own state always is.
    """

    def __init__(self) -> None:
        self._known: dict[object, tuple[object, ...]] = {}
        self._last: dict[object, SecuritySystem] = {}

    def __call__(self, system: SecuritySystem, backends: Backends) -> None:
        """Run it, unless all that it rests on is as it was."""
        test, kind = system.self_test, system.proves_on
        if not isinstance(test, FunctionType) or test.__module__[:10] != "agenthost_":
            REALLY_PROVED(system, backends)
            return
        opens = None if kind is None else backends.find(kind).open
        now = (opens, *test.__globals__.values())
        known = self._known.get(test, ())
        same = len(known) == len(now) and all(map(is_, known, now))
        if not same or self._last.get(test) is system:
            REALLY_PROVED(system, backends)
        self._known[test], self._last[test] = now, system


@lru_cache(maxsize=4096)
def _worded(
    statement: Select[Any] | UpdateBase, columns: tuple[str, ...] | None
) -> Compiled:
    return REALLY_WORDED(statement, columns)


def worded(
    statement: Select[Any] | UpdateBase, columns: Iterable[str] | None = None
) -> Compiled:
    """Stand in for ``Compiled``: what was worded for one database fits every other."""
    return _worded(statement, None if columns is None else tuple(columns))


@cache
def _trusting(_places: tuple[str | None, ...]) -> ssl.SSLContext:
    return REALLY_TRUSTING()


def trusting() -> ssl.SSLContext:
    """Stand in for what opens a session: the system's certificates are read once."""
    return _trusting(tuple(map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))))


class Schemas:
    """Stands in for what makes the schemas of the API's description.

    The same models have the same ones, and to make them takes half a second.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Any, Any]] = {}

    def __call__(self, endpoints: Sequence[Endpoint]) -> tuple[Any, Any]:
        """Give the schemas of these routes' bodies and answers."""
        key = tuple(tuple(openapi._kinds(one.route)) for one in endpoints)
        if key not in self._known:
            self._known[key] = REALLY_SCHEMAS(endpoints)
        return self._known[key]


REALLY = store.open_prepared
REALLY_PROVED = security._test
REALLY_WORDED = compiled.Compiled
REALLY_TRUSTING = session._prepare
REALLY_SCHEMAS = openapi._schemas


def install() -> None:
    """Have the daemons of this process start so."""
    store.open_prepared = Prepared(REALLY)
    vars(loader).update(known_hooks=lambda: None, hooks_of=Looked())
    security._test = Proved()
    session._prepare = trusting
    openapi._schemas = Schemas()
    compiled.Compiled = worded  # type: ignore[assignment,misc]  # reason: called alike
