"""Neither twice nor never: schedules beside a model, over stops and set clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningDaemon
from agenthost_orchestration.background.errands import Occasion, OccasionState
from agenthost_orchestration.orchestration import orchestration_of
from agenthost_orchestration.schedules.misfire import GRACE
from agenthost_orchestration.schedules.service import ScheduleService
from agenthost_orchestration.schedules.texts import NEAREST
from agenthost_orchestration.schedules.timekeeper import Timekeeper
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .model import TURNS, model
from .stage import Record, WallClock, made

LIMITS = {"skip": GRACE, "once": float("inf")}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["run", "run", "stop", "set"]),
        st.sampled_from([1, 59, 60, 121, 600, 1_800, 3_600, 4_000, 7_200, 30_000]),
        st.sampled_from([1, 1, -1]),
    ),
    min_size=2,
    max_size=7,
)
CRONS = st.sampled_from(
    ["30 2 * * *", "*/15 1-3 * * *", "0 * * * *", "*/20 * * * *", "15,45 2 * * *"]
)
MISFIRES: st.SearchStrategy[str | int] = st.sampled_from(["skip", "once", 1_200])

Course = tuple[str, str, str, str | int, int, list[Any]]


class Stage:
    """A daemon whose schedules stop and start while its clock runs and is set."""

    def __init__(self, daemon: RunningDaemon, clock: WallClock, record: Record) -> None:
        self.daemon = daemon.daemon
        self.clock = clock
        self._record = record
        self._area = orchestration_of(daemon.daemon)

    async def run(self, seconds: float) -> None:
        """Let time pass while the timer runs, no later than it wakes."""
        end = self.clock.monotonic() + seconds
        while (left := end - self.clock.monotonic()) > 0:
            row = await self.daemon.store.first(NEAREST)
            nearest = None if row is None else row["next_at"]
            ahead = left if nearest is None else nearest - self.clock.time()
            await self.clock.advance(min(left, max(ahead, 1.0)))
            await self.settle()

    async def set(self, seconds: float) -> None:
        """Set the wall clock, and give the timer the minute in which it notices."""
        self.clock.set_by(seconds)
        await self.clock.advance(60)
        await self.settle()

    async def stop(self, seconds: float) -> None:
        """Die, and start again later."""
        await self._area._keeping.stop()
        self.clock.set_by(seconds)
        # Of schedules alone: the rest of the area takes up its jobs once a process.
        conditions = partial(self._area._conditions, self.daemon)
        again = ScheduleService(self.daemon, self._record, conditions)
        self._area._keeping, self._area.schedules = again, again.schedules
        await again.start()
        await self.settle()

    async def settle(self) -> None:
        """Wait until the timer has seen the time, and has decided."""
        keeper: Timekeeper = self._area._keeping._timekeeper
        async with asyncio.timeout(30):
            while True:
                row = await self.daemon.store.first(NEAREST)
                now = self.clock.time()
                nearest = None if row is None else row["next_at"]
                if keeper._seen <= now and not (nearest and nearest <= now):
                    break
                await asyncio.sleep(0)
        await self._record.end()


def told(occasions: Sequence[Occasion], at: float) -> bool:
    """Tell whether a time was done, or is told of as missed."""
    for each in occasions:
        first, _, last = each.key.partition("/")
        span = [
            datetime.fromisoformat(end).timestamp() for end in (first, last or first)
        ]
        if span[0] <= at <= span[1] and (each.state != "due" or each.at == at):
            return True
    return False


async def obeys(folder: Path, record: Record, drawn: Course) -> None:
    """Play a course and compare what became due with the model."""
    name, day, cron, misfire, start, steps = drawn
    zone = ZoneInfo(name)
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone).timestamp()
    clock = WallClock(midnight + start)
    daemons = Daemons(folder)
    try:
        daemon = await daemons.start(clock=clock)
        stage = Stage(daemon, clock, record)
        policy = {"within_secs": misfire} if isinstance(misfire, int) else misfire
        created = clock.time()
        await made(daemon, when={"cron": cron, "zone": name}, misfire=policy)
        for kind, seconds, sign in steps:
            await getattr(stage, kind)(seconds * (sign if kind == "set" else 1))
        found = await record.all()
    finally:
        await daemons.close()
    times = list(model(cron, zone, datetime.fromisoformat(day), 3))
    done = [each for each in found if each.state is OccasionState.DONE]
    assert len({each.at for each in done}) == len(done), "done twice"
    assert {each.at for each in done} <= set(times), "done when it was not due"
    limit = LIMITS[misfire] if isinstance(misfire, str) else misfire
    for each in done:
        late = record.written[each.id] - each.at
        assert 0 <= late <= max(limit, GRACE), "done early, or later than it may be"
    for at in times:
        if created < at <= clock.time():
            assert told(found, at), f"neither done nor told of: {at}"
    assert len(found) <= 2 * len(times), "a flood"


UNHURRIED = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@settings(UNHURRIED, max_examples=2)
@given(st.data())
def test_a_schedule_is_done_neither_twice_nor_never(
    tmp_path_factory: pytest.TempPathFactory, record: Record, data: st.DataObject
) -> None:
    asyncio.run(obeys(tmp_path_factory.mktemp("home"), record, course(data)))


@pytest.mark.conformance
@settings(UNHURRIED, max_examples=40)
@given(st.data())
def test_many_schedules_are_done_neither_twice_nor_never(
    tmp_path_factory: pytest.TempPathFactory, record: Record, data: st.DataObject
) -> None:
    asyncio.run(obeys(tmp_path_factory.mktemp("home"), record, course(data)))


def course(data: st.DataObject) -> Course:
    """Draw a zone, its day, what is due, how late, from when on, and what happens."""
    name = data.draw(st.sampled_from(sorted(TURNS)))
    hours = st.integers(20, 28).map(lambda hour: hour * 3_600)
    return (
        name,
        data.draw(st.sampled_from(TURNS[name])),
        data.draw(CRONS),
        data.draw(MISFIRES),
        data.draw(st.integers(0, 20) | hours),
        data.draw(STEPS),
    )
