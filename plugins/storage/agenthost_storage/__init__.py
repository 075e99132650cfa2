"""What is kept on this machine: the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from agenthost import (
    BackendSpec,
    ConfigError,
    Port,
    SchemaSpec,
    Store,
    hookimpl,
)

_SCHEME = "sqlite://"


async def open_store(url: str, schemas: Sequence[SchemaSpec]) -> Store:
    """Open the SQLite database of a URL such as ``sqlite:////var/lib/agenthost.db``.

    Raises:
        ConfigError: The URL names no absolute path, or the file cannot be used.
        AgentHostError: As ``SqliteStore.open`` tells.
    """
    from .sqlite import SqliteStore

    path = Path(url.removeprefix(_SCHEME).removeprefix("/"))
    if not url.startswith(_SCHEME) or not path.is_absolute():
        raise ConfigError(
            "storage.url: SQLite needs the absolute path of a file, such as "
            "sqlite:////var/lib/agenthost/agenthost.db"
        )
    return await SqliteStore.open(path, schemas)


@hookimpl
def register_backend() -> Iterable[BackendSpec]:
    """Offer the database."""
    yield BackendSpec(Port.STORE, "sqlite", open_store)
