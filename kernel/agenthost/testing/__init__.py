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
    from .ports.events import EventsContract
    from .ports.jobs import JobsContract, OpenJobs
    from .ports.memory import MemoryEvents, MemoryVault
    from .ports.memory_jobs import MemoryJobs
    from .ports.memory_records import MemoryRecords
    from .ports.memory_store import MemoryStore
    from .ports.records.agents import AgentRowsContract
    from .ports.records.journal import JournalContract
    from .ports.records.ledger import LedgerContract
    from .ports.records.memory import MemoryContract
    from .ports.records.persons import PersonsContract
    from .ports.records.scenes import OpenRecords
    from .ports.records.sessions import SessionsContract
    from .ports.store import OpenStore, StoreContract
    from .ports.vault import OpenVault, VaultContract
    from .processes import DaemonProcess
    from .providers import ProviderContract
    from .scripted import Pause, ScriptedModel
    from .security import SecurityContract
    from .tool_sources import ToolSourceContract
    from .tools import ToolContract

_LATER = {
    "AgentRowsContract": "ports.records.agents",
    "DaemonProcess": "processes",
    "Daemons": "daemons",
    "EventsContract": "ports.events",
    "JobsContract": "ports.jobs",
    "JournalContract": "ports.records.journal",
    "LedgerContract": "ports.records.ledger",
    "MemoryContract": "ports.records.memory",
    "MemoryEvents": "ports.memory",
    "MemoryJobs": "ports.memory_jobs",
    "MemoryRecords": "ports.memory_records",
    "MemoryStore": "ports.memory_store",
    "MemoryVault": "ports.memory",
    "OpenJobs": "ports.jobs",
    "OpenRecords": "ports.records.scenes",
    "OpenStore": "ports.store",
    "OpenVault": "ports.vault",
    "Pause": "scripted",
    "PersonsContract": "ports.records.persons",
    "ProviderContract": "providers",
    "RunningAgent": "daemons",
    "RunningDaemon": "daemons",
    "RunningTurn": "daemons",
    "ScriptedModel": "scripted",
    "SecurityContract": "security",
    "SessionsContract": "ports.records.sessions",
    "StoreContract": "ports.store",
    "ToolContract": "tools",
    "ToolSourceContract": "tool_sources",
    "VaultContract": "ports.vault",
    "installed_exchange": "exchanges",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


__all__ = [
    "AgentRowsContract",
    "DaemonProcess",
    "Daemons",
    "EventsContract",
    "JobsContract",
    "JournalContract",
    "LedgerContract",
    "ManualClock",
    "MemoryContract",
    "MemoryEvents",
    "MemoryJobs",
    "MemoryRecords",
    "MemoryStore",
    "MemoryVault",
    "OpenJobs",
    "OpenRecords",
    "OpenStore",
    "OpenVault",
    "Pause",
    "PersonsContract",
    "ProviderContract",
    "RunningAgent",
    "RunningDaemon",
    "RunningTurn",
    "ScriptedModel",
    "SecurityContract",
    "SessionsContract",
    "StoreContract",
    "ToolContract",
    "ToolSourceContract",
    "VaultContract",
    "installed_exchange",
]
