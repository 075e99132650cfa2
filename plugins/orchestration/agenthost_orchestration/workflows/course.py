"""A run under way: its walk, the calls it makes, and the records it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from agenthost import (
    AgentHostError,
    Context,
    Host,
    RunningJob,
    TurnState,
    Waiting,
)
from agenthost_values.value_class import value_class

from .calls import Calls, turn_id_of
from .run_rows import Run, StepRecord
from .spending import Spending
from .walk import Asked, Ended, Line, Outcome, StepFailed, walk
from .watchers import Watchers


@value_class
class Leg:
    """A run as it is taken up.

    Args:
        run: As it stood when the job began.
        known: What came of the calls that were made before.
        context: Who caused it.
        spending: What it draws from.
    """

    run: Run
    known: Sequence[StepRecord]
    context: Context
    spending: Spending


class Course:
    """One run, as long as a job has it in hand.

    ``parked`` says that the daemon ends and the run goes on after its next start,
    ``cancelled_for`` why a person ended it, "" while nobody has.

    Args:
        host: The daemon.
        leg: The run, and what is known of it.
        watchers: Told when something has changed.
    """

    def __init__(self, host: Host, leg: Leg, watchers: Watchers) -> None:
        self._host = host
        self._run = leg.run
        self._known = {each.key: each.outcome for each in leg.known}
        self._watchers = watchers
        self._began = host.clock.monotonic()
        self._spending = leg.spending
        said = leg.run, leg.context, leg.spending
        self.calls = Calls(host, *said, park=self._park)
        self.waiting: list[str] = []
        self.asked: dict[str, Asked] = {}
        """The calls under way, by their keys."""
        self.parked = False
        # What is cut off by a failure of ours goes on with the job's next attempt.
        self._ends_as = TurnState.INTERRUPTED
        self.cancelled_for = ""

    @property
    def seconds(self) -> float:
        """How long the run has run, in all its legs and lives."""
        return self._run.seconds + self._host.clock.monotonic() - self._began

    async def output(self, job: RunningJob, limit: float) -> str:
        """Walk to the end, and give what came of it.

        Args:
            job: Whose steps the calls are.
            limit: The most seconds that a run may take.

        Raises:
            StepFailed: A step failed for good, or it took too long.
            Waiting: It goes on once a person has answered; ``waiting`` says in which
                turns.
        """
        walking = asyncio.ensure_future(self._walk(job))
        left = limit - self.seconds
        late = asyncio.ensure_future(self._host.clock.sleep(left))
        try:
            await asyncio.wait((walking, late), return_when=asyncio.FIRST_COMPLETED)
            if walking.done():
                return walking.result()
            self._ends_as = TurnState.FAILED
            raise StepFailed(
                f"the run took longer than {limit:g} s, the most that "
                "workflows.max_seconds allows",
                "timed_out",
            )
        finally:
            late.cancel()
            walking.cancel()
            await asyncio.gather(walking, return_exceptions=True)
            reason = self.cancelled_for or "its workflow's run stopped"
            ends_as = TurnState.CANCELLED if self.cancelled_for else self._ends_as
            await self.calls.stop(reason, ends_as)

    async def _walk(self, job: RunningJob) -> str:
        course = walk(self._run.steps, self._run.input)
        try:
            lines = next(course)
            while True:
                lines = course.send(await self._side_by_side(job, lines))
        except StopIteration as end:
            return str(end.value)

    async def _side_by_side(
        self, job: RunningJob, lines: Sequence[Line]
    ) -> Sequence[Ended]:
        """Follow lines to their ends; all of them have ended, or wait, afterwards."""
        if len(lines) == 1:
            return [await self._follow(job, lines[0])]
        following = [asyncio.ensure_future(self._follow(job, line)) for line in lines]
        try:
            await asyncio.wait(following)
        finally:
            for each in following:
                each.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        return [each.result() for each in following]

    async def _follow(self, job: RunningJob, line: Line) -> Ended:
        try:
            asked = next(line)
            while True:
                asked = line.send(await self._outcome(job, asked))
        except StopIteration as end:
            text: str | None = end.value
            return text
        except StepFailed as failed:
            return failed

    async def _outcome(self, job: RunningJob, asked: Asked) -> Outcome:
        """Give what came of a call: as it is known, or by making it."""
        if (known := self._known.get(asked.key)) is not None:
            return known
        made: list[StepRecord] = []

        async def ask() -> None:
            made.append(await self.calls.ask(asked))

        from . import run_tables

        self.asked[asked.key] = asked
        self._watchers.step(self._run.id)
        try:
            await job.step(
                asked.key,
                ask,
                lambda connection, _: run_tables.record(
                    connection, made[0], self.seconds
                ),
            )
        except Waiting:
            self.waiting.append(turn_id_of(self._run.id, asked))
            raise
        finally:
            del self.asked[asked.key]
            self._watchers.step(self._run.id)
        self.calls.learn(made[0].labels)
        return made[0].outcome

    async def save(self) -> None:
        """Keep how far it is when it stops without having ended."""
        from . import run_tables

        values = {"seconds": self.seconds}
        apart = await self.calls.apart()
        values["apart_micro_usd"] = self._spending.apart + apart
        keep = partial(run_tables.change, run=self._run.id, values=values)
        await self._host.store.write(keep)

    async def _park(self) -> NoReturn:
        """Stand still until the daemon's end cancels the job, which then goes on."""
        self.parked = True
        self._watchers.run(self._run.id)
        await asyncio.get_running_loop().create_future()
        raise AgentHostError("the daemon has ended")
