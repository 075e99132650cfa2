"""What the kernel needs of the outside: ports that backends of plugins serve.

A backend is chosen at boot (``register_backend``), one for each port. The kernel and
other plugins know these protocols alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from agenthost_chat.chat import Json

from .context import Context, Principal
from .errors import ConfigError
from .secrets import Secret

if TYPE_CHECKING:
    import httpx
    from quart import Quart
    from sqlalchemy import Connection, Select

    from .agents import Agent
    from .model_port import Target
    from .observe import Observers
    from .plugins.specs import Event
    from .providers import Exchange
    from .record_port import Conversation
    from .routes import RouteGroup

T = TypeVar("T")
P = ParamSpec("P")
NOTHING: Mapping[str, Any] = MappingProxyType({})

CHECK_HOST = "agenthost.check_host"
"""Request extension: ``(host) -> None``, called for every hop; raises to refuse it."""

CONTEXT = "agenthost.context"
"""Request extension: the :class:`Context` the request is made in, told to guards."""

FINAL_URL = "agenthost.url"
"""Response extension: the URL that answered, after redirects."""


class Port(StrEnum):
    """The ports, and what each backend's ``open`` is called with.

    STORE ``await open(url, schemas)``: the database, made or brought up to date.
    FILES ``open(root, guards)``: the agents' workspaces below a folder.
    VAULT ``open(home, environ)``: secrets at rest.
    EGRESS ``open(guards)``: the one HTTP client.
    RECORDS ``open(store, clock)``: what is kept of agents and turns (``record_port``).
    JOBS ``open(store, clock)``: durable work that happens once.
    EVENTS ``open(plugins, clock, observers)``: who is told of what happens; observers
    are paired with their plugin's key.
    COMPACTION ``open(daemon)``: what condenses long conversations.
    MODELS ``open(daemon)``: which model a call goes to (``model_port``).
    WORKERS ``open()``: where work runs that must not hold the event loop.
    FRONT ``open(daemon)``: what listens and serves the routes.
    """

    STORE = "store"
    FILES = "files"
    VAULT = "vault"
    EGRESS = "egress"
    RECORDS = "records"
    JOBS = "jobs"
    EVENTS = "events"
    COMPACTION = "compaction"
    MODELS = "models"
    WORKERS = "workers"
    FRONT = "front"


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A backend on offer; ``name`` is the URL scheme where a URL chooses (STORE)."""

    port: Port
    name: str
    open: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Backends:
    """What serves the ports."""

    specs: tuple[BackendSpec, ...] = ()

    def find(self, port: Port, name: str | None = None) -> BackendSpec:
        """Find the backend of a port: by name, or the first one.

        Raises:
            ConfigError: No healthy plugin serves the port.
        """
        for spec in self.specs:
            if spec.port is port and name in {None, spec.name}:
                return spec
        wanted = f"{port} {name!r}" if name else str(port)
        raise ConfigError(f"no plugin serves the port {wanted}; enable one that does")


class Row(Protocol):
    """One row of an answer: by column name or by position."""

    def __getitem__(self, key: str | int, /) -> Any: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def keys(self) -> Sequence[str]:
        """Name the columns in order."""


@dataclass(frozen=True, slots=True)
class SlowWrite:
    """A write function that held up all others: how often, and longest in seconds."""

    name: str
    count: int
    longest: float


class Store(Protocol):
    """The database of one home: ``write`` functions, ``read`` statements."""

    @property
    def healthy(self) -> bool:
        """Whether the last write and the last probe reached the disk."""

    @property
    def slow(self) -> Sequence[SlowWrite]:
        """Write functions that held up all others, the slowest first.

        A name is that of the module, which begins with its plugin's package, and that
        of the function in it.
        """

    def write(self, fn: Callable[[Connection], T]) -> asyncio.Future[T]:
        """Run a function in a transaction; it starts at once, awaited or not.

        Args:
            fn: Short and synchronous, touches only its connection, may run twice.
                What it raises rolls back its own work and reaches the caller.

        Returns:
            Its result, once the commit is on disk. It fails with StorageFull or
            Unavailable when the storage does. A cancelled write may still happen.

        Raises:
            Unavailable: The store is closed, or thousands of writes wait.
        """

    async def read(
        self, statement: Select[Any], parameters: Mapping[str, Any] = NOTHING
    ) -> list[Row]:
        """Give the rows of a statement, as of the last commit.

        Args:
            statement: Built once, at module level, with ``bindparam`` where values
                go: it is compiled at its first use and remembered by identity.
            parameters: The values, by name.

        Raises:
            Unavailable: The database cannot be read now.
        """

    async def first(
        self, statement: Select[Any], parameters: Mapping[str, Any] = NOTHING
    ) -> Row | None:
        """Give the first row of a statement, or None."""

    async def probe(self) -> bool:
        """Read one row and tell whether that worked, from the file that is meant."""

    async def close(self) -> None:
        """Finish what was written and close."""


class Workspace(Protocol):
    """An agent's folder, and nothing beyond it. Functions block: use a thread."""

    def read(self, path: str, limit: int) -> bytes:
        """Read a file of at most ``limit`` bytes."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file wholly or not at all; folders are made."""

    def list(self, path: str = ".") -> list[str]:
        """Name what is in a folder, sorted; folders end with a slash."""

    def remove(self) -> None:
        """Delete the folder with everything in it."""


class Files(Protocol):
    """The workspaces of all agents."""

    def workspace(self, agent_id: str, context: Context | None = None) -> Workspace:
        """Return the agent's workspace; its folder is made at the first use.

        Args:
            agent_id: Whose workspace it is.
            context: What guards are told of whoever asks, where there is a turn.
        """


class Vault(Protocol):
    """Secrets at rest, by name; reads are answered from memory."""

    def get(self, name: str) -> Secret | None:
        """Give a secret, or None when there is none of this name."""

    @property
    def revision(self) -> int:
        """A number that every change raises."""

    def names(self) -> list[str]:
        """List the names, sorted."""

    async def change(self, secrets: Mapping[str, str | None]) -> None:
        """Keep these secrets, forget those that are None: all, on disk, or none.

        It writes off the event loop, one change after another. It fails with
        StorageFull or Unavailable when the disk does.
        """


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """What requests of one purpose may reach and how much they may take.

    Requests of one policy share connections; those of different policies never do.

    Args:
        name: The purpose, such as ``web_fetch``.
        allowed_hosts: Names, addresses, networks (CIDR) and ``*.domain`` patterns that
            the operator configured by hand; these may be local.
        timeout: Seconds to connect, and between two reads or writes.
        total_timeout: Seconds for one request in all, redirects included.
        max_bytes: The largest body, counted after decompression.
        max_redirects: Redirects to follow, each checked anew; 0 hands them back.
    """

    name: str
    allowed_hosts: frozenset[str] = frozenset()
    timeout: float = 30.0
    total_timeout: float | None = None
    max_bytes: int | None = None
    max_redirects: int = 0


class Egress(Protocol):
    """The one way out: every outbound request passes its guards."""

    @property
    def exchange(self) -> Exchange:
        """How model calls meet HTTP."""

    def client(self, policy: EgressPolicy) -> httpx.AsyncClient:
        """Return the client of a policy; it is shared and must not be closed."""

    async def warm_up(self) -> None:
        """Do what the first request would wait for, off the event loop."""

    async def close(self) -> None:
        """Close all connections."""


@dataclass(slots=True)
class ListenerState:
    """What became of the events for one plugin."""

    plugin: str
    delivered: int = 0
    dropped: int = 0
    failures: int = 0
    overruns: int = 0
    given_up: bool = False


class Events(Protocol):
    """The bus: tells this process and plugins' ``on_event`` what happened."""

    @property
    def observers(self) -> Observers:
        """The plugins' observers, told of turns, model calls and tool calls."""

    def publish(self, event: Event) -> None:
        """Tell everyone; call it after the cause was committed. Never raises."""

    def subscribe(self, subscriber: Callable[[Event], None]) -> Callable[[], None]:
        """Call the function, in the publisher's thread, for each event from now on.

        Returns:
            A function that ends it; calling it twice is fine.
        """

    def states(self) -> Sequence[ListenerState]:
        """Tell how each plugin that listens is doing."""

    async def stop(self) -> None:
        """Take no more events and wait, within limits, until plugins heard all."""


@dataclass(frozen=True, slots=True)
class Condensed:
    """What a compaction did: how many messages it summarised and kept."""

    summarised: int
    kept: int


class Compaction(Protocol):
    """What keeps a conversation within its model's window, inside its mailbox."""

    async def before_turn(
        self, conversation: Conversation, target: Target, context: Context
    ) -> bool:
        """Condense what is too long; tell whether the session is to be read anew."""

    async def of_agent(self, agent: Agent) -> Condensed:
        """Condense an agent's own session, when it has more messages than configured.

        It takes its turn in the session's mailbox; Cancelled when it was stopped.
        """


class Workers(Protocol):
    """Where work runs that must not hold the event loop: threads and processes.

    Both are few and their own: what is stuck here holds up nobody but other tools.
    """

    async def in_thread(
        self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Call a function that blocks, such as one of a workspace.

        A caller that is cancelled stops waiting; the thread ends with the function.

        Raises:
            Unavailable: Every thread is busy, and stayed so.
        """

    async def in_process(self, function: str, document: bytes, **options: Json) -> str:
        """Read a document of strangers where it can be ended: in another process.

        That process sees nothing but the document: no environment, no files that are
        open here. It is killed when it takes too long or too much memory, and when
        the caller is cancelled.

        Args:
            function: ``package.module:function`` of a function of a module, called
                with the document and the options; it returns text. The module and
                what it imports are loaded there alone, before the time runs.
            document: What is to be read.
            **options: JSON values.

        Raises:
            Unreadable: There was no result in time and memory.
            Unavailable: Every process is busy, and stayed so.
        """

    async def close(self) -> None:
        """End the processes, and wait a little for threads."""


class Tickets(Protocol):
    """Single-use, short-lived stand-ins for the key, for WebSockets of browsers."""

    lifetime: float

    def issue(self, principal: Principal) -> str:
        """Make a ticket that lets its bearer act as the principal, once."""


class Front(Protocol):
    """Everything between a TCP port and the handlers of route groups."""

    panics: int

    @property
    def app(self) -> Quart:
        """The Quart application that plugins may ask for."""

    @property
    def tickets(self) -> Tickets:
        """What stands for the key in a browser's WebSocket."""

    def mount(self, group: RouteGroup) -> None:
        """Serve the routes of a group, all or none; only before :meth:`start`.

        Raises:
            PluginError: A path is taken, or a handler does not fit its route.
        """

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen and serve; return the address, with the real port for port 0.

        Raises:
            Conflict: The port is taken.
            ConfigError: The address cannot be listened on.
        """

    async def warm_up(self) -> None:
        """Do what the first requests would wait for, off the event loop."""

    async def drain(self, end_turns: Callable[[], Awaitable[None]] | None) -> None:
        """Refuse new work, end the turns by the callback, close streams and sockets."""

    async def stop(self) -> None:
        """End what still runs and stop the server; the store may close after it."""
