"""Triggers: what looking at an event costs, and a firing beside a bare job."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from agenthost import (
    OPERATOR,
    AgentSpawned,
    Context,
    Custom,
    Daemon,
    Event,
    Json,
    MemoryChanged,
    MessageReceived,
    RunningJob,
    ToolEnded,
    TurnEnded,
)
from agenthost_orchestration.background.background import Background
from agenthost_orchestration.background.errands import Creator, Occasion
from agenthost_orchestration.triggers.patterns import pattern_of
from agenthost_orchestration.triggers.trigger import Trigger
from agenthost_orchestration.triggers.triggers import Triggers
from sqlalchemy import Connection

from .figures import Row

EVENTS = 1_000
TRIGGERS = 100
FIRINGS = 100
ROUNDS = 7
MATCHING_US = 50.0
FIRING_RATIO = 2.0
KIND = "bench"
NUMBERS = count()


class Bare(Background):
    """Has each occasion done by a job that does nothing."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__()
        self._daemon = daemon
        self._new: list[Occasion] = []
        self._tasks: set[asyncio.Task[str]] = set()
        self.done = asyncio.Event()
        daemon.jobs.register(KIND, self._do)

    def write(  # type: ignore[override]  # reason: it notes what it writes
        self, connection: Connection, occasions: Iterable[Occasion]
    ) -> Sequence[Occasion]:
        """Write occasions as any background does."""
        self._new += (written := Background.write(connection, occasions))
        return written

    def wake(self) -> None:
        """Submit a job for each."""
        while self._new:
            submit = self._daemon.jobs.submit(KIND, self._new.pop().id, None)
            task = asyncio.ensure_future(submit)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def job(self) -> None:
        """Submit a job, and wait until it was done."""
        self.done.clear()
        await self._daemon.jobs.submit(KIND, f"job {next(NUMBERS)}", None)
        await self.done.wait()

    async def firing(self) -> None:
        """Cause an event that a trigger waits for, and wait until it was done."""
        self.done.clear()
        events, store = self._daemon.events, self._daemon.store
        event = Custom("shop", time.time(), "firing", {"number": next(NUMBERS)})
        keep = events.keeping(event)
        assert keep is not None, "the trigger does not wait for it"
        await store.write(keep)
        events.publish(event)
        await self.done.wait()

    async def _do(self, job: RunningJob) -> Json:
        del job
        self.done.set()
        return None


def patterns() -> list[Any]:
    """A hundred patterns: some of each kind, most of which wait for something else."""
    some = [
        {"agent_spawned": {"name_pattern": "worker-*"}},
        {"memory_key_pattern": {"key_pattern": "plan.*"}},
        {"content_match": {"substring": "invoice overdue"}},
        {"system_keyword": {"keyword": "degraded"}},
        "agent_terminated",
    ]
    return some * (TRIGGERS // len(some))


def sample(number: int) -> Event:
    """An event as a busy daemon has them."""
    turn = ("ada", "session", "turn")
    text = "The report is ready; it has the figures of last week. " * 8
    samples: list[Event] = [
        AgentSpawned("agent", 1.0, f"helper-{number}"),
        MemoryChanged("agent", 1.0, f"notes.{number}", "set"),
        MessageReceived("agent", 1.0, *turn, "operator", text),
        ToolEnded("agent", 1.0, "look", "turn", is_error=False, seconds=1.0, text=text),
        TurnEnded("agent", 1.0, *turn, "done", text, "", 10, 20, 30),
        Custom("shop", 1.0, "order", {"number": number, "lines": [1, 2, 3]}),
    ]
    return samples[number % len(samples)]


async def make(daemon: Daemon, triggers: Triggers, said: Iterable[Any]) -> None:
    """Make a trigger of each pattern, for an agent of the daemon."""
    [agent] = daemon.agents.list()
    for pattern in said:
        trigger = Trigger(
            id=f"trigger {next(NUMBERS)}",
            agent_id=agent.id,
            pattern=pattern_of(pattern),
            prompt_template="{{event}}",
            creator=Creator("operator", "operator"),
            created_at=time.time(),
            cooldown_secs=0.0,
        )
        await triggers.create(Context(OPERATOR), trigger)


def matching_us(daemon: Daemon) -> float:
    """CPU microseconds of asking about an event that nothing waits for in the end."""
    spent = []
    for _ in range(ROUNDS):
        events = [sample(number) for number in range(EVENTS)]
        start = time.process_time()
        for event in events:
            daemon.events.keeping(event)
        spent.append((time.process_time() - start) / EVENTS * 1e6)
    return statistics.median(spent)


async def in_turns(*sides: Callable[[], Awaitable[None]]) -> list[float]:
    """CPU microseconds of each, measured in turns; the median of the rounds."""
    spent: list[list[float]] = [[] for _ in sides]
    for _ in range(ROUNDS):
        for each, costs in zip(sides, spent, strict=True):
            start = time.process_time()
            for _ in range(FIRINGS):
                await each()
            costs.append((time.process_time() - start) / FIRINGS * 1e6)
    return [statistics.median(costs) for costs in spent]


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[Daemon]:
    """Run a daemon with an agent."""
    daemon = Daemon(home, environ={"AGENTHOST_LISTEN_ADDR": "127.0.0.1:0"})
    await daemon.start()
    try:
        await daemon.agents.spawn(Context(OPERATOR), 'name = "ada"\n')
        yield daemon
    finally:
        await daemon.stop()


async def measured(home: Path) -> list[Row]:
    """Measure both."""
    async with running(home) as daemon:
        background = Bare(daemon)
        triggers = Triggers(daemon, background)
        await triggers.start()
        try:
            await make(daemon, triggers, patterns())
            each = matching_us(daemon)
            for trigger in triggers.list():
                await triggers.delete(Context(OPERATOR), trigger.id)
            await make(daemon, triggers, [{"content_match": {"substring": "firing"}}])
            firing, job = await in_turns(background.firing, background.job)
        finally:
            await triggers.stop()
    return [
        Row(f"an event against {TRIGGERS} triggers, CPU", each, "us", MATCHING_US),
        Row("a trigger's firing, CPU", firing, "us", FIRING_RATIO, job),
    ]


def trigger_rows(folder: Path) -> list[Row]:
    """Measure in a daemon of its own."""
    return asyncio.run(measured(folder / "triggers"))
