"""What the turn engine works with."""

from __future__ import annotations

from dataclasses import dataclass

from ..agents import Agents
from ..clock import Clock
from ..config_model import Turns as Limits
from ..observe import Observers
from ..ports.approvals import Approvals
from ..ports.compaction import Compaction
from ..ports.models import Models
from ..ports.records import Journal, Ledger, Sessions
from .tools import Toolbox


@dataclass(frozen=True, slots=True)
class Parts:
    """The services that turns use; each is there before the engine is."""

    limits: Limits
    clock: Clock
    agents: Agents
    sessions: Sessions
    journal: Journal
    usage: Ledger
    models: Models
    compaction: Compaction
    observers: Observers
    toolbox: Toolbox
    approvals: Approvals
