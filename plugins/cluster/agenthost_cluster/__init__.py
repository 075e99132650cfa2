"""One database for several daemons: the store on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec

from agenthost import (
    Backend,
    ConfigError,
    SchemaSpec,
    Store,
    StoreBackend,
    hookimpl,
)


async def open_store(url: str, schemas: Sequence[SchemaSpec]) -> Store:
    """Open the PostgreSQL database of a URL such as ``postgresql://host/agenthost``.

    Raises:
        ConfigError: The driver is not installed, or the URL is none.
        AgentHostError: As ``PostgresStore.open`` tells.
    """
    _require_driver()
    from .store import PostgresStore

    return await PostgresStore.open(url, schemas)


def count_tables(url: str, owned: Callable[[str], bool]) -> Mapping[str, int]:
    """Count the rows of the tables whose names are owned, while nobody has it open."""
    _require_driver()
    from .purge import tables

    return tables(url, owned)


def drop_tables(url: str, owned: Callable[[str], bool]) -> None:
    """Drop the tables whose names are owned, while nobody has it open.

    Raises:
        Conflict: A table of somebody else refers to one of them.
    """
    _require_driver()
    from .purge import drop

    drop(url, owned)


def _require_driver() -> None:
    if find_spec("psycopg") is None:
        raise ConfigError(
            "storage.url: PostgreSQL needs a driver that is not installed; install "
            "agenthost with it: pip install 'agenthost[cluster]'"
        )


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the database."""
    yield StoreBackend("postgresql", open_store, count_tables, drop_tables)
