"""What plugins offer to serve the ports with: a typed class for each port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from .backend import Backend

if TYPE_CHECKING:
    from agenthost_chat.chat import JsonObject
    from agenthost_toml.settings import Settings as Said

    from ..clock import Clock
    from ..host import Host
    from ..observe import Bus, Observer, Observers
    from ..plugins.guards import Guards
    from ..plugins.loader import Plugins
    from ..plugins.registry import Sections
    from ..plugins.specs import SchemaSpec
    from ..turns.turn import Turn
    from .agents import Agents
    from .approvals import Approvals
    from .compaction import Compaction
    from .egress import Egress
    from .files import Files
    from .front import Front
    from .jobs import Jobs
    from .models import Models
    from .records import AgentRows, Records, TurnResult
    from .settings import Settings
    from .store import Store
    from .tools import Toolbox
    from .turns import Engine
    from .vault import Vault
    from .workers import Workers

EndTurns = Callable[[str, str], Awaitable[object]]
Owned = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class StoreBackend(Backend):
    """The database: ``await open(url, schemas)`` makes it or brings it up to date.

    While nobody has it open, ``tables(url, owned)`` counts the rows of the tables whose
    names are owned, and ``drop(url, owned)`` drops them; what a plugin left goes so.
    """

    port: ClassVar[str] = "store"
    open: Callable[[str, Sequence[SchemaSpec]], Awaitable[Store]]
    tables: Callable[[str, Owned], Mapping[str, int]] = lambda *_: {}
    drop: Callable[[str, Owned], None] = lambda *_: None


class SettingsBackend(Backend):
    """Plugins' own settings: ``await open(said, plugins, sections)`` checks them.

    It raises ConfigError when a value is wrong; sections come with their plugins' keys.
    """

    port: ClassVar[str] = "settings"
    open: Callable[[Said, Plugins, Sections], Awaitable[Settings]]


class FilesBackend(Backend):
    """The agents' workspaces below a folder: ``open(root, guards)``."""

    port: ClassVar[str] = "files"
    open: Callable[[Path, Guards], Files]


class VaultBackend(Backend):
    """Secrets at rest: ``open(home, environ)``."""

    port: ClassVar[str] = "vault"
    open: Callable[[Path, Mapping[str, str]], Vault]


class EgressBackend(Backend):
    """The one HTTP client: ``open(guards)``."""

    port: ClassVar[str] = "egress"
    open: Callable[[Guards], Egress]


class RecordsBackend(Backend):
    """What is kept of agents and turns: ``open(store, clock)``."""

    port: ClassVar[str] = "records"
    open: Callable[[Store, Clock], Records]


class AgentsBackend(Backend):
    """The agents' life cycle: ``open(host, rows, end_turns)``.

    ``await end_turns(agent_id, reason)`` stops all that runs or waits for an agent.
    """

    port: ClassVar[str] = "agents"
    open: Callable[[Host, AgentRows, EndTurns], Agents]


class ToolsBackend(Backend):
    """What runs tool calls: ``open(host, observers)``."""

    port: ClassVar[str] = "tools"
    open: Callable[[Host, Observers], Toolbox]


class TurnsBackend(Backend):
    """What runs turns: ``open(host, observers)``."""

    port: ClassVar[str] = "turns"
    open: Callable[[Host, Observers], Engine]


class JobsBackend(Backend):
    """Durable work that happens once: ``open(store, clock)``."""

    port: ClassVar[str] = "jobs"
    open: Callable[[Store, Clock], Jobs]


class EventsBackend(Backend):
    """Who is told of what happens: ``open(host, observers)``.

    Observers are paired with their plugin's key.
    """

    port: ClassVar[str] = "events"
    open: Callable[[Host, Sequence[tuple[str, Observer]]], Bus]


class CompactionBackend(Backend):
    """What condenses long conversations: ``open(host, observers)``."""

    port: ClassVar[str] = "compaction"
    open: Callable[[Host, Observers], Compaction]


class ApprovalsBackend(Backend):
    """What asks people before a tool call: ``open(host)``. Without one all is refused.

    The kernel's own, ``none``, refuses what would be asked.
    """

    port: ClassVar[str] = "approvals"
    open: Callable[[Host], Approvals]


class ModelsBackend(Backend):
    """Which model a call goes to: ``open(host, observers)``."""

    port: ClassVar[str] = "models"
    open: Callable[[Host, Observers], Models]


class WorkersBackend(Backend):
    """Where work runs that must not hold the event loop: ``open()``."""

    port: ClassVar[str] = "workers"
    open: Callable[[], Workers]


class ReceiptsBackend(Backend):
    """Proofs of answers: ``await open(host, turn, result)`` gives one as JSON.

    Surfaces look for it when they are asked for a receipt of a turn that has ended.
    """

    port: ClassVar[str] = "receipts"
    open: Callable[[Host, Turn, TurnResult], Awaitable[JsonObject]]


class FrontBackend(Backend):
    """What listens and serves the routes: ``open(host)``, before anything else is."""

    port: ClassVar[str] = "front"
    open: Callable[[Host], Front]
