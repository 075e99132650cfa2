"""The host: what a plugin may use of the running daemon.

Services are started with it; calls of routes, tools and observers carry it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from .context import Context, Principal

if TYPE_CHECKING:
    from agenthost_chat.chat import JsonObject, Message

    from .agent import Agent
    from .clock import Clock
    from .config_model import Config
    from .plugins.calls import Implementation
    from .plugins.charges import Charges
    from .plugins.discovery import PluginState, SystemState
    from .plugins.guards import Guards
    from .ports.access import Access, Credentials
    from .ports.agents import Agents
    from .ports.approvals import Approvals
    from .ports.compaction import Compaction
    from .ports.egress import Egress
    from .ports.events import Events
    from .ports.files import Files
    from .ports.jobs import Jobs
    from .ports.models import Models
    from .ports.persons import Persons
    from .ports.records import Journal, Memory, Sessions, TurnResult, Writer
    from .ports.settings import Settings
    from .ports.store import Store
    from .ports.tools import Toolbox
    from .ports.uploads import Uploads
    from .ports.usage import Ledger
    from .ports.vault import Vault
    from .ports.workers import Workers
    from .turns.turn import Turn, TurnOptions, Watcher


T = TypeVar("T")


class Turns(Protocol):
    """Starts turns, knows the running ones, stops them.

    One a session runs at a time; what else is asked of the session waits its turn.
    """

    panics: int
    """How many turns ended in an error that nobody had foreseen."""

    @property
    def running(self) -> int:
        """How many turns, compactions and resets run or wait."""

    def start(
        self,
        context: Context,
        agent: Agent,
        message: Message,
        options: TurnOptions = ...,
    ) -> Turn:
        """Start a turn; wait for it or stop it through what is returned.

        Args:
            context: Who starts it, and the chain of calls that led here.
            agent: Who answers.
            message: What the user says.
            options: What this turn sets differently.

        Raises:
            Conflict: The agent is suspended, crashed or terminated, or the call would
                wait for itself.
            Mismatch: The turn's id was given for something else.
            Unavailable: The daemon is draining, or too many turns wait.
        """

    def watch(
        self,
        context: Context,
        agent: Agent,
        message: Message,
        options: TurnOptions = ...,
    ) -> Watcher:
        """Start a turn and subscribe to its events before the first.

        The subscription's ``turn`` is the turn. Of a turn whose id is known it begins
        with what was said before. Arguments and errors are those of :meth:`start`.
        """

    async def resume(self, context: Context, agent: Agent, turn_id: str) -> Watcher:
        """Go on with a turn that was interrupted or failed, in its own place.

        Raises:
            NotFound: The agent has no such turn.
            Conflict: Its question is no longer in the session.
        """

    async def attach(self, agent: Agent, turn_id: str, offset: int = 0) -> Watcher:
        """Watch a turn that somebody else started, or one that has ended.

        Args:
            agent: Who answers in it.
            turn_id: The turn.
            offset: How many of its characters the watcher has: what was said and done
                behind them is told first.

        Raises:
            NotFound: The agent has no such turn.
        """

    def listen(self, listener: Callable[[Turn], None]) -> Callable[[], None]:
        """Call a function with each turn that begins to run.

        Returns:
            A function that ends it.
        """

    async def call_agent(self, context: Context, name: str, message: str) -> TurnResult:
        """Ask another agent on behalf of a turn and wait for its answer.

        The labels of the answer are to be carried on.

        Raises:
            NotFound: No agent has this id or name.
            Conflict: The call would wait for itself, or is nested too deeply.
        """

    async def stop(self, agent: Agent, reason: str, session_id: str = "") -> int:
        """End what runs in a session, the agent's own by default; what waits goes on.

        Where nothing runs, the turns of the session end that wait for a person.

        Returns:
            How many turns or compactions were stopped. They are closed on disk.
        """

    async def stop_all(self, agent_id: str, reason: str) -> int:
        """End all that runs or waits for an agent, and wait until it is closed."""

    async def reset(self, agent: Agent, into: str = "", *, keep: bool = False) -> Agent:
        """Give the agent another session; what runs or waits in its old is stopped.

        Of several resets at once one changes the session, and all tell of that one.

        Args:
            agent: Whose session it is.
            into: One of the agent's that it goes on in, archived or not; an empty one
                by default.
            keep: Archive the old one instead of deleting it, unless it is empty.

        Raises:
            NotFound: The agent has no such session.
        """

    async def apart(
        self,
        agent: Agent,
        do: Callable[[str], Awaitable[T]],
        session_id: str = "",
        *,
        sealed: bool = False,
    ) -> T:
        """Do something else than a turn inside the agent's mailbox.

        It is drained, and unless it is sealed stopped, as a turn is; who asked for it
        may leave.

        Args:
            agent: Whose mailbox it is.
            do: Called with the id of the session, which the next turn reads anew.
            session_id: Another session of the agent than its own.
            sealed: Nothing stops it.

        Raises:
            Cancelled: It was stopped.
        """


class Authenticator:
    """Tells who asks: a plugin offers one of a class of its own.

    ``name`` is for the log.
    """

    name: str

    async def authenticate(self, host: Host, shown: Credentials) -> Principal | None:
        """Tell whose credentials these are, None when they are not of its kind.

        What takes longer than 5 s, or raises anything but Unauthenticated, refuses the
        request as unavailable.

        Raises:
            Unauthenticated: They are of its kind and no good.
        """

    def stored_as(self, principal: Principal) -> str:
        """Give the name for :meth:`recall` of who stores work: nobody else's, ever."""
        return principal.name

    async def recall(self, host: Host, kind: str, name: str) -> Principal | None:  # noqa: ARG002
        """Give a principal of its kind as it stands now, for work it has left behind.

        What it has stored is done with the rights that this gives; None, which ends
        that, when the principal is not of its kind or may do nothing any more.
        """
        return None


class Offered(Protocol):
    """What the healthy plugins offer; which tools there are now, the toolbox says."""

    def offered(self, kind: type[T]) -> Sequence[tuple[str, T]]:
        """What is on offer of a type, as ``ToolSpec``, each with its plugin's key."""

    @property
    def names_of(self) -> Mapping[str, Sequence[str]]:
        """What plugins offer, by their keys: names, each after its kind."""

    def systems(self) -> Sequence[SystemState]:
        """Every security system, and whether it is active."""

    async def prove(self) -> Sequence[SystemState]:
        """Have every security system prove itself now; what fails is off from then."""


class Installed(Protocol):
    """The installed plugins; ``failed`` says whether one has failed.

    ``on_failure`` is called with key and reason after each that fails, in any thread.
    """

    failed: bool
    charges: Charges
    on_failure: list[Callable[[str, str], None]]

    def states(self) -> list[PluginState]:
        """Every plugin that is installed, by key."""

    def implementations(self, hook: str) -> Sequence[tuple[str, Implementation]]:
        """The healthy plugins' functions for a hook, each with its plugin's key."""

    def healthy(self, key: str) -> bool:
        """Tell whether the plugin is enabled and has not failed."""

    def fail(self, key: str, reason: str) -> None:
        """Mark a plugin failed: none of its hooks is called again."""


class Host(Protocol):
    """The running daemon. Two can live in one process, so it is never a global.

    ``warnings`` are told to the operator; ``address`` is where it listens, empty until
    it does; ``writer`` is what steps of turns are signed with. Backends that are opened
    with a host may use what was opened before them: configuration, settings, plugins
    and guards; then store, vault, egress, workers, files, events, records and agents,
    models, compaction, approvals, tools, turns, jobs in this order.
    """

    version: str
    home: Path
    environ: Mapping[str, str]
    clock: Clock
    config: Config
    settings: Settings
    warnings: list[str]
    address: str
    guards: Guards
    store: Store
    vault: Vault
    egress: Egress
    workers: Workers
    files: Files
    events: Events
    agents: Agents
    sessions: Sessions
    journal: Journal
    usage: Ledger
    kv: Memory
    persons: Persons
    uploads: Uploads
    models: Models
    compaction: Compaction
    toolbox: Toolbox
    approvals: Approvals
    jobs: Jobs
    writer: Writer
    interrupted_turns: int

    @property
    def plugins(self) -> Installed:
        """The installed plugins."""

    @property
    def registry(self) -> Offered:
        """What they offer."""

    @property
    def turns(self) -> Turns:
        """The turn engine."""

    @property
    def access(self) -> Access:
        """Whoever was let in: tickets, allowances, and who is here no more."""

    @property
    def panics(self) -> int:
        """How many requests and turns ended in an error that nobody had foreseen."""

    @property
    def data_dir(self) -> Path:
        """Where the database and the workspaces are."""

    @property
    def uptime(self) -> int:
        """Whole seconds since the start."""

    def observer(self, kind: type[T]) -> T | None:
        """Find a plugin's own observer by its class; None when it was dropped."""

    def request_stop(self) -> None:
        """Ask whoever runs the daemon to stop it; returns at once."""


class Reports:
    """Where a tool's reports go while it runs; nowhere, by default."""

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Take how far it is."""

    def log(self, level: str, text: str) -> None:
        """Take a line of log."""


@dataclass(frozen=True, slots=True)
class ToolContext(Context):
    """What a tool is called with: whose turn it is, and the daemon it runs in.

    ``answers`` are the values that a person gave with the approval of this call.
    """

    host: Host = field(kw_only=True)
    reports: Reports = field(kw_only=True)
    answers: JsonObject = field(default_factory=dict, kw_only=True)

    @property
    def clock(self) -> Clock:
        """The daemon's clock."""
        return self.host.clock

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Tell who watches the turn how far the call is; to be called on the loop.

        Args:
            done: How much is done, in the tool's own measure.
            total: How much there is to do; None when nobody knows.
            text: What it is at, in a few words.
        """
        self.reports.progress(done, total, text)

    def log(self, level: str, text: str) -> None:
        """Write a line into the daemon's log, with the turn, the agent and the tool.

        Args:
            level: ``debug``, ``info``, ``warning`` or ``error``.
            text: What to write; what it holds in line breaks becomes spaces.
        """
        self.reports.log(level, text)

    @classmethod
    def of(cls, context: Context, host: Host, reports: Reports) -> ToolContext:
        """The same context, for a tool."""
        said = {each.name: getattr(context, each.name) for each in fields(Context)}
        return cls(**said, host=host, reports=reports)
