"""What the turn engine works with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agenthost import (
    Agents,
    Approvals,
    Clock,
    Compaction,
    Host,
    Journal,
    Ledger,
    Models,
    Observers,
    Sessions,
    Toolbox,
    Work,
)
from agenthost_values.value_class import value_class

from .settings import TurnsSection

if TYPE_CHECKING:
    from .nodes import Nodes


@value_class
class Parts:
    """What of a daemon turns use; all of it is there before the engine is."""

    limits: TurnsSection
    clock: Clock
    observers: Observers
    agents: Agents
    sessions: Sessions
    journal: Journal
    usage: Ledger
    models: Models
    compaction: Compaction
    approvals: Approvals
    toolbox: Toolbox
    host: Host
    """Its ``writer`` signs what lines up, and is another once it has entered anew."""


def parts_of(host: Host, observers: Observers) -> Parts:
    """Take them from the daemon once: a turn asks for them often."""
    return Parts(
        limits=host.settings(TurnsSection),
        clock=host.clock,
        observers=observers,
        agents=host.agents,
        sessions=host.sessions,
        journal=host.journal,
        usage=host.usage,
        models=host.models,
        compaction=host.compaction,
        approvals=host.approvals,
        toolbox=host.toolbox,
        host=host,
    )


def nodes_of(parts: Parts, live: Mapping[str, Work]) -> Nodes | None:
    """Reach the other daemons of the database; None where there can be none."""
    if parts.host.store.signals is None:
        return None
    from .nodes import Nodes

    return Nodes(parts, live)
