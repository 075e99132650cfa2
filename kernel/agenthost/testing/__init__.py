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
    from .ports.egress import EgressContract, OpenEgress
    from .ports.events import EventsContract
    from .ports.files import FilesContract, OpenFiles
    from .ports.front import FrontContract
    from .ports.jobs import JobsContract, OpenJobs
    from .ports.loopback_front import LoopbackFront
    from .ports.memory import MemoryEvents, MemoryVault
    from .ports.memory_approvals import MemoryApprovals
    from .ports.memory_files import MemoryFiles
    from .ports.memory_jobs import MemoryJobs
    from .ports.memory_records import MemoryRecords
    from .ports.memory_settings import MemorySettings
    from .ports.memory_store import MemoryStore
    from .ports.models import ModelsContract
    from .ports.peer import Peer
    from .ports.plain_agents import PlainAgents
    from .ports.plain_models import PlainModels
    from .ports.plain_tools import PlainTools
    from .ports.plain_turns import PlainTurns
    from .ports.plain_workers import PlainWorkers
    from .ports.records.agents import AgentRowsContract
    from .ports.records.journal import JournalContract
    from .ports.records.ledger import LedgerContract
    from .ports.records.memory import MemoryContract
    from .ports.records.persons import PersonsContract
    from .ports.records.scenes import OpenRecords
    from .ports.records.sessions import SessionsContract
    from .ports.records.uploads import UploadsContract
    from .ports.scripted_egress import ScriptedEgress
    from .ports.settings import OpenSettings, SettingsContract
    from .ports.stage import offering
    from .ports.store import OpenStore, StoreContract
    from .ports.tools import ToolsContract
    from .ports.turns import TurnsContract
    from .ports.vault import OpenVault, VaultContract
    from .ports.workers import OpenWorkers, WorkersContract
    from .processes import DaemonProcess
    from .providers import ProviderContract
    from .recorded import Recorded
    from .routes import RoutesContract, Sample
    from .scripted import Pause, ScriptedModel
    from .security import SecurityContract
    from .tool_sources import ToolSourceContract
    from .tools import ToolContract

_LATER = {
    "AgentRowsContract": "ports.records.agents",
    "AgentsContract": "ports.agents",
    "AnswerApproval": "ports.approvals",
    "ApprovalsContract": "ports.approvals",
    "CompactionContract": "ports.compaction",
    "CountingCompaction": "ports.counting",
    "DaemonProcess": "processes",
    "Daemons": "daemons",
    "EgressContract": "ports.egress",
    "EventsContract": "ports.events",
    "FilesContract": "ports.files",
    "FrontContract": "ports.front",
    "JobsContract": "ports.jobs",
    "JournalContract": "ports.records.journal",
    "LedgerContract": "ports.records.ledger",
    "LoopbackFront": "ports.loopback_front",
    "MemoryApprovals": "ports.memory_approvals",
    "MemoryContract": "ports.records.memory",
    "MemoryEvents": "ports.memory",
    "MemoryFiles": "ports.memory_files",
    "MemoryJobs": "ports.memory_jobs",
    "MemoryRecords": "ports.memory_records",
    "MemorySettings": "ports.memory_settings",
    "MemoryStore": "ports.memory_store",
    "MemoryVault": "ports.memory",
    "ModelsContract": "ports.models",
    "OpenEgress": "ports.egress",
    "OpenFiles": "ports.files",
    "OpenJobs": "ports.jobs",
    "OpenRecords": "ports.records.scenes",
    "OpenSettings": "ports.settings",
    "OpenStore": "ports.store",
    "OpenVault": "ports.vault",
    "OpenWorkers": "ports.workers",
    "Pause": "scripted",
    "Peer": "ports.peer",
    "PersonSaid": "ports.approvals",
    "PersonsContract": "ports.records.persons",
    "PlainAgents": "ports.plain_agents",
    "PlainModels": "ports.plain_models",
    "PlainTools": "ports.plain_tools",
    "PlainTurns": "ports.plain_turns",
    "PlainWorkers": "ports.plain_workers",
    "ProviderContract": "providers",
    "Recorded": "recorded",
    "RoutesContract": "routes",
    "RunningAgent": "daemons",
    "RunningDaemon": "daemons",
    "RunningTurn": "daemons",
    "Sample": "routes",
    "ScriptedEgress": "ports.scripted_egress",
    "ScriptedModel": "scripted",
    "SecurityContract": "security",
    "SessionsContract": "ports.records.sessions",
    "SettingsContract": "ports.settings",
    "StoreContract": "ports.store",
    "ToolContract": "tools",
    "ToolSourceContract": "tool_sources",
    "ToolsContract": "ports.tools",
    "TurnsContract": "ports.turns",
    "UploadsContract": "ports.records.uploads",
    "VaultContract": "ports.vault",
    "WorkersContract": "ports.workers",
    "installed_exchange": "exchanges",
    "offering": "ports.stage",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


__all__ = [
    "AgentRowsContract",
    "AgentsContract",
    "AnswerApproval",
    "ApprovalsContract",
    "CompactionContract",
    "CountingCompaction",
    "DaemonProcess",
    "Daemons",
    "EgressContract",
    "EventsContract",
    "FilesContract",
    "FrontContract",
    "JobsContract",
    "JournalContract",
    "LedgerContract",
    "LoopbackFront",
    "ManualClock",
    "MemoryApprovals",
    "MemoryContract",
    "MemoryEvents",
    "MemoryFiles",
    "MemoryJobs",
    "MemoryRecords",
    "MemorySettings",
    "MemoryStore",
    "MemoryVault",
    "ModelsContract",
    "OpenEgress",
    "OpenFiles",
    "OpenJobs",
    "OpenRecords",
    "OpenSettings",
    "OpenStore",
    "OpenVault",
    "OpenWorkers",
    "Pause",
    "Peer",
    "PersonSaid",
    "PersonsContract",
    "PlainAgents",
    "PlainModels",
    "PlainTools",
    "PlainTurns",
    "PlainWorkers",
    "ProviderContract",
    "Recorded",
    "RoutesContract",
    "RunningAgent",
    "RunningDaemon",
    "RunningTurn",
    "Sample",
    "ScriptedEgress",
    "ScriptedModel",
    "SecurityContract",
    "SessionsContract",
    "SettingsContract",
    "StoreContract",
    "ToolContract",
    "ToolSourceContract",
    "ToolsContract",
    "TurnsContract",
    "UploadsContract",
    "VaultContract",
    "WorkersContract",
    "installed_exchange",
    "offering",
]
