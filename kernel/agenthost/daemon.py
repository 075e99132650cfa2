"""The daemon: one object owns everything, so two can live in one process."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from .clock import Clock, SystemClock
from .config import load_config
from .errors import ConfigError, PluginError, SchemaFailed
from .events import DaemonStarted, DaemonStopping
from .home_lock import lock_home
from .observe import Observer
from .plugins.calls import describe, within
from .plugins.guards import Guards
from .plugins.loader import Plugins
from .plugins.registry import Sections, compile_registry
from .plugins.specs import SchemaSpec, ServiceSpec
from .ports.access import Access
from .ports.approvals import Approvals
from .ports.backend import Backends
from .ports.backends import (
    AgentsBackend,
    ApprovalsBackend,
    CompactionBackend,
    EgressBackend,
    EventsBackend,
    FilesBackend,
    FrontBackend,
    JobsBackend,
    ModelsBackend,
    RecordsBackend,
    SettingsBackend,
    StoreBackend,
    ToolsBackend,
    TurnsBackend,
    VaultBackend,
    WorkersBackend,
)
from .ports.events import Events
from .ports.front import Front
from .ports.store import NOTHING, Store
from .routes import Mountable
from .version import __version__

if TYPE_CHECKING:
    from .plugins.discovery import Entry

log = logging.getLogger(__name__)
T = TypeVar("T")

DATABASE = "agenthost.db"
TURN_PATIENCE = 20.0
OPEN_SECONDS = 900.0
START_SECONDS = 30.0
STOP_SECONDS = 10.0
WARM_UP_AFTER = 0.25

_Close = Callable[[], Awaitable[object] | None]


class Daemon:
    """A running agenthost and everything it owns.

    Args:
        home: The folder of configuration and data; made when it does not exist.
        environ: The environment variables to read; the process's own by default.
        clock: What tells the time.
        entry_points: The plugins to choose from; the installed ones by default.
        left_out: Why these enabled plugins are not to be loaded, by key.
    """

    version = __version__

    def __init__(
        self,
        home: Path,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        entry_points: Sequence[Entry] | None = None,
        left_out: Mapping[str, str] = NOTHING,
    ) -> None:
        self.home = home
        self.environ = os.environ if environ is None else environ
        self.clock: Clock = clock or SystemClock()
        self.guards = Guards()
        self.warnings: list[str] = []
        self.address = ""
        self.stop_requested = asyncio.Event()
        self.plugins = Plugins(entry_points)
        self._left_out = left_out
        self._started_at = self.clock.monotonic()
        self._closing: list[tuple[str, _Close, float]] = []

    @property
    def uptime(self) -> int:
        """Whole seconds since the start."""
        return int(self.clock.monotonic() - self._started_at)

    @property
    def data_dir(self) -> Path:
        """Where the database and the workspaces are."""
        return self.config.data_dir

    def observer(self, kind: type[T]) -> T | None:
        """Find a plugin's own observer by its class; None when it was dropped."""
        return self.observers.find(kind)

    @property
    def access(self) -> Access:
        """Whoever was let in: tickets, allowances, and who is here no more."""
        return self.front.access

    @property
    def panics(self) -> int:
        """How many requests and turns ended in an error that nobody had foreseen."""
        return self.front.panics + self.turns.panics

    def request_stop(self) -> None:
        """Ask whoever runs the daemon to stop it; returns at once."""
        self.stop_requested.set()

    async def start(self) -> None:
        """Bring everything up in order; on failure take down what was up.

        Raises:
            ConfigError: The configuration cannot be used.
            Conflict: Another daemon has this home, or the port.
            AgentHostError: Whatever else stands in the way.
        """
        try:
            await self._open()
            await self._assemble()
            await self._serve()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Take everything down in reverse order; idempotent."""
        while self._closing:
            name, close, limit = self._closing.pop()
            try:
                if (ending := close()) is not None:
                    await within(limit, name, ending)
            except (Exception, SystemExit, KeyboardInterrupt):
                log.exception("could not stop %s cleanly", name)

    async def _open(self) -> None:
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._on_stop("lock", lock_home(self.home).close)
            self._loaded = load_config(self.home, self.environ)
            self.config = self._loaded.config
            self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(
                f"{error.filename or self.home} cannot be written ({error.strerror}); "
                "AGENTHOST_HOME and data_dir name other folders"
            ) from error
        self.warnings.extend(await self.plugins.load(self.config, self._left_out))
        # A plugin whose tables cannot be brought up to date leaves the registry.
        while not await self._furnish():
            pass
        self.warnings += [*self.settings.warnings, *self.registry.security.warnings()]
        self._on_stop("store", self.store.close)

    async def _furnish(self) -> bool:
        """Ask the plugins what they offer and open the store for it."""
        self.registry = await compile_registry(
            self.plugins, self._open_front, self.config.backends
        )
        self.guards = self.registry.security.guards
        schemas = self.registry.offered(SchemaSpec)
        try:
            self.store = await self._open_store([spec for _, spec in schemas])
        except SchemaFailed as error:
            owner = {spec.name: key for key, spec in schemas}.get(error.schema)
            ours = {s.key for s in self.plugins.states() if s.first_party}
            if owner is None or owner in ours:
                raise
            self.plugins.fail(owner, error.message)
            return False
        return True

    async def _open_front(self, backends: Backends, sections: Sections) -> Front:
        backend = backends.find(SettingsBackend)
        opening = backend.open(self._loaded.said, self.plugins, sections)
        self.settings = await within(OPEN_SECONDS, "the settings", opening)
        self.front = backends.find(FrontBackend).open(self)
        return self.front

    async def _open_store(self, schemas: Sequence[SchemaSpec]) -> Store:
        secret = self.config.storage.url
        database = f"sqlite:///{self.data_dir.absolute() / DATABASE}"
        url = secret.reveal() if secret else database
        scheme, colon, _ = url.partition(":")
        if not colon:
            raise ConfigError("storage.url: it must begin with a scheme, as in sqlite:")
        backend = self.registry.backends.find(StoreBackend, scheme)
        return await within(OPEN_SECONDS, "the store", backend.open(url, schemas))

    async def _assemble(self) -> None:
        nobody = ApprovalsBackend("none", lambda _: Approvals())
        offered = (*self.registry.backends.offered, nobody)
        backend = replace(self.registry.backends, offered=offered).find
        self.vault = backend(VaultBackend).open(self.home, self.environ)
        self.egress = backend(EgressBackend).open(self.guards)
        self._on_stop("egress", self.egress.close)
        self.workers = backend(WorkersBackend).open()
        self._on_stop("workers", self.workers.close)
        workspaces = self.data_dir / "workspaces"
        self.files = backend(FilesBackend).open(workspaces, self.guards)
        bus = backend(EventsBackend).open(self, self.registry.offered(Observer))
        self.events: Events = bus
        self.observers = bus.observers
        self._on_stop("events", self.events.stop)
        records = bus.told(backend(RecordsBackend).open(self.store, self.clock))
        kept = backend(AgentsBackend)
        self.agents = kept.open(self, records.agents, self._end_turns_of)
        self.sessions, self.journal = records.sessions, records.journal
        self.usage, self.kv = records.usage, records.memory
        self.persons, self.uploads = records.persons, records.uploads
        self._on_stop("journal", self.journal.stop)
        self.writer = await self.journal.enter(self.config.node)
        self.models = backend(ModelsBackend).open(self, self.observers)
        try:
            self.warnings.extend(self.models.check_default())
        except ConfigError as error:
            # Its provider may be among what is left out.
            if not self._left_out:
                raise
            self.warnings.append(error.message)
        self.compaction = backend(CompactionBackend).open(self, self.observers)
        self.approvals = backend(ApprovalsBackend).open(self)
        self.toolbox = backend(ToolsBackend).open(self, self.observers)
        self.turns = backend(TurnsBackend).open(self, self.observers)
        self.jobs = backend(JobsBackend).open(self.store, self.clock)
        await self.agents.load()
        self.interrupted_turns = await self.journal.interrupt(self.writer)
        if self.interrupted_turns:
            log.warning("the last end interrupted %d turns", self.interrupted_turns)
        await within(START_SECONDS, "jobs", self.jobs.start())
        self._on_stop("jobs", self.jobs.stop)
        services = self.registry.offered(ServiceSpec)
        # What records comes before all that acts, and goes behind it.
        for key, service in sorted(services, key=lambda s: s[0][:8] != "security"):
            await self._start_service(key, service)
        self.turns.admit()

    async def _start_service(self, key: str, service: ServiceSpec) -> None:
        name = f"service {service.name} of {key}"
        try:
            with self.plugins.charges.timed(key):
                await within(START_SECONDS, name, service.start(self))
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            log.exception("%s did not start", name)
            self.plugins.fail(key, f"service {service.name}: {describe(error)}")
            return
        self._on_stop(name, partial(self._stop_service, key, service))

    async def _stop_service(self, key: str, service: ServiceSpec) -> None:
        with self.plugins.charges.timed(key):
            await service.stop(self)

    async def _serve(self) -> None:
        for key, group in self.registry.offered(Mountable):  # type: ignore[type-abstract]  # reason: two unlike classes are mounted
            try:
                self.front.mount(group)
            except PluginError as error:
                self.plugins.fail(key, error.message)
        self._on_stop("front", self.front.stop)
        starting = self.front.start(self.config.host, self.config.port)
        host, port = await within(START_SECONDS, "the front", starting)
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._on_stop("turns", self._end_turns, 2 * TURN_PATIENCE)
        self._tell(DaemonStarted)
        warm = asyncio.create_task(self._warm_up())
        self._on_stop("warm-up", lambda: _cancelled(warm))

    async def _end_turns_of(self, agent_id: str, reason: str) -> None:
        await self.turns.stop_all(agent_id, reason)
        self.toolbox.forget(agent_id)

    async def _end_turns(self) -> None:
        self.turns.refuse_new()
        self._tell(DaemonStopping)
        log.info("shutting down; waiting for %d running turns", self.turns.running)
        await self.front.drain(lambda: self.turns.drain(TURN_PATIENCE))

    def _tell(self, kind: type[DaemonStarted | DaemonStopping]) -> None:
        if self.events.wants(kind):
            self.events.publish(kind(self.address, self.clock.time()))

    async def _warm_up(self) -> None:
        """Do what the first requests need but the start does not."""
        # The first answers should not have to share the processor with an import.
        await asyncio.sleep(WARM_UP_AFTER)
        services = self.registry.offered(ServiceSpec)
        calls = [(key, s.warm_up) for key, s in services if s.warm_up]
        await self.plugins.run_each("warm-up", calls)
        await self.front.warm_up()
        await self.models.probe_local()
        # Without an agent nobody asks a model: the memory that takes is saved.
        await self.agents.exist.wait()
        await self.egress.warm_up()

    def _on_stop(self, name: str, close: _Close, limit: float = STOP_SECONDS) -> None:
        self._closing.append((name, close, limit))


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
