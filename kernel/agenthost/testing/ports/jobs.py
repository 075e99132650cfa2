"""What every backend of the port JOBS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest
import pytest_asyncio
from agenthost_chat.chat import Json

from ...context import OPERATOR, Context
from ...errors import Conflict, InvalidInput, NotFound, Superseded
from ...ports.jobs import Job, Jobs, JobState, RunningJob
from ..clock import ManualClock

OpenJobs = Callable[[], Jobs]
CANARY = "sk-canary"
OPEN = frozenset({JobState.PENDING, JobState.RUNNING})


async def echo(run: RunningJob) -> Json:
    """Give what the job was submitted with."""
    return {"got": run.payload}


class Steps:
    """A handler of three steps, and how often each was done.

    Args:
        fails: Runs that fail, each before its next new step.
    """

    def __init__(self, fails: int = 0) -> None:
        self.done: list[str] = []
        self.runs = 0
        self._fails = fails

    async def __call__(self, run: RunningJob) -> Json:
        """Do one new step in each run that fails, and the rest in the last."""
        self.runs += 1
        outputs = []
        for number, name in enumerate(("one", "two", "three"), 1):
            outputs.append(await run.step(name, self._work(name)))
            if number == self.runs <= self._fails:
                raise InvalidInput("weather", "is bad")
        return outputs

    def _work(self, name: str) -> Callable[[], Any]:
        async def work() -> Json:
            self.done.append(name)
            return {"step": name}

        return work


class Waits:
    """A handler that stays until it is ended."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, _: RunningJob) -> Json:
        """Wait."""
        self.entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()
        return None


class Fails:
    """A handler that raises, and how often it did."""

    def __init__(self, error: Exception) -> None:
        self.runs = 0
        self._error = error

    async def __call__(self, _: RunningJob) -> Json:
        """Raise."""
        self.runs += 1
        raise self._error


class JobsContract:
    """Jobs keep every promise of the port.

    A subclass overrides the fixture ``opened``: a function that opens the jobs over
    the fixture ``clock``. What it opens the second time, after the first was stopped,
    is what a next process finds; it is started by the test.

    Example:
        ::

            class TestQueue(JobsContract):
                @pytest.fixture
                def opened(self, store: Store, clock: ManualClock) -> OpenJobs:
                    return partial(open_queue, store, clock)
    """

    patience: float = 30.0
    """Seconds within which what must happen has happened."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The time as the jobs know it."""
        return ManualClock()

    @pytest.fixture
    def opened(self, clock: ManualClock) -> OpenJobs:
        """What opens the jobs."""
        del clock
        pytest.fail("override the fixture `opened` with what opens the jobs")

    @pytest_asyncio.fixture
    async def jobs(self, opened: OpenJobs) -> AsyncIterator[Jobs]:
        """The jobs, started."""
        jobs = opened()
        await jobs.start()
        yield jobs
        await jobs.stop()

    async def ended(
        self, jobs: Jobs, job: str, clock: ManualClock | None = None
    ) -> Job:
        """Wait until a job has ended, moving the clock on where one is given."""
        async with asyncio.timeout(self.patience):
            while (found := await jobs.get(job)).state in OPEN:
                await (clock.advance(10) if clock else asyncio.sleep(0))
        return found

    async def test_a_job_runs_and_keeps_its_result(self, jobs: Jobs) -> None:
        """It is known from its submission on."""
        jobs.register("echo", echo)
        job = await jobs.submit("echo", "k", [1, None, "ключ"])
        found = await self.ended(jobs, job)
        assert (found.state, found.result) == (
            JobState.DONE,
            {"got": [1, None, "ключ"]},
        )
        assert (found.id, found.kind, found.key) == (job, "echo", "k")
        assert (found.epoch, found.error) == (1, None)

    async def test_a_job_knows_who_caused_it_and_from_what(self, jobs: Jobs) -> None:
        """Its handler is told owner and labels; unsaid they are empty."""
        told: list[Job] = []

        async def handler(running: RunningJob) -> Json:
            told.append(running.job)
            return None

        jobs.register("told", handler)
        context = Context(OPERATOR, labels=frozenset({"untrusted", "secret"}))
        job = await jobs.submit("told", "k", None, context=context)
        found = await self.ended(jobs, job)
        plain = await self.ended(jobs, await jobs.submit("told", "plain", None))
        assert (told[0].owner, told[0].labels) == (context.owner, context.labels)
        assert (found.owner, found.labels) == (context.owner, context.labels)
        assert (plain.owner, plain.labels) == ("", frozenset())

    async def test_a_key_is_one_piece_of_work(self, jobs: Jobs) -> None:
        """Asked for at once or after its end: it is done once."""
        handler = Steps()
        jobs.register("steps", handler)
        ids = await asyncio.gather(*(jobs.submit("steps", "k", n) for n in range(20)))
        assert len({*ids}) == 1
        await self.ended(jobs, ids[0])
        assert await jobs.submit("steps", "k", "late") == ids[0]
        other = await jobs.submit("steps", "other", None)
        await self.ended(jobs, other)
        assert (other != ids[0], handler.runs) == (True, 2)

    async def test_a_job_waits_until_it_is_due(
        self, jobs: Jobs, clock: ManualClock
    ) -> None:
        """The others go ahead."""
        jobs.register("echo", echo)
        later = await jobs.submit("echo", "later", 1, due=clock.time() + 30)
        await self.ended(jobs, await jobs.submit("echo", "now", 2))
        await clock.advance(29)
        await self.ended(jobs, await jobs.submit("echo", "almost", 3))
        assert (await jobs.get(later)).state is JobState.PENDING
        await clock.advance(1)
        assert (await self.ended(jobs, later)).state is JobState.DONE

    async def test_a_job_waits_for_its_handler(self, jobs: Jobs) -> None:
        """Other kinds go ahead."""
        jobs.register("echo", echo)
        waits = await jobs.submit("nobody's", "waits", None)
        await self.ended(jobs, await jobs.submit("echo", "now", None))
        assert (await jobs.get(waits)).state is JobState.PENDING
        jobs.register("nobody's", echo)
        assert (await self.ended(jobs, waits)).state is JobState.DONE

    async def test_a_kind_has_one_handler(self, jobs: Jobs) -> None:
        """A second is a Conflict; no attempt at all is InvalidInput."""
        jobs.register("echo", echo)
        with pytest.raises(Conflict):
            jobs.register("echo", echo)
        with pytest.raises(InvalidInput):
            jobs.register("never", echo, attempts=0)

    async def test_what_is_no_job_is_refused(self, jobs: Jobs) -> None:
        """No key, or a payload that is not JSON: nothing is kept."""
        with pytest.raises(InvalidInput):
            await jobs.submit("echo", "", None)
        with pytest.raises(InvalidInput):
            await jobs.submit("echo", "k", cast("Json", {1, 2}))
        with pytest.raises(InvalidInput):
            await jobs.submit("echo", "k", float("nan"))
        assert [*await jobs.list()] == []

    async def test_nobody_knows_a_job_that_was_never_asked_for(
        self, jobs: Jobs
    ) -> None:
        """NotFound, to whoever asks for it or would cancel it."""
        with pytest.raises(NotFound):
            await jobs.get("nobody")
        with pytest.raises(NotFound):
            await jobs.cancel("nobody")

    @pytest.mark.parametrize("attempts", [1, 2])
    async def test_what_fails_is_tried_again_until_its_last_attempt(
        self, jobs: Jobs, clock: ManualClock, attempts: int
    ) -> None:
        """Then it has failed with the words of our error."""
        handler = Fails(InvalidInput("weather", "is bad"))
        jobs.register("fails", handler, attempts=attempts)
        job = await jobs.submit("fails", "k", None)
        found = await self.ended(jobs, job, clock)
        assert (found.state, found.error) == (JobState.FAILED, "weather: is bad")
        assert (handler.runs, found.attempts, found.epoch) == (attempts,) * 3

    async def test_what_fails_is_not_tried_again_at_once(self, jobs: Jobs) -> None:
        """There is a pause, in which other jobs run."""
        handler = Fails(InvalidInput("weather", "is bad"))
        jobs.register("fails", handler)
        jobs.register("echo", echo)
        job = await jobs.submit("fails", "k", None)
        for number in range(5):
            await self.ended(jobs, await jobs.submit("echo", str(number), None))
        assert handler.runs == 1
        assert (await jobs.get(job)).state is JobState.PENDING

    async def test_a_failure_tells_no_internal_words(self, jobs: Jobs) -> None:
        """An error that is not ours is told by its kind at most."""
        jobs.register("crash", Fails(RuntimeError(CANARY)), attempts=1)
        found = await self.ended(jobs, await jobs.submit("crash", "k", None))
        assert found.state is JobState.FAILED
        assert found.error
        assert CANARY not in found.error

    async def test_a_result_that_is_not_json_is_a_failure(self, jobs: Jobs) -> None:
        """The job has failed and says why."""

        async def strange(_: RunningJob) -> Json:
            return cast("Json", {1, 2})

        jobs.register("strange", strange, attempts=1)
        found = await self.ended(jobs, await jobs.submit("strange", "k", None))
        assert (found.state, found.result) == (JobState.FAILED, None)
        assert found.error

    async def test_a_step_happens_once_however_often_the_job_runs(
        self, jobs: Jobs, clock: ManualClock
    ) -> None:
        """Later runs get the output of the first; a new step counts attempts anew."""
        handler = Steps(fails=2)
        jobs.register("steps", handler, attempts=2)
        job = await jobs.submit("steps", "k", None)
        found = await self.ended(jobs, job, clock)
        assert found.result == [{"step": n} for n in ("one", "two", "three")]
        assert (handler.done, handler.runs) == (["one", "two", "three"], 3)

    async def test_a_step_and_its_rows_are_remembered_together(
        self, jobs: Jobs, clock: ManualClock
    ) -> None:
        """Rows that fail undo the step: its work is repeated."""
        done: list[str] = []
        outputs: list[Json] = []

        async def work() -> Json:
            done.append("work")
            return len(done)

        def rows(_: object, output: Json) -> None:
            if len(done) == 1:
                raise InvalidInput("row", "does not fit")
            outputs.append(output)

        async def handler(run: RunningJob) -> Json:
            return await run.step("one", work, rows)

        jobs.register("rows", handler)
        found = await self.ended(jobs, await jobs.submit("rows", "k", None), clock)
        assert (found.state, found.result) == (JobState.DONE, 2)
        assert {*map(str, outputs)} == {"2"}

    async def test_a_waiting_job_can_be_cancelled(
        self, jobs: Jobs, clock: ManualClock
    ) -> None:
        """It is never begun."""
        handler = Steps()
        jobs.register("steps", handler)
        job = await jobs.submit("steps", "k", None, due=clock.time() + 5)
        for _ in range(2):
            assert (await jobs.cancel(job)).state is JobState.CANCELLED
        await clock.advance(10)
        await self.ended(jobs, await jobs.submit("steps", "other", None))
        assert handler.runs == 1

    async def test_a_running_job_can_be_cancelled(self, jobs: Jobs) -> None:
        """Its handler is ended."""
        handler = Waits()
        jobs.register("waits", handler)
        job = await jobs.submit("waits", "k", None)
        async with asyncio.timeout(self.patience):
            await handler.entered.wait()
            assert (await jobs.get(job)).state is JobState.RUNNING
            assert (await jobs.cancel(job)).state is JobState.CANCELLED
            await handler.left.wait()
        assert (await jobs.get(job)).state is JobState.CANCELLED

    async def test_a_job_that_has_ended_stays_as_it_was(self, jobs: Jobs) -> None:
        """Cancelling it changes nothing."""
        jobs.register("echo", echo)
        done = await self.ended(jobs, await jobs.submit("echo", "k", 1))
        assert await jobs.cancel(done.id) == done

    async def test_a_cancelled_run_commits_nothing_any_more(self, jobs: Jobs) -> None:
        """Its next step is refused with Superseded, whatever the handler does."""
        entered, over = asyncio.Event(), asyncio.Event()
        refused: list[Superseded] = []
        outputs: list[Json] = []

        async def work() -> Json:
            return 1

        async def stubborn(run: RunningJob) -> Json:
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                try:
                    await run.step("late", work, lambda _, out: outputs.append(out))
                except Superseded as error:
                    refused.append(error)
                finally:
                    over.set()
            return "too late"

        jobs.register("stubborn", stubborn)
        job = await jobs.submit("stubborn", "k", None)
        async with asyncio.timeout(self.patience):
            await entered.wait()
            await jobs.cancel(job)
            await over.wait()
        jobs.register("echo", echo)
        await self.ended(jobs, await jobs.submit("echo", "after", None))
        found = await jobs.get(job)
        assert (found.state, found.result) == (JobState.CANCELLED, None)
        assert (len(refused), outputs) == (1, [])

    async def test_jobs_are_listed_newest_first(
        self, jobs: Jobs, clock: ManualClock
    ) -> None:
        """Of a kind, in a state, and no more than asked for."""
        for number in range(4):
            await jobs.submit("odd" if number % 2 else "even", str(number), number)
            await clock.advance(1)
        asked: tuple[tuple[dict[str, Any], list[int]], ...] = (
            ({}, [3, 2, 1, 0]),
            ({"kind": "odd"}, [3, 1]),
            ({"limit": 2}, [3, 2]),
            ({"kind": "even", "limit": 1}, [2]),
            ({"state": JobState.PENDING}, [3, 2, 1, 0]),
            ({"state": JobState.DONE}, []),
        )
        for wanted, payloads in asked:
            assert [job.payload for job in await jobs.list(**wanted)] == payloads

    async def test_a_job_outlives_the_process_that_took_it(
        self, opened: OpenJobs
    ) -> None:
        """Whether it waits or has ended, it stays what it is; so does its key."""
        first = opened()
        first.register("echo", echo)
        await first.start()
        done = await self.ended(first, await first.submit("echo", "done", [1]))
        waits = await first.submit("later", "waits", {"a": [None]})
        kept = await first.get(waits)
        for _ in range(2):
            await first.stop()
        second = opened()
        second.register("later", echo)
        assert await second.get(done.id) == done
        assert await second.get(waits) == kept
        assert await second.submit("echo", "done", "again") == done.id
        await second.start()
        found = await self.ended(second, waits)
        await second.stop()
        assert found.result == {"got": {"a": [None]}}

    async def test_a_job_that_a_stop_cut_short_runs_again(
        self, opened: OpenJobs
    ) -> None:
        """As its next epoch; it was no attempt, and its steps are not repeated."""
        done: list[str] = []
        entered = asyncio.Event()

        async def work() -> Json:
            done.append("one")
            return "kept"

        async def cut(run: RunningJob) -> Json:
            await run.step("one", work)
            entered.set()
            return await asyncio.Event().wait()

        async def whole(run: RunningJob) -> Json:
            return await run.step("one", work)

        first = opened()
        first.register("cut", cut, attempts=1)
        await first.start()
        job = await first.submit("cut", "k", None)
        async with asyncio.timeout(self.patience):
            await entered.wait()
            await first.stop()
        second = opened()
        second.register("cut", whole, attempts=1)
        kept = await second.get(job)
        assert (kept.state, kept.attempts) == (JobState.PENDING, 0)
        await second.start()
        found = await self.ended(second, job)
        await second.stop()
        assert (found.state, found.result) == (JobState.DONE, "kept")
        assert (found.epoch, done) == (2, ["one"])
