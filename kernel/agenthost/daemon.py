"""The daemon: one object owns everything, so two can live in one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .clock import Clock
from .plugins.guards import Guards

if TYPE_CHECKING:
    from .egress import Egress
    from .files import Files
    from .kv import KeyValues
    from .store import Store
    from .web.front import Front


class Daemon:
    """A running agenthost and everything it owns."""

    home: Path
    clock: Clock
    guards: Guards
    store: Store
    egress: Egress
    files: Files
    kv: KeyValues
    front: Front
