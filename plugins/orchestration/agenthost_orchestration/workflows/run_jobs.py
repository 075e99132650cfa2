"""How runs are done: each by a job, which every start of the daemon takes up again."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from agenthost import (
    AgentHostError,
    Context,
    Grants,
    Host,
    Job,
    JobState,
    Json,
    NotFound,
    Principal,
    RunningJob,
    Waiting,
    telling,
)

from .calls import erase
from .course import Course, Leg
from .people import People
from .run_events import WorkflowRunEnded
from .run_rows import OLD, OPEN, Run, RunState, StepRecord, record_of, run_of
from .settings import WorkflowsSection
from .spending import Spending
from .walk import StepFailed
from .watchers import Watchers

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from agenthost import Keep

KIND = "workflow"
ATTEMPTS = 3
"""How often a run is tried that gets nowhere, or dies with the process."""
DAY = 86_400.0
KEPT = 90 * DAY
OVER = frozenset(
    {JobState.DONE, JobState.FAILED, JobState.POISONED, JobState.CANCELLED}
)

log = logging.getLogger(__name__)


class RunJobs:
    """Does runs, and knows those that are under way.

    A run has one job at a time; where it stops to wait for a person, the job ends and
    another is submitted when it goes on.
    """

    def __init__(self, host: Host, watchers: Watchers) -> None:
        self._host = host
        self._watchers = watchers
        self._people = People(host, self._next_leg)
        self._forget_at = 0.0
        self._spending: dict[str, Spending] = {}
        self.live: dict[str, Course] = {}

    async def start(self) -> None:
        """Take up what the last process left."""
        # One more than are made: the last closes a run that killed its process.
        self._host.jobs.register(KIND, self._do, ATTEMPTS + 1)
        await self._forget()
        for row in await self._host.store.read(OPEN):
            try:
                await self._take_up(await self.get(row["id"]))
            except (AgentHostError, ValueError, LookupError):
                # One that cannot be read holds up none of the others.
                log.exception("run %s was not taken up", row["id"])

    async def stop(self) -> None:
        """Wait for people no more; jobs are ended by what runs them."""
        await self._people.stop()

    async def get(self, run_id: str) -> Run:
        """Read a run.

        Raises:
            NotFound: There is none.
        """
        from .run_tables import ONE

        row = await self._host.store.first(ONE, {"id": run_id})
        if row is None:
            raise NotFound("workflow run", run_id)
        return run_of(row)

    async def records(self, run_id: str, after: int = 0) -> Sequence[StepRecord]:
        """Read the step records of a run behind the one of this number."""
        from .run_tables import RECORDS

        wanted = {"run": run_id, "after": after}
        return [record_of(row) for row in await self._host.store.read(RECORDS, wanted)]

    async def submit(self, run: Run) -> str:
        """Have the run done; give the id of its job, the same however often."""
        payload = {"run": run.id, "leg": run.leg}
        key, context = f"{KIND}:{run.id}:{run.leg}", _context(run)
        return await self._host.jobs.submit(KIND, key, payload, context=context)

    async def cancel(self, run: Run, reason: str) -> None:
        """End what a run does, whose row says by now that it was cancelled."""
        self._people.forget(run.id)
        self._spending.pop(run.id, None)
        if course := self.live.get(run.id):
            course.cancelled_for = reason
        await self._host.jobs.cancel(await self.submit(run))
        # Also beside a course: what waits is none of the turns that it stops.
        await self._clean_up(run, reason)

    def ending(
        self, run: Run, state: RunState, code: str, cost: int
    ) -> AbstractContextManager[Keep | None]:
        """Tell of a run's end, once that is on disk."""
        return telling(
            self._host.events,
            WorkflowRunEnded,
            run.id,
            self._host.clock.time(),
            run.workflow_id,
            run.workflow_name,
            state=state.value,
            error=code,
            cost_micro_usd=cost,
            by=run.owner,
            depth=run.depth,
        )

    async def _do(self, job: RunningJob) -> Json:
        """Do a run as far as it goes: the handler of its jobs."""
        told: Any = job.payload
        run = await self.get(told["run"])
        if run.ended:
            # The process died between the end and what follows it.
            await self._clean_up(run, "its run ended")
            return None
        if run.leg != told["leg"]:
            return None
        if job.job.attempts > ATTEMPTS:
            await self._end(job, run, _given_up(job.job))
            return None
        await self._conduct(job, run)
        await self._forget()
        return None

    async def _conduct(self, job: RunningJob, run: Run) -> None:
        known = await self.records(run.id)
        spending = self._spending.pop(run.id, None) or Spending.of(run)
        leg = Leg(run, known, _context(run), spending)
        course = Course(self._host, leg, self._watchers)
        self.live[run.id] = course
        over = False
        try:
            await self._begin(run)
            over = await self._followed(job, run, course)
        finally:
            del self.live[run.id]
            self._watchers.run(run.id)
            if over or course.cancelled_for:
                reason = course.cancelled_for or "its run ended"
                await self._withdraw({*run.waiting, *course.waiting}, reason)
                await self._erase(run, set(course.calls.sessions.values()))
            else:
                await course.save()
        if course.waiting:
            await self._expect(run, course.waiting, spending)

    async def _expect(self, run: Run, turns: Sequence[str], spending: Spending) -> None:
        """Have turns that go on draw from the run's pool, and the run go on then."""
        self._spending[run.id] = spending
        for turn_id in set(turns) - spending.calls.keys():
            record = await self._host.journal.find(turn_id)
            if record is not None:
                await spending.count(self._host, record.agent_id, turn_id)
        await self._people.expect(run.id, turns, spending)

    async def _followed(self, job: RunningJob, run: Run, course: Course) -> bool:
        """Follow the run to its end; False where it waits for a person."""
        limit = self._host.settings(WorkflowsSection).max_seconds
        try:
            output = await course.output(job, limit)
        except Waiting:
            await self._put_aside(run, course)
            return False
        except StepFailed as failed:
            ending = {
                "state": RunState.FAILED,
                "error": failed.message,
                "code": failed.code,
            }
        else:
            ending = {"state": RunState.COMPLETED, "output": output}
        await self._end(job, run, {**ending, "seconds": course.seconds})
        return True

    async def _begin(self, run: Run) -> None:
        from . import run_tables

        if run.started_at is None or run.waiting:
            begun = {
                "state": RunState.RUNNING.value,
                "started_at": run.started_at or self._host.clock.time(),
                "waiting": "[]",
            }
            change = partial(run_tables.change_mine, run=run.id, values=begun)
            await self._host.store.write(change)

    async def _put_aside(self, run: Run, course: Course) -> None:
        """Write that the run waits; whatever ends then, its next job goes on."""
        from . import run_tables

        values = {"waiting": json.dumps(course.waiting), "leg": run.leg + 1}
        change = partial(run_tables.change_mine, run=run.id, values=values)
        await self._host.store.write(change)

    async def _end(self, job: RunningJob, run: Run, ending: dict[str, Any]) -> None:
        """Write a run's end, once, in the commit of the job's last step."""
        from . import run_tables

        state, code = ending["state"], ending.get("code", "")
        values = run_tables.ending(now=self._host.clock.time(), **ending)
        cost = (await self.get(run.id)).cost_micro_usd

        async def nothing() -> None:
            pass

        with self.ending(run, state, code, cost) as keep:
            await job.step(
                "end",
                nothing,
                lambda connection, _: run_tables.change_mine(
                    connection, run.id, values, keep
                ),
            )
        self._watchers.run(run.id)

    async def close(self, run: Run, ending: dict[str, Any]) -> None:
        """Write the end of a run from outside its job.

        Raises:
            Superseded: It has ended meanwhile.
        """
        from . import run_tables

        state, code = ending["state"], ending.get("code", "")
        values = run_tables.ending(now=self._host.clock.time(), **ending)
        with self.ending(run, state, code, run.cost_micro_usd) as keep:
            change = partial(
                run_tables.change_mine, run=run.id, values=values, keep=keep
            )
            await self._host.store.write(change)
        self._watchers.run(run.id)

    async def _take_up(self, run: Run) -> None:
        """Go on with a run that the last process left."""
        if run.waiting:
            await self._expect(run, run.waiting, Spending.of(run))
            return
        job = await self._host.jobs.get(await self.submit(run))
        if job.state is JobState.CANCELLED:
            ending = {"error": "its job was cancelled", "code": "cancelled"}
            await self.close(run, {"state": RunState.CANCELLED, **ending})
        elif job.state in OVER:
            await self.close(run, _given_up(job))

    async def _next_leg(self, run_id: str) -> None:
        run = await self.get(run_id)
        if not run.ended:
            await self.submit(run)

    async def _clean_up(self, run: Run, reason: str) -> None:
        """End the turns that a run waits for, and delete its sessions."""
        await self._erase(run, await self._withdraw(run.waiting, reason))

    async def _withdraw(self, turns: Collection[str], reason: str) -> set[str]:
        """End turns that wait for a person, with their questions.

        Returns:
            Their sessions, which are the run's own.
        """
        sessions = set()
        for turn_id in turns:
            record = await self._host.journal.find(turn_id)
            if record is None:
                continue
            with suppress(NotFound):
                session = await self._host.sessions.get(record.session_id)
                # In an agent's own session its question stays: others may wait there.
                if session.ephemeral:
                    cancel = self._host.approvals.cancel
                    await cancel(record.agent_id, reason, session.id)
                    sessions.add(session.id)
        return sessions

    async def _erase(self, run: Run, sessions: set[str]) -> None:
        known = {each.session_id for each in await self.records(run.id)}
        await erase(self._host, (sessions | known) - {""})

    async def _forget(self) -> None:
        """Once a day, delete the runs that ended long ago."""
        now = self._host.clock.time()
        if now < self._forget_at:
            return
        self._forget_at, before = now + DAY, now - KEPT
        if await self._host.store.first(OLD, {"before": before}) is None:
            return
        from . import run_tables

        forget = partial(run_tables.forget, before=before)
        while await self._host.store.write(forget):
            pass


def _context(run: Run) -> Context:
    """Who acts in a run: by name alone, for their rights were asked at its start."""
    kind, _, name = run.owner.partition(":")
    return Context(
        Principal(kind, name, Grants(), run.person),
        log_fields={"run_id": run.id},
        labels=run.labels,
        depth=run.depth,
    )


def _given_up(job: Job) -> dict[str, Any]:
    """How a run ends whose job got nowhere."""
    died = f"the process died while it ran; it was tried {ATTEMPTS} times"
    return {
        "state": RunState.FAILED,
        "error": f"The run failed: {job.error or died}",
        "code": "internal",
    }
