"""Doing what an errand says: a turn, a run of a workflow, or an event."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from agenthost import (
    Agent,
    AgentHostError,
    Cancelled,
    Clock,
    Conflict,
    Context,
    Custom,
    Host,
    Interrupted,
    InvalidInput,
    Keep,
    NotFound,
    Turn,
    TurnFailed,
    TurnOptions,
    TurnResult,
    TurnState,
    Unavailable,
    user_message,
)

from .conversations import shorten
from .errands import Errand, Occasion, OccasionState, SessionMode
from .outcomes import Outcome, failed, of_record, of_run
from .purses import Spending
from .runner import Library, Runner

T = TypeVar("T")
LATER = 5.0
"""Seconds until what the daemon has no room for now is tried again."""


class TooLong(TurnFailed):
    """It took longer than it may."""

    code = "timeout"


@dataclass(slots=True)
class Task:
    """An occasion that is being done.

    Args:
        occasion: Which.
        errand: What is to be done.
        context: With whose rights, within which limits.
        spending: What it spends.
        agent: Whose turn it is, if it is one.
        session_id: The session of the turn, "" for the agent's own.
        events: What it has caused, to be told once that is on disk.
        keeps: What others keep of that, in the commit of the outcome.
    """

    occasion: Occasion
    errand: Errand
    context: Context
    spending: Spending
    agent: Agent | None = None
    session_id: str = ""
    events: list[Custom] = field(default_factory=list)
    keeps: list[Keep] = field(default_factory=list)


class Doer:
    """Does what errands say, each within its time.

    Args:
        host: The daemon.
        seconds: How long one may take.
    """

    def __init__(self, host: Host, seconds: float) -> None:
        self._host = host
        self._seconds = seconds
        self._stops: dict[str, Callable[[str], object]] = {}
        self.runs: Runner | None = None
        self.workflows: Library | None = None

    async def do(self, task: Task) -> Outcome:
        """Do it; what it fails with is its outcome."""
        if task.agent is not None:
            doing = self._turn(task, task.agent)
        elif task.errand.workflow_id:
            doing = self._run(task)
        else:
            doing = self._event(task)
        try:
            return await doing
        except AgentHostError as error:
            return failed(error)
        finally:
            self._stops.pop(task.occasion.id, None)

    def stop(self, occasion_id: str, reason: str) -> bool:
        """Stop what is being done; False when nothing is."""
        stop = self._stops.get(occasion_id)
        if stop is None:
            return False
        stop(reason)
        return True

    async def _turn(self, task: Task, agent: Agent) -> Outcome:
        host, occasion = self._host, task.occasion
        record = await host.journal.find(occasion.id)
        if record is not None and (known := of_record(record)) is not None:
            return known
        until = host.clock.monotonic() + self._seconds
        if record is None and task.errand.session is SessionMode.ROLLING:
            shortening = shorten(host, agent, task.session_id, task.errand.keep)
            try:
                await in_time(host.clock, self._seconds, shortening)
            except TimeoutError:
                raise TooLong(self._limit) from None
        while True:
            turn = await self._started(task, agent, until)
            try:
                result = await self._ended(turn, until)
            except Interrupted:
                # The daemon ends: the next start goes on with the same turn.
                await host.clock.sleep(LATER)
                continue
            return Outcome(
                OccasionState.DONE,
                text=result.text,
                labels=result.labels,
                cost=result.cost_micro_usd,
            )

    async def _started(self, task: Task, agent: Agent, until: float) -> Turn:
        """Start the turn, once there is room; the same id is the same turn."""
        host, occasion = self._host, task.occasion
        options = TurnOptions(turn_id=occasion.id, session_id=task.session_id or None)
        message = user_message(task.errand.prompt)
        while True:
            try:
                agent = host.agents.get(agent.id)
                turn = host.turns.start(task.context, agent, message, options)
            except Unavailable as error:
                if host.clock.monotonic() >= until:
                    raise TooLong(
                        f"there was no room for it: {error.message}"
                    ) from None
                await host.clock.sleep(LATER)
            else:
                self._stops[occasion.id] = turn.cancel
                return turn

    async def _ended(self, turn: Turn, until: float) -> TurnResult:
        left = until - self._host.clock.monotonic()
        try:
            return await in_time(self._host.clock, left, turn.result())
        except TimeoutError:
            turn.cancel(self._limit, TurnState.FAILED)
        try:
            return await turn.result()
        except TurnFailed as error:
            raise TooLong(error.message) from error

    @property
    def _limit(self) -> str:
        return f"it ran longer than background.max_seconds allows ({self._seconds:g} s)"

    async def _run(self, task: Task) -> Outcome:
        """Run a workflow; what it may spend is held while it runs."""
        if self.runs is None or self.workflows is None:
            raise Unavailable("workflows are not served")
        runs, purse, occasion = self.runs, task.spending.purse, task.occasion
        workflow = await self.workflows.find(task.errand.workflow_id)
        run_id = await runs.start(
            task.context,
            workflow,
            task.errand.input,
            key=occasion.id,
            within=purse.of_run(occasion.id),
        )
        stopping = _Stopping()
        self._stops[occasion.id] = stopping.stop
        try:
            waiting = _first_of(runs.wait(run_id), stopping.asked.wait())
            await in_time(self._host.clock, self._seconds, waiting)
        except TimeoutError:
            stopping.late = True
        if stopping.late or stopping.reason:
            await self.end_run(run_id, task.context)
        outcome = of_run(run_id, await runs.get(run_id))
        if stopping.late:
            return replace(outcome, **_told(TooLong(self._limit)))
        if stopping.reason:
            stopped = Cancelled(f"the run was stopped: {stopping.reason}")
            return replace(outcome, **_told(stopped))
        return outcome

    async def end_run(self, run_id: str, by: Context) -> None:
        """End a run that has not ended."""
        if self.runs is not None:
            with suppress(Conflict, NotFound):
                await self.runs.cancel(run_id, by)

    async def run_ended(self, run_id: str) -> None:
        """Wait until a run has ended, however long a person takes."""
        runs = self.runs
        if runs is None:
            raise Unavailable("workflows are not served")
        with runs.watching(run_id) as changed:
            while True:
                changed.clear()
                if (await runs.get(run_id)).ended:
                    return
                await changed.wait()

    async def of_run(self, run_id: str) -> Outcome:
        """What came of a run by now."""
        if self.runs is None:
            raise Unavailable("workflows are not served")
        return of_run(run_id, await self.runs.get(run_id))

    async def _event(self, task: Task) -> Outcome:
        """Publish an event, kept in the commit that says it happened."""
        told, occasion = task.errand.event, task.occasion
        if told is None:
            raise InvalidInput("errand", "it names no agent, no workflow and no event")
        event = Custom(
            str(told.get("subject") or occasion.source_id),
            self._host.clock.time(),
            type=str(told["type"]),
            data=dict(told.get("data") or {}),
            id=occasion.id,
            **task.context.caused,
        )
        keep = self._host.events.keeping(event)
        task.keeps.extend([] if keep is None else [keep])
        task.events.append(event)
        return Outcome(OccasionState.DONE)


def _told(error: AgentHostError) -> dict[str, Any]:
    told = failed(error)
    return {"state": told.state, "detail": told.detail, "code": told.code}


class _Stopping:
    """Whether a run is to end: a person has asked for it, or it takes too long."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.reason = ""
        self.late = False

    def stop(self, reason: str) -> None:
        """Ask for it."""
        self.reason = reason
        self.asked.set()


async def _first_of(*doing: Awaitable[object]) -> None:
    """Wait for the first of them, and leave the others."""
    tasks = [asyncio.ensure_future(each) for each in doing]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in tasks:
            if each.done():
                each.result()
    finally:
        for each in tasks:
            each.cancel()


async def in_time(clock: Clock, seconds: float, doing: Awaitable[T]) -> T:
    """Await it for so long at most, by a clock that tests may move.

    Raises:
        TimeoutError: It takes longer; it is cancelled then.
    """
    work = asyncio.ensure_future(doing)
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        raise TimeoutError
    finally:
        work.cancel()
        timer.cancel()
