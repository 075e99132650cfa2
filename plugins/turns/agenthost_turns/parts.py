"""What the turn engine works with."""

from __future__ import annotations

from dataclasses import dataclass

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
)

from .settings import TurnsSection


@dataclass(frozen=True, slots=True)
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
    """Its ``writer`` signs steps, and is another one once it has entered anew."""


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
