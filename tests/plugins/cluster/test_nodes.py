"""Jobs on several nodes: each runs once, wherever, and none is lost with its node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from agenthost import (
    Clock,
    Job,
    JobState,
    Json,
    RunningJob,
    Superseded,
)
from agenthost.testing import ManualClock
from agenthost_cluster.store import PostgresStore
from agenthost_jobs import register_schema
from agenthost_jobs.others import LEASE, LOOK, RENEWAL
from agenthost_jobs.queue import EmbeddedJobs

from .conftest import OpenNode

PATIENCE = 60.0


class Node:
    """A queue of its own over the database of the test."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self.jobs = EmbeddedJobs(store, clock)
        self.store = store
        self.entered = asyncio.Event()
        self.go = asyncio.Event()
        self.runs = 0
        self.steps: list[str] = []
        self.refused: list[Superseded] = []

    async def stays(self, run: RunningJob) -> Json:
        """Do one step, wait to be let go, and do another."""
        self.runs += 1
        await run.step("one", self._step("one"))
        self.entered.set()
        await self.go.wait()
        try:
            await run.step("two", self._step("two"))
        except Superseded as error:
            self.refused.append(error)
            raise
        return run.job.epoch

    async def does(self, run: RunningJob) -> Json:
        """End at once."""
        return run.payload

    def _step(self, name: str) -> Callable[[], Awaitable[Json]]:
        async def work() -> Json:
            self.steps.append(name)
            return name

        return work

    async def freeze(self) -> None:
        """Stand still, as a stopped process does: nothing is renewed or looked at."""
        assert self.jobs._dispatcher is not None
        self.jobs._dispatcher.cancel()
        await asyncio.gather(self.jobs._dispatcher, return_exceptions=True)

    async def thaw(self) -> None:
        """Go on as if nothing had been."""
        self.jobs._dispatcher = asyncio.create_task(self.jobs._dispatch())


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def nodes(node: OpenNode, clock: ManualClock) -> AsyncIterator[list[Node]]:
    nodes = [Node(await node([register_schema()]), clock) for _ in range(2)]
    for each in nodes:
        await each.jobs.start()
    yield nodes
    for each in nodes:
        await each.jobs.stop()


async def ended(node: Node, job: str, clock: ManualClock | None = None) -> Job:
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await node.jobs.get(job)
            if found.state not in {JobState.PENDING, JobState.RUNNING}:
                return found
            if clock:
                await clock.advance(LOOK)


async def renewed(node: Node, job: str, clock: ManualClock) -> None:
    """Wait until the last renewal that was due is on disk: only the clock is manual."""
    async with asyncio.timeout(PATIENCE):
        while True:
            until = (await node.jobs.get(job)).until
            if until and until - clock.time() >= LEASE - RENEWAL - LOOK:
                return


async def entered(node: Node) -> None:
    async with asyncio.timeout(PATIENCE):
        await node.entered.wait()


async def test_a_job_runs_at_once_on_the_node_that_can(nodes: list[Node]) -> None:
    """The clock stands still: nothing but the notice tells the other node of it."""
    first, second = nodes
    second.go.set()
    second.jobs.register("stays", second.stays)
    # The first may be found when the node begins to listen.
    for key in ("k", "l"):
        job = await first.jobs.submit("stays", key, None)
        assert (await ended(first, job)).state is JobState.DONE
    assert (first.runs, second.runs) == (0, 2)


async def test_a_key_is_one_piece_of_work_on_all_nodes(nodes: list[Node]) -> None:
    for each in nodes:
        each.go.set()
        each.jobs.register("stays", each.stays)
    ids = await asyncio.gather(
        *(each.jobs.submit("stays", "k", None) for each in nodes * 10)
    )
    assert len({*ids}) == 1
    await ended(nodes[0], ids[0])
    assert sum(each.runs for each in nodes) == 1


async def test_many_jobs_run_once_each_on_all_nodes(nodes: list[Node]) -> None:
    done: list[str] = []

    async def handler(run: RunningJob) -> Json:
        done.append(run.job.key)
        await asyncio.sleep(0)
        return None

    for each in nodes:
        each.jobs.register("many", handler)
    keys = [str(number) for number in range(60)]
    ids = await asyncio.gather(
        *(nodes[n % 2].jobs.submit("many", key, None) for n, key in enumerate(keys))
    )
    for job in ids:
        await ended(nodes[0], job)
    assert sorted(done) == sorted(keys)


async def test_a_start_leaves_alone_what_runs_on_a_node_that_lives(
    nodes: list[Node], node: OpenNode, clock: ManualClock
) -> None:
    first, _ = nodes
    first.jobs.register("stays", first.stays)
    job = await first.jobs.submit("stays", "k", None)
    await entered(first)
    third = Node(await node([register_schema()]), clock)
    third.jobs.register("stays", third.stays)
    await third.jobs.start()
    for _ in range(4 * int(LEASE / LOOK)):
        await clock.advance(LOOK)
        await renewed(first, job, clock)
        await third.jobs.get(job)
    first.go.set()
    found = await ended(first, job)
    await third.jobs.stop()
    assert (found.result, third.runs) == (1, 0)


async def test_a_dead_nodes_jobs_go_on_elsewhere_where_they_were(
    nodes: list[Node], clock: ManualClock
) -> None:
    first, second = nodes
    for each in nodes:
        each.jobs.register("stays", each.stays)
    second.go.set()
    await second.freeze()
    job = await first.jobs.submit("stays", "k", None)
    await entered(first)
    await first.freeze()
    await second.thaw()
    found = await ended(second, job, clock)
    assert (found.state, found.result) == (JobState.DONE, 2)
    assert (first.steps, second.steps) == (["one"], ["two"])


async def test_a_node_that_was_taken_for_dead_commits_nothing(
    nodes: list[Node], clock: ManualClock
) -> None:
    first, second = nodes
    for each in nodes:
        each.jobs.register("stays", each.stays)
    await second.freeze()
    job = await first.jobs.submit("stays", "k", None)
    await entered(first)
    await first.freeze()
    await second.thaw()
    async with asyncio.timeout(PATIENCE):
        while not second.entered.is_set():
            await clock.advance(LOOK)
            await second.jobs.get(job)
    first.go.set()
    async with asyncio.timeout(PATIENCE):
        while not first.refused:
            await first.jobs.get(job)
    second.go.set()
    found = await ended(second, job, clock)
    assert (found.state, found.result, found.epoch) == (JobState.DONE, 2, 2)


async def test_a_node_that_wakes_up_ends_what_runs_elsewhere_by_now(
    nodes: list[Node], clock: ManualClock
) -> None:
    first, second = nodes
    for each in nodes:
        each.jobs.register("stays", each.stays)
    second.go.set()
    await second.freeze()
    job = await first.jobs.submit("stays", "k", None)
    await entered(first)
    await first.freeze()
    await second.thaw()
    await ended(second, job, clock)
    await first.thaw()
    async with asyncio.timeout(PATIENCE):
        while first.jobs._running:
            await clock.advance(LOOK)
            await first.jobs.get(job)
    assert first.steps == ["one"]


async def test_a_job_that_another_node_cancels_ends_where_it_runs(
    nodes: list[Node], clock: ManualClock
) -> None:
    first, second = nodes
    first.jobs.register("stays", first.stays)
    job = await first.jobs.submit("stays", "k", None)
    await entered(first)
    assert (await second.jobs.cancel(job)).state is JobState.CANCELLED
    async with asyncio.timeout(PATIENCE):
        while first.jobs._running:
            await clock.advance(LOOK)
            await first.jobs.get(job)
    assert first.steps == ["one"]


async def test_what_an_orderly_stop_cuts_short_goes_on_elsewhere_at_once(
    nodes: list[Node],
) -> None:
    """The clock stands still: no lease is waited for."""
    first, second = nodes
    for each in nodes:
        each.jobs.register("stays", each.stays)
    second.go.set()
    await second.freeze()
    job = await first.jobs.submit("stays", "k", None)
    await entered(first)
    await second.thaw()
    second.jobs.register("done", second.does)
    for key in ("l", "m"):
        await ended(second, await second.jobs.submit("done", key, None))
    await first.jobs.stop()
    found = await ended(second, job)
    assert (found.result, found.attempts) == (2, 1)
    assert (first.steps, second.steps) == (["one"], ["two"])


def test_a_lease_outlives_a_renewal_and_ends_in_time() -> None:
    assert RENEWAL * 2 < LEASE
    assert LEASE + 2 * LOOK + RENEWAL <= 5
