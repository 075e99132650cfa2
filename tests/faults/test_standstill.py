"""The machine sleeps, or its clock jumps: nothing is lost, nothing stalls."""

from __future__ import annotations

import asyncio
import signal

import pytest
from agenthost.testing.processes import DaemonProcess

from .asking import Attempt, Way
from .conversations import Hall
from .disk import Disk, DiskFault
from .oracle import Manner
from .test_bad_disk import speaking
from .waiting import PATIENCE
from .worlds import Outside

HOUR, DAY = 3600, 86400
JUMPS = (0, -2 * HOUR, 3 * DAY, -400 * DAY, 400 * DAY, 0)


async def stand_still(seconds: float) -> None:
    """Stop the process in the middle of a stream and of a waiting request."""
    hall = await Hall(Outside).open()
    try:
        assert isinstance(hall.world, Outside)
        first, second = hall.parties
        await hall.ask(first, Way.SSE, Manner.PAUSES)
        await hall.ask(second, Way.BLOCKING, Manner.WAITS)
        process = process_of(hall.world)
        process.process.send_signal(signal.SIGSTOP)
        late = Attempt(Way.BLOCKING)
        late.go(hall.world.http, first.id, "asked while it stood still")
        await asyncio.sleep(seconds)
        process.process.send_signal(signal.SIGCONT)
        await late.leave()
        await hall.release(second)
        first.asks[0].scene.release()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(a.attempts[0].task for a in hall.asks))  # type: ignore[arg-type]
        assert all(ask.attempts[0].outcome.done for ask in hall.asks)
    finally:
        await hall.close()


def process_of(world: Outside) -> DaemonProcess:
    assert world.process is not None
    return world.process


async def test_a_daemon_that_was_stopped_finishes_what_it_had_begun() -> None:
    await stand_still(1.0)


@pytest.mark.faults
async def test_a_daemon_that_was_stopped_for_long_finishes_what_it_had_begun() -> None:
    await stand_still(30.0)


@pytest.mark.conformance
async def test_a_clock_that_jumps_moves_no_message_and_stalls_nothing(
    disk: Disk,
) -> None:
    async with speaking(disk) as (_, speaker):
        before = 0
        for wrong in JUMPS:
            disk.fails(DiskFault.NONE, wrong=wrong)
            async with asyncio.timeout(PATIENCE):
                assert await speaker.say() == 200
                assert await speaker.say() == 200
            await speaker.reads()
            facts = (await speaker.http.get("/api/health")).json()
            assert facts["status"] == "ok"
            assert before <= facts["uptime_seconds"] < before + HOUR
            before = facts["uptime_seconds"]
