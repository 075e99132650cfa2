"""The turn engine: how an agent comes to its answer, one message at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agenthost import (
    Backend,
    ConfigSection,
    Engine,
    Host,
    ManifestTable,
    Observers,
    TurnsBackend,
    hookimpl,
)


def open_engine(host: Host, observers: Observers) -> Engine:
    """Run the turns of a daemon."""
    from .engine import TurnEngine
    from .parts import parts_of

    return TurnEngine(parts_of(host, observers))


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read the limits of turns."""
    from .settings import TurnsSection

    yield ConfigSection("turns", TurnsSection)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read which model is to answer and how, and how long a turn may be silent."""
    from .manifest import ANSWERING, HEARTBEAT, ROUTING

    yield ANSWERING
    yield HEARTBEAT
    yield ROUTING


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer what runs turns."""
    yield TurnsBackend("mailboxes", open_engine)
