"""What a submitter and a handler may rely on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    Conflict,
    InvalidInput,
    Job,
    JobState,
    Json,
    NotFound,
    RunningJob,
    Superseded,
)
from agenthost_jobs.queue import EmbeddedJobs
from agenthost_jobs.schema import SCHEMA
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import Connection

from .clocks import StillClock


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", [SCHEMA])
    yield store
    await store.close()


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def jobs(store: SqliteStore, clock: StillClock) -> AsyncIterator[EmbeddedJobs]:
    jobs = EmbeddedJobs(store, clock, concurrency=2)
    await jobs.start()
    yield jobs
    await jobs.stop()


async def ended(jobs: EmbeddedJobs, job: str) -> Job:
    async with asyncio.timeout(30):
        while True:
            found = await jobs.get(job)
            if found.state not in (JobState.PENDING, JobState.RUNNING):
                return found


async def echo(job: RunningJob) -> Json:
    return {"got": job.payload}


async def test_a_job_runs_and_keeps_its_result(jobs: EmbeddedJobs) -> None:
    jobs.register("echo", echo)
    job = await ended(jobs, await jobs.submit("echo", "k", [1, None]))
    assert (job.state, job.result) == (JobState.DONE, {"got": [1, None]})
    assert (job.kind, job.key, job.attempts, job.error) == ("echo", "k", 1, None)


async def test_the_same_key_is_the_same_job(jobs: EmbeddedJobs) -> None:
    runs: list[Json] = []

    async def count(job: RunningJob) -> Json:
        runs.append(job.payload)
        return None

    jobs.register("count", count)
    ids = await asyncio.gather(*(jobs.submit("count", "k", n) for n in range(20)))
    assert len(set(ids)) == 1
    await ended(jobs, ids[0])
    assert await jobs.submit("count", "k", "late") == ids[0]
    assert len(runs) == 1


async def test_a_job_waits_until_it_is_due_without_polling(
    jobs: EmbeddedJobs, clock: StillClock
) -> None:
    jobs.register("echo", echo)
    early = await jobs.submit("echo", "early", 1, due=clock.time() + 30)
    now = await jobs.submit("echo", "now", 2)
    await ended(jobs, now)
    await clock.sleeper(30)
    assert (await jobs.get(early)).state is JobState.PENDING
    assert max(clock.slept) == 30
    clock.advance(30)
    assert (await ended(jobs, early)).state is JobState.DONE
    assert len(clock.slept) <= 6


async def test_a_job_waits_for_its_handler(jobs: EmbeddedJobs) -> None:
    job = await jobs.submit("echo", "k", None)
    assert (await jobs.get(job)).state is JobState.PENDING
    jobs.register("echo", echo)
    assert (await ended(jobs, job)).state is JobState.DONE
    with pytest.raises(Conflict, match="has a handler"):
        jobs.register("echo", echo)


class Crowd:
    """Handlers that stay until they are let go, and how many were there at once."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.entered = asyncio.Event()
        self.full = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, job: RunningJob) -> Json:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.entered.set()
        if self.inside == 2:
            self.full.set()
        try:
            await self.go.wait()
        finally:
            self.inside -= 1
        return None


async def test_no_more_run_at_once_than_allowed(jobs: EmbeddedJobs) -> None:
    crowd = Crowd()
    jobs.register("crowd", crowd)
    ids = [await jobs.submit("crowd", str(n), n) for n in range(7)]
    await crowd.entered.wait()
    crowd.go.set()
    for job in ids:
        assert (await ended(jobs, job)).state is JobState.DONE
    assert crowd.most == 2


async def test_a_failure_is_kept_without_internal_text(
    jobs: EmbeddedJobs, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(job: RunningJob) -> Json:
        raise NotFound("agent", "a1")

    async def crash(job: RunningJob) -> Json:
        raise RuntimeError("sk-canary")

    async def leave(job: RunningJob) -> Json:
        raise SystemExit

    async def abandon(job: RunningJob) -> Json:
        raise asyncio.CancelledError

    async def strange(job: RunningJob) -> Json:
        return {1, 2}

    errors = {}
    for handler in (refuse, crash, leave, abandon, strange):
        jobs.register(handler.__name__, handler, attempts=1)
        job = await jobs.submit(handler.__name__, handler.__name__, None)
        found = await ended(jobs, job)
        assert found.state is JobState.FAILED
        errors[handler.__name__] = found.error
    assert errors["refuse"] == "agent not found: a1"
    assert errors["crash"] == "the handler failed (RuntimeError); the log says more"
    assert "SystemExit" in str(errors["leave"])
    assert "cancelled" in str(errors["abandon"])
    assert "result: is not JSON" in str(errors["strange"])
    assert "sk-canary" in caplog.text


async def test_a_waiting_job_can_be_cancelled(
    jobs: EmbeddedJobs, clock: StillClock
) -> None:
    jobs.register("echo", echo)
    job = await jobs.submit("echo", "k", None, due=clock.time() + 5)
    assert (await jobs.cancel(job)).state is JobState.CANCELLED
    clock.advance(10)
    other = await jobs.submit("echo", "other", None)
    assert (await ended(jobs, other)).state is JobState.DONE
    assert (await jobs.cancel(other)).state is JobState.DONE
    assert (await jobs.get(job)).attempts == 0
    with pytest.raises(NotFound, match="job not found: nobody"):
        await jobs.cancel("nobody")


async def test_a_cancelled_run_ends_and_gives_its_place_back(
    jobs: EmbeddedJobs,
) -> None:
    crowd = Crowd()
    jobs.register("crowd", crowd)
    jobs.register("echo", echo)
    ids = [await jobs.submit("crowd", str(n), n) for n in range(2)]
    await crowd.full.wait()
    for job in ids:
        assert (await jobs.cancel(job)).state is JobState.CANCELLED
    after = await jobs.submit("echo", "after", None)
    assert (await ended(jobs, after)).state is JobState.DONE
    assert crowd.inside == 0
    assert (await jobs.get(ids[0])).state is JobState.CANCELLED


async def test_a_run_whose_epoch_has_passed_commits_nothing(
    jobs: EmbeddedJobs, store: SqliteStore
) -> None:
    caught = asyncio.Event()
    rows: list[Any] = []

    async def stubborn(job: RunningJob) -> Json:
        async def work() -> Json:
            await store.write(pass_by)
            return 1

        def pass_by(connection: Connection) -> None:
            connection.exec_driver_sql("UPDATE job SET epoch = epoch + 1")

        try:
            await job.step("one", work, lambda _, output: rows.append(output))
        except Superseded:
            caught.set()
        return "too late"

    jobs.register("stubborn", stubborn)
    job = await jobs.submit("stubborn", "k", None)
    await caught.wait()
    jobs.register("echo", echo)
    await ended(jobs, await jobs.submit("echo", "after", None))
    found = await jobs.get(job)
    assert (found.state, found.result, rows) == (JobState.RUNNING, None, [])


async def test_work_in_hand_at_stop_runs_again_with_the_next_epoch(
    store: SqliteStore, clock: StillClock
) -> None:
    first, crowd = EmbeddedJobs(store, clock), Crowd()
    first.register("crowd", crowd)
    await first.start()
    job = await first.submit("crowd", "k", None)
    await crowd.entered.wait()
    await first.stop()
    cut = await first.get(job)
    assert (cut.state, cut.attempts, cut.holder) == (JobState.PENDING, 0, None)
    second = EmbeddedJobs(store, clock)
    second.register("crowd", echo)
    await second.start()
    found = await ended(second, job)
    await second.stop()
    assert (found.state, found.epoch, found.attempts) == (JobState.DONE, 2, 1)


async def test_jobs_are_listed_newest_first(
    jobs: EmbeddedJobs, clock: StillClock
) -> None:
    for number in range(4):
        await jobs.submit("odd" if number % 2 else "even", str(number), number)
        clock.advance(1)
    assert [job.payload for job in await jobs.list()] == [3, 2, 1, 0]
    assert [job.payload for job in await jobs.list(kind="odd")] == [3, 1]
    assert [job.payload for job in await jobs.list(limit=2)] == [3, 2]
    assert await jobs.list(state=JobState.DONE) == []


async def test_bad_input_is_refused(jobs: EmbeddedJobs) -> None:
    with pytest.raises(InvalidInput, match="key"):
        await jobs.submit("echo", "", None)
    with pytest.raises(InvalidInput, match="payload"):
        await jobs.submit("echo", "k", {1})
    with pytest.raises(NotFound):
        await jobs.get("nobody")
