"""What the turn engine works with."""

from __future__ import annotations

from typing import Protocol

from ..clock import Clock
from ..config_model import Config
from ..observe import Observers
from ..ports.agents import Agents
from ..ports.approvals import Approvals
from ..ports.compaction import Compaction
from ..ports.models import Models
from ..ports.records import Journal, Ledger, Sessions
from ..ports.tools import Toolbox


class Parts(Protocol):
    """What of a daemon turns use; all of it is there before the engine is."""

    clock: Clock
    config: Config
    observers: Observers
    agents: Agents
    sessions: Sessions
    journal: Journal
    usage: Ledger
    models: Models
    compaction: Compaction
    toolbox: Toolbox
    approvals: Approvals
