"""Work that fails, kills its process, or is cut short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from agenthost import InvalidInput, Job, JobState, Json, RunningJob, Superseded
from agenthost_jobs.pauses import pause
from agenthost_jobs.queue import EmbeddedJobs
from agenthost_jobs.schema import SCHEMA
from agenthost_jobs.tables import JOB
from agenthost_storage.sqlite import SqliteStore

from .clocks import StillClock


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", [SCHEMA])
    yield store
    await store.close()


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


Boot = Callable[..., Awaitable[EmbeddedJobs]]


@pytest.fixture
async def boot(store: SqliteStore, clock: StillClock) -> AsyncIterator[Boot]:
    """Start another process's queue; those before it are zombies from then on."""
    booted: list[EmbeddedJobs] = []

    async def start(concurrency: int = 16) -> EmbeddedJobs:
        jobs = EmbeddedJobs(store, clock, concurrency=concurrency, chance=lambda: 1.0)
        booted.append(jobs)
        await jobs.start()
        return jobs

    yield start
    for jobs in booted:
        await jobs.stop()


async def until(jobs: EmbeddedJobs, job: str, holds: Callable[[Job], bool]) -> Job:
    async with asyncio.timeout(30):
        while True:
            found = await jobs.get(job)
            if holds(found):
                return found


class Flaky:
    """Fails so many times, then succeeds."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.runs = 0

    async def __call__(self, job: RunningJob) -> Json:
        self.runs += 1
        if self.runs <= self.failures:
            raise InvalidInput("weather", "is bad")
        return self.runs


async def test_what_fails_is_tried_again_after_a_growing_pause(
    boot: Boot, clock: StillClock
) -> None:
    jobs, flaky = await boot(), Flaky(2)
    jobs.register("flaky", flaky)
    job = await jobs.submit("flaky", "k", None)
    for epoch, wait in ((1, 1.0), (2, 2.0)):
        found = await until(jobs, job, failed_in(epoch))
        assert (found.attempts, found.error) == (epoch, "weather: is bad")
        assert found.due == clock.time() + wait
        assert (found.holder, found.until) == (None, None)
        clock.advance(wait)
    done = await until(jobs, job, lambda job: job.state is JobState.DONE)
    assert (done.result, done.error, done.epoch) == (3, None, 3)


def failed_in(epoch: int) -> Callable[[Job], bool]:
    return lambda job: job.state is JobState.PENDING and job.epoch == epoch


async def test_the_last_attempt_ends_in_failure(boot: Boot, clock: StillClock) -> None:
    jobs = await boot()
    for kind, attempts in (("usual", {}), ("once", {"attempts": 1})):
        flaky = Flaky(100)
        jobs.register(kind, flaky, **attempts)
        job = await jobs.submit(kind, kind, None)
        while (await jobs.get(job)).state is not JobState.FAILED:
            clock.advance(10)
        assert flaky.runs == attempts.get("attempts", 3)
        assert (await jobs.get(job)).error == "weather: is bad"


async def test_no_attempt_at_all_is_refused(boot: Boot) -> None:
    with pytest.raises(InvalidInput, match="attempts"):
        (await boot()).register("never", Flaky(0), attempts=0)


class Deadly:
    """Stands where its process dies: it is entered and never left."""

    def __init__(self) -> None:
        self.entered: list[RunningJob] = []

    async def __call__(self, job: RunningJob) -> Json:
        self.entered.append(job)
        await asyncio.Event().wait()
        return None


async def test_a_job_that_kills_its_process_is_not_run_at_every_boot(
    boot: Boot, clock: StillClock
) -> None:
    deadly, flaky = Deadly(), Flaky(0)
    first = await boot()
    job = await first.submit("deadly", "k", None)
    for number in range(6):
        jobs = await boot()
        jobs.register("deadly", deadly)
        jobs.register("fine", flaky)
        clock.advance(10)
        fine = await jobs.submit("fine", str(number), None)
        await until(jobs, fine, lambda job: job.state is JobState.DONE)
    found = await jobs.get(job)
    assert (len(deadly.entered), found.attempts) == (3, 3)
    assert found.state is JobState.POISONED
    assert "the process died while it ran; it was tried 3 times" in str(found.error)
    assert (await jobs.cancel(job)).state is JobState.POISONED


async def test_a_second_death_is_followed_by_a_pause(
    boot: Boot, clock: StillClock
) -> None:
    deadly = Deadly()
    job = await (await boot()).submit("deadly", "k", None)
    for _ in range(2):
        jobs = await boot()
        assert (await jobs.get(job)).due == clock.time()
        jobs.register("deadly", deadly)
        await until(jobs, job, lambda job: job.state is JobState.RUNNING)
    jobs = await boot()
    assert (await jobs.get(job)).due == clock.time() + 1


async def test_a_finished_step_counts_the_attempts_anew(
    boot: Boot, clock: StillClock
) -> None:
    async def step(run: RunningJob, number: int) -> None:
        async def work() -> Json:
            if run.job.epoch <= 2 * number + 1:
                raise InvalidInput("step", "is not ready")
            return number

        await run.step(f"step {number}", work)

    async def walk(run: RunningJob) -> Json:
        for number in range(4):
            await step(run, number)
        return "there"

    jobs = await boot()
    jobs.register("walk", walk)
    job = await jobs.submit("walk", "k", None)
    while (await jobs.get(job)).state in (JobState.PENDING, JobState.RUNNING):
        clock.advance(10)
    found = await jobs.get(job)
    assert (found.result, found.epoch) == ("there", 8)


async def test_a_run_is_leased_and_the_lease_is_renewed_while_it_runs(
    boot: Boot, clock: StillClock
) -> None:
    jobs, deadly = await boot(), Deadly()
    jobs.register("deadly", deadly)
    began = clock.time()
    job = await jobs.submit("deadly", "k", None)
    held = await until(
        jobs, job, lambda job: job.state is JobState.RUNNING and bool(deadly.entered)
    )
    assert (held.holder, held.until) == (deadly.entered[0].job.holder, began + 60)
    await clock.sleeper(20)
    clock.advance(20)
    renewed = await until(jobs, job, lambda job: job.until == began + 80)
    assert (renewed.holder, renewed.epoch) == (held.holder, held.epoch)


async def test_a_zombie_can_finish_neither_step_nor_job(
    boot: Boot, clock: StillClock
) -> None:
    refused, go = asyncio.Event(), asyncio.Event()

    async def late(run: RunningJob) -> Json:
        await go.wait()

        async def work() -> Json:
            return "of the zombie"

        try:
            await run.step("one", work)
        except Superseded:
            refused.set()
            raise
        return "of the zombie"

    async def quick(run: RunningJob) -> Json:
        async def work() -> Json:
            go.set()
            await refused.wait()
            return "of the living"

        return await run.step("one", work)

    # A zombie with room could take the job again.
    zombie = await boot(concurrency=1)
    zombie.register("race", late)
    job = await zombie.submit("race", "k", None)
    await until(zombie, job, lambda job: job.state is JobState.RUNNING)
    jobs = await boot()
    jobs.register("race", quick)
    done = await until(jobs, job, lambda job: job.state is JobState.DONE)
    assert (done.result, done.epoch) == ("of the living", 2)


@pytest.mark.parametrize("state", ["done", "failed", "poisoned", "cancelled"])
async def test_ended_jobs_are_kept_for_30_days(
    boot: Boot, store: SqliteStore, clock: StillClock, state: str
) -> None:
    jobs = await boot()
    waits = await jobs.submit("nobody's", "waits", None)
    old = [await jobs.submit("nobody's", str(number), None) for number in range(50)]

    async def end(job: str) -> None:
        table = JOB.update().where(JOB.c.id == job).values(state=state)
        await store.write(lambda connection: connection.execute(table).rowcount)

    for job in old:
        await end(job)
    clock.advance(29 * 86_400)
    await jobs.stop()
    again = await boot()
    assert len(await again.list()) == 51
    clock.advance(2 * 86_400)
    await again.stop()
    last = await boot()
    async with asyncio.timeout(30):
        while len(await last.list()) > 1:  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)
    assert (await last.get(waits)).state is JobState.PENDING
    assert await last.submit("nobody's", "0", None) not in old


def test_pauses_double_to_five_minutes_and_half_of_each_is_chance() -> None:
    assert [pause(n, 1.0) for n in (0, 1, 2, 3, 9)] == [0.0, 1.0, 2.0, 4.0, 256.0]
    assert pause(1_000, 1.0) == 300.0
    assert pause(3, 0.0) == 2.0
