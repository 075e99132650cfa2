"""The test harness for plugin authors: running daemons, a scripted model, contracts.

The contract classes import what they need when they are first asked for, so that the
pytest plugin stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .clock import ManualClock

if TYPE_CHECKING:
    from .daemons import Daemons, RunningAgent, RunningDaemon, RunningTurn
    from .exchanges import installed_exchange
    from .ports.agents import AgentsContract
    from .ports.approvals import AnswerApproval, ApprovalsContract, PersonSaid
    from .ports.compaction import CompactionContract
    from .ports.counting import CountingCompaction
    from .ports.events import EventsContract
    from .ports.jobs import JobsContract, OpenJobs
    from .ports.memory import MemoryEvents, MemoryVault
    from .ports.memory_jobs import MemoryJobs
    from .ports.memory_store import MemoryStore
    from .ports.models import ModelsContract
    from .ports.store import OpenStore, StoreContract
    from .ports.tools import ToolsContract
    from .ports.turns import TurnsContract
    from .ports.vault import OpenVault, VaultContract
    from .processes import DaemonProcess
    from .providers import ProviderContract
    from .scripted import Pause, ScriptedModel
    from .security import SecurityContract
    from .tool_sources import ToolSourceContract
    from .tools import ToolContract

_LATER = {
    "AgentsContract": "ports.agents",
    "AnswerApproval": "ports.approvals",
    "ApprovalsContract": "ports.approvals",
    "CompactionContract": "ports.compaction",
    "DaemonProcess": "processes",
    "CountingCompaction": "ports.counting",
    "Daemons": "daemons",
    "EventsContract": "ports.events",
    "JobsContract": "ports.jobs",
    "MemoryEvents": "ports.memory",
    "MemoryJobs": "ports.memory_jobs",
    "MemoryStore": "ports.memory_store",
    "MemoryVault": "ports.memory",
    "ModelsContract": "ports.models",
    "OpenJobs": "ports.jobs",
    "OpenStore": "ports.store",
    "OpenVault": "ports.vault",
    "Pause": "scripted",
    "PersonSaid": "ports.approvals",
    "ProviderContract": "providers",
    "RunningAgent": "daemons",
    "RunningDaemon": "daemons",
    "RunningTurn": "daemons",
    "ScriptedModel": "scripted",
    "SecurityContract": "security",
    "StoreContract": "ports.store",
    "ToolContract": "tools",
    "ToolSourceContract": "tool_sources",
    "ToolsContract": "ports.tools",
    "TurnsContract": "ports.turns",
    "VaultContract": "ports.vault",
    "installed_exchange": "exchanges",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


__all__ = [
    "AgentsContract",
    "AnswerApproval",
    "ApprovalsContract",
    "CompactionContract",
    "CountingCompaction",
    "DaemonProcess",
    "Daemons",
    "EventsContract",
    "JobsContract",
    "ManualClock",
    "MemoryEvents",
    "MemoryJobs",
    "MemoryStore",
    "MemoryVault",
    "ModelsContract",
    "OpenJobs",
    "OpenStore",
    "OpenVault",
    "Pause",
    "PersonSaid",
    "ProviderContract",
    "RunningAgent",
    "RunningDaemon",
    "RunningTurn",
    "ScriptedModel",
    "SecurityContract",
    "StoreContract",
    "ToolContract",
    "ToolSourceContract",
    "ToolsContract",
    "TurnsContract",
    "VaultContract",
    "installed_exchange",
]
