"""A node is killed, or stopped and woken again: its jobs go on within five seconds."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest
from agenthost import Job, JobState, SystemClock
from agenthost_jobs import register_schema
from agenthost_jobs.queue import EmbeddedJobs

from .conftest import OpenNode
from .rows import ALL, SCHEMA
from .worker import STEPS

pytestmark = pytest.mark.faults
PATIENCE = 30.0
TAKEN_OVER = 5.0


@pytest.fixture
async def watcher(node: OpenNode) -> EmbeddedJobs:
    """Asks for jobs and looks at them; it runs none."""
    store = await node([register_schema(), SCHEMA])
    return EmbeddedJobs(store, SystemClock())


@contextmanager
def processes(url: str, ledger: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    command = [sys.executable, "-m", "tests.plugins.cluster.worker", url, str(ledger)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE) as one,
        subprocess.Popen(command, stdin=subprocess.PIPE) as two,
    ):
        try:
            yield [one, two]
        finally:
            for each in (one, two):
                each.send_signal(signal.SIGCONT)
                each.kill()


def lines(ledger: Path) -> list[list[str]]:
    return [line.split() for line in ledger.read_text().splitlines()]


async def at_work(watcher: EmbeddedJobs, ledger: Path, jobs: int) -> Counter[int]:
    """Wait until every job has done some steps; give how many each process did."""
    async with asyncio.timeout(PATIENCE):
        while len({key for _, key, number in lines(ledger) if number == "2"}) < jobs:
            await watcher.list()
    return Counter(int(pid) for pid, *_ in lines(ledger))


async def moved_on(
    watcher: EmbeddedJobs, ledger: Path, keys: set[str], pid: int
) -> float:
    """Give how long it takes until a process works at all of these jobs."""
    began = monotonic()
    async with asyncio.timeout(PATIENCE):
        while not {key for who, key, _ in lines(ledger) if int(who) == pid} >= keys:
            await watcher.list()
    return monotonic() - began


async def all_ended(watcher: EmbeddedJobs, ids: list[str]) -> list[Job]:
    async with asyncio.timeout(PATIENCE):
        while {job.state for job in await watcher.list()} != {JobState.DONE}:  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)
    return [await watcher.get(job) for job in ids]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_jobs_of_a_node_that_is_gone_are_taken_over_and_happen_once(
    database: str,
    watcher: EmbeddedJobs,
    node: OpenNode,
    tmp_path: Path,
    how: signal.Signals,
) -> None:
    ledger = tmp_path / "ledger"
    ledger.touch()
    with processes(database, ledger) as workers:
        ids = [await watcher.submit("walk", f"job{n}", None) for n in range(3)]
        did = await at_work(watcher, ledger, len(ids))
        victim = did.most_common(1)[0][0]
        (other,) = (each.pid for each in workers if each.pid != victim)
        theirs = {key for who, key, _ in lines(ledger) if int(who) == victim}
        os.kill(victim, how)
        assert await moved_on(watcher, ledger, theirs, other) <= TAKEN_OVER
        os.kill(victim, signal.SIGCONT)
        found = await all_ended(watcher, ids)
    assert {job.state for job in found} == {JobState.DONE}
    assert {job.result for job in found if job.key in theirs} == {2}
    store = await node([register_schema(), SCHEMA])
    kept = sorted(row["name"] for row in await store.read(ALL))
    assert kept == sorted(f"job{n} {step}" for n in range(3) for step in range(STEPS))
    # What was on its way is repeated: its key is what keeps it from happening twice.
    effects = Counter((key, step) for _, key, step in lines(ledger))
    assert sum(effects.values()) - len(effects) <= 2 * len(theirs)
