"""Where backends that open with a host are tried: in daemons that they serve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from ...agent import Agent
from ...clock import Clock
from ...context import OPERATOR, Context
from ...plugins.guards import SecuritySystem
from ...plugins.marks import hookimpl
from ...ports.backend import Backend
from ...ports.records import Entry, TurnRecord, TurnResult
from ...turns.events import TextDelta
from ...turns.turn import Turn, TurnOptions, Watcher, user_message
from ..daemons import Daemons, RunningAgent, RunningDaemon
from ..scripted import Pause

T = TypeVar("T")

PATIENCE = 20.0
STEPS = 25
READS = 4
CHOSEN = "tried"


class Stage:
    """Daemons in one home, one after another, that a backend serves.

    Args:
        daemons: What starts them.
        backend: What is tried; ``[backends]`` chooses it.
        home: Where they live: a second daemon finds what the first has left.
        plugins: What the backend needs besides, such as a service that starts it.
        config: What else ``config.toml`` says.
    """

    def __init__(
        self,
        daemons: Daemons,
        backend: Backend,
        home: Path,
        plugins: Sequence[object] = (),
        config: str = "",
    ) -> None:
        self._daemons = daemons
        self._port = type(backend).port
        self._plugins = (offering(replace(backend, name=CHOSEN)), *plugins)
        self._config = config
        self._home = home
        self._running: RunningDaemon | None = None
        self._pauses: list[Pause] = []

    async def open(
        self,
        *plugins: object,
        config: str = "",
        clock: Clock | None = None,
        environ: dict[str, str] | None = None,
    ) -> RunningDaemon:
        """Start a daemon; one that runs is stopped before."""
        if self._running is not None:
            await self._running.daemon.stop()
        chosen = f'[backends]\n{self._port} = "{CHOSEN}"\n'
        self._running = await self._daemons.start(
            home=self._home,
            config=f"{config}\n{self._config}\n{chosen}",
            plugins=[*self._plugins, *plugins],
            clock=clock,
            environ=environ,
        )
        return self._running

    @property
    def running(self) -> RunningDaemon:
        """The daemon that was opened last."""
        assert self._running is not None, "open one first"
        return self._running

    def pause(self) -> Pause:
        """Make a place to wait at; what waits there goes on when the test ends."""
        self._pauses.append(Pause())
        return self._pauses[-1]

    def close(self) -> None:
        """Let everything go on, lest the daemon waits for it when it stops."""
        for pause in self._pauses:
            pause.go_on()


def offering(*backends: Backend) -> SimpleNamespace:
    """Make a plugin that offers backends."""

    @hookimpl
    def register_backend() -> Iterable[Backend]:
        """Offer them."""
        return backends

    return SimpleNamespace(__name__="offering", register_backend=register_backend)


def guarding(name: str, point: object, guard: Callable[[Any], Any]) -> SimpleNamespace:
    """Make a plugin whose security system fills one guard point."""

    @hookimpl
    def security_system() -> SecuritySystem:
        """Offer it."""
        return SecuritySystem(name, {point: guard}, lambda: None)  # type: ignore[dict-item]  # reason: a point of any kind

    return SimpleNamespace(__name__=name, security_system=security_system)


class StagedContract:
    """What the contracts of ports that open with a host have in common.

    A subclass overrides the fixture ``backend``, and the others where it needs to.
    """

    @pytest.fixture
    def backend(self) -> Backend:
        """The backend under test, as a plugin offers it."""
        pytest.fail("override the fixture `backend` with the backend under test")

    @pytest.fixture
    def plugins(self) -> Sequence[object]:
        """Plugins that the backend needs, such as one whose service starts it."""
        return ()

    @pytest.fixture
    def config(self) -> str:
        """What else the daemon's ``config.toml`` is to say."""
        return ""

    @pytest_asyncio.fixture
    async def stage(
        self,
        daemons: Daemons,
        backend: Backend,
        plugins: Sequence[object],
        config: str,
        tmp_path: Path,
    ) -> AsyncIterator[Stage]:
        """Where it is tried."""
        stage = Stage(daemons, backend, tmp_path / "stage", plugins, config)
        yield stage
        stage.close()


async def soon(awaited: Awaitable[T]) -> T:
    """Wait for something that must come, not for ever."""
    async with asyncio.timeout(PATIENCE):
        return await awaited


async def a_while(daemon: RunningDaemon) -> None:
    """Let what can go on now do so, in as many steps as a turn takes and more.

    In each of them the store answers whatever it was asked before. A busy machine is
    slow in this as in what is waited for.
    """
    store = daemon.daemon.store
    for _ in range(STEPS):
        reads = (store.read("SELECT 1") for _ in range(READS))
        await asyncio.gather(store.write(lambda _: None), *reads)


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until something is so; what never comes is a failure, told by its name."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while not await holds():
        assert loop.time() < deadline, f"it never came to this: {what}"
        await asyncio.sleep(0.005)


def known(agent: RunningAgent) -> Agent:
    """Give the agent as the daemon knows it now."""
    return agent.host.daemon.agents.get(agent.id)


def begin(agent: RunningAgent, text: str, **options: Any) -> Turn:
    """Start a turn of an agent for the operator."""
    message, chosen = user_message(text), TurnOptions(**options)
    turns = agent.host.daemon.turns
    return turns.start(Context(OPERATOR), known(agent), message, chosen)


async def resumed(agent: RunningAgent, turn: Turn) -> Watcher:
    """Go on with a turn."""
    turns = agent.host.daemon.turns
    return await soon(turns.resume(Context(OPERATOR), known(agent), turn.id))


async def record_of(agent: RunningAgent, turn: Turn) -> TurnRecord:
    """Read how a turn stands on disk."""
    record = await agent.host.daemon.journal.find(turn.id)
    assert record is not None, f"there is no row of turn {turn.id}"
    return record


async def entries_of(agent: RunningAgent) -> list[Entry]:
    """Read what stands in an agent's own session, without what is summarised."""
    sessions = agent.host.daemon.sessions
    return await sessions.entries(await sessions.of_agent(agent.id))


async def texts_of(agent: RunningAgent) -> list[str]:
    """Read the words of an agent's own session."""
    return [entry.message.text for entry in await entries_of(agent)]


async def heard(watcher: Watcher) -> str:
    """Join the words that a watcher hears, until the turn ends."""
    said = ""
    async with asyncio.timeout(PATIENCE):
        async for event in watcher.events():
            said += event.text if isinstance(event, TextDelta) else ""
    return said


async def ending(turn: Turn) -> TurnResult | BaseException:
    """Wait for how a turn ends, well or not."""
    (end,) = await soon(asyncio.gather(turn.result(), return_exceptions=True))
    return end
