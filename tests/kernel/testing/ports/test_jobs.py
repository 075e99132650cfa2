"""The contract of jobs holds for those in memory, and finds who breaks it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from agenthost import InvalidInput, Job, JobHandler, JobState, Json, Store
from agenthost.testing import (
    JobsContract,
    ManualClock,
    MemoryJobs,
    MemoryStore,
    OpenJobs,
)
from agenthost.testing.ports.memory_jobs import Kept, MemoryRun

from .finding import finds, names_in, names_of


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    store = MemoryStore()
    yield store
    await store.close()


def opens(kind: type[MemoryJobs], store: Store, clock: ManualClock) -> OpenJobs:
    kept: dict[str, Kept] = {}
    return lambda: kind(store, clock, kept)


class TestJobsInMemory(JobsContract):
    """They keep every promise."""

    @pytest.fixture
    def opened(self, store: Store, clock: ManualClock) -> OpenJobs:
        return opens(MemoryJobs, store, clock)


class LosesResults(MemoryJobs):
    async def _outcome(self, kept: Kept, run: MemoryRun) -> dict[str, Any]:
        return {**await super()._outcome(kept, run), "result": None}


class CountsNoRuns(MemoryJobs):
    async def get(self, job: str) -> Job:
        return replace(await super().get(job), epoch=0)


class KnowsNobody(MemoryJobs):
    async def submit(self, kind: str, *more: Any, **named: Any) -> str:
        named.pop("context", None)
        return await super().submit(kind, *more, **named)


class TakesEachAsNew(MemoryJobs):
    async def submit(self, kind: str, key: str, *more: Any, **named: Any) -> str:
        for kept in self._kept.values():
            kept.now(key=f"{kept.job.key} before")
        return await super().submit(kind, key, *more, **named)


class BeginsAtOnce(MemoryJobs):
    async def submit(
        self, kind: str, key: str, payload: Json, *_: Any, **__: Any
    ) -> str:
        return await super().submit(kind, key, payload)


class FailsWithoutHandler(MemoryJobs):
    async def submit(self, kind: str, *more: Any, **named: Any) -> str:
        job = await super().submit(kind, *more, **named)
        if kind not in self._handlers:
            self._kept[job].now(state=JobState.FAILED)
        return job


class TakesTheNewestHandler(MemoryJobs):
    def register(self, kind: str, handler: JobHandler, attempts: int = 3) -> None:
        self._handlers.pop(kind, None)
        super().register(kind, handler, attempts)


class TakesAnything(MemoryJobs):
    async def submit(
        self, kind: str, key: str, payload: Any, *more: Any, **named: Any
    ) -> str:
        return await super().submit(kind, key, str(payload), *more, **named)


class InventsJobs(MemoryJobs):
    async def cancel(self, job: str) -> Job:
        if job not in self._kept:
            await self.submit("invented", job, None)
            return next(kept.job for kept in self._kept.values())
        return await super().cancel(job)


class TriesOnceMore(MemoryJobs):
    def register(self, kind: str, handler: JobHandler, attempts: int = 3) -> None:
        super().register(kind, handler, attempts + 1)


class TriesOnce(MemoryJobs):
    def register(self, kind: str, handler: JobHandler, attempts: int = 3) -> None:
        super().register(kind, handler, min(attempts, 1))


class NeverPauses(MemoryJobs):
    async def _outcome(self, kept: Kept, run: MemoryRun) -> dict[str, Any]:
        return {**await super()._outcome(kept, run), "due": 0.0}


class Wraps(MemoryJobs):
    """Puts something between a run and its handler."""

    def register(self, kind: str, handler: JobHandler, attempts: int = 3) -> None:
        async def wrapped(run: Any) -> Json:
            return await self.around(handler, run)

        super().register(kind, wrapped, attempts)

    async def around(self, handler: JobHandler, run: MemoryRun) -> Json:
        return await handler(run)


class TellsAll(Wraps):
    async def around(self, handler: JobHandler, run: MemoryRun) -> Json:
        try:
            return await handler(run)
        except RuntimeError as error:
            raise InvalidInput("handler", str(error)) from error


class TakesAnyResult(Wraps):
    async def around(self, handler: JobHandler, run: MemoryRun) -> Json:
        return str(await handler(run))


class RepeatsSteps(Wraps):
    async def around(self, handler: JobHandler, run: MemoryRun) -> Json:
        run._kept.outputs.clear()
        return await handler(run)


class CountsAllAttempts(Wraps):
    async def around(self, handler: JobHandler, run: MemoryRun) -> Json:
        attempts = run.job.attempts
        try:
            return await handler(run)
        finally:
            run._kept.now(attempts=attempts)


class RemembersTooEarly(Wraps):
    async def around(self, handler: JobHandler, run: MemoryRun) -> Json:
        return await handler(EarlyRun(run._kept, run._store))


class EarlyRun(MemoryRun):
    async def step(
        self, name: str, work: Callable[[], Awaitable[Json]], rows: Any = None
    ) -> Json:
        output = await super().step(name, work)
        if rows is not None:
            rows(None, output)
        return output


class CommitsForZombies(Wraps):
    async def around(self, handler: JobHandler, run: MemoryRun) -> Json:
        return await handler(ZombieRun(run._kept, run._store))


class ZombieRun(MemoryRun):
    @property
    def counts(self) -> bool:
        return True


class CancelsInNameAlone(MemoryJobs):
    async def cancel(self, job: str) -> Job:
        return replace(await self.get(job), state=JobState.CANCELLED)


class LeavesTheHandler(MemoryJobs):
    async def cancel(self, job: str) -> Job:
        self._tasks.pop(job, None)
        return await super().cancel(job)


class CancelsWhatHasEnded(MemoryJobs):
    async def cancel(self, job: str) -> Job:
        await super().cancel(job)
        return self._kept[job].now(state=JobState.CANCELLED)


class OldestFirst(MemoryJobs):
    async def list(self, *given: Any, **named: Any) -> Sequence[Job]:
        return [*reversed(await super().list(*given, **named))]


class ListsEveryState(MemoryJobs):
    async def list(self, *given: Any, **named: Any) -> Sequence[Job]:
        named.pop("state", None)
        return await super().list(*given, **named)


class ForgetsAtTheStop(MemoryJobs):
    async def stop(self) -> None:
        await super().stop()
        self._kept.clear()


class CountsTheStop(MemoryJobs):
    async def stop(self) -> None:
        cut = [kept for kept in self._kept.values() if self._runs(kept)]
        await super().stop()
        for kept in cut:
            kept.now(attempts=1)

    def _runs(self, kept: Kept) -> bool:
        return kept.job.state is JobState.RUNNING


class ForgetsStepsAtTheStop(MemoryJobs):
    async def stop(self) -> None:
        await super().stop()
        for kept in self._kept.values():
            kept.outputs.clear()


HERE = TestJobsInMemory()
HURRIED = TestJobsInMemory()
HURRIED.patience = 0.05
"""For what would be waited for in vain, however long."""

BREACHES: tuple[tuple[type[MemoryJobs], Any], ...] = (
    (KnowsNobody, HERE.test_a_job_knows_who_caused_it_and_from_what),
    (LosesResults, HERE.test_a_job_runs_and_keeps_its_result),
    (CountsNoRuns, HERE.test_a_job_runs_and_keeps_its_result),
    (TakesEachAsNew, HERE.test_a_key_is_one_piece_of_work),
    (BeginsAtOnce, HERE.test_a_job_waits_until_it_is_due),
    (FailsWithoutHandler, HERE.test_a_job_waits_for_its_handler),
    (TakesTheNewestHandler, HERE.test_a_kind_has_one_handler),
    (TakesAnything, HERE.test_what_is_no_job_is_refused),
    (InventsJobs, HERE.test_nobody_knows_a_job_that_was_never_asked_for),
    (TriesOnceMore, HERE.test_what_fails_is_tried_again_until_its_last_attempt),
    (TriesOnce, HERE.test_what_fails_is_tried_again_until_its_last_attempt),
    (NeverPauses, HERE.test_what_fails_is_not_tried_again_at_once),
    (TellsAll, HERE.test_a_failure_tells_no_internal_words),
    (TakesAnyResult, HERE.test_a_result_that_is_not_json_is_a_failure),
    (RepeatsSteps, HERE.test_a_step_happens_once_however_often_the_job_runs),
    (CountsAllAttempts, HERE.test_a_step_happens_once_however_often_the_job_runs),
    (RemembersTooEarly, HERE.test_a_step_and_its_rows_are_remembered_together),
    (CancelsInNameAlone, HERE.test_a_waiting_job_can_be_cancelled),
    (LeavesTheHandler, HURRIED.test_a_running_job_can_be_cancelled),
    (CancelsWhatHasEnded, HERE.test_a_job_that_has_ended_stays_as_it_was),
    (CommitsForZombies, HERE.test_a_cancelled_run_commits_nothing_any_more),
    (OldestFirst, HERE.test_jobs_are_listed_newest_first),
    (ListsEveryState, HERE.test_jobs_are_listed_newest_first),
    (ForgetsAtTheStop, HERE.test_a_job_outlives_the_process_that_took_it),
    (CountsTheStop, HERE.test_a_job_that_a_stop_cut_short_runs_again),
    (ForgetsStepsAtTheStop, HERE.test_a_job_that_a_stop_cut_short_runs_again),
)


@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_broken_jobs_are_found(
    broken: type[MemoryJobs], test: Any, store: Store
) -> None:
    clock = ManualClock()
    opened = opens(broken, store, clock)
    jobs = opened()
    await jobs.start()
    known = {"jobs": jobs, "opened": opened, "clock": clock, "attempts": 2}
    try:
        await finds(test, *(known[name] for name in inspect.signature(test).parameters))
    finally:
        await jobs.stop()


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(JobsContract)
