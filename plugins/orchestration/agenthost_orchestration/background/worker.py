"""The job of an occasion: its outcome, then its delivery, each once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agenthost import (
    OPERATOR,
    AgentHostError,
    Context,
    Denied,
    Host,
    Json,
    NotFound,
    QuotaExceeded,
    RunningJob,
    Unavailable,
    within,
)

from .beginning import Attempt, Beginning, Gone
from .delivering import deliver_once
from .doing import Doer
from .errands import Occasion, OccasionState, Source
from .outcomes import (
    Outcome,
    columns_of,
    event_of,
    failed,
    keeps_of,
    of_record,
    refused,
)
from .purses import Purses, day_of
from .rights import Lapsed
from .rows import Kept, kept_of
from .settings import BackgroundSection
from .waits import Waits

if TYPE_CHECKING:
    from sqlalchemy import Connection

PATIENCE = 30.0
LONGEST_NAME = 100

log = logging.getLogger(__name__)


class Worker:
    """Does occasions.

    Args:
        host: The daemon.
        sources: What writes occasions, by kind.
        waits: The turns of occasions.
        attempts: Runs of a job; the last only says that those before it died.
    """

    def __init__(
        self, host: Host, sources: Mapping[str, Source], waits: Waits, attempts: int
    ) -> None:
        self._host = host
        self._sources = sources
        self._waits = waits
        self._attempts = attempts
        self._settings = host.settings(BackgroundSection)
        self._purses = Purses(host)
        self._beginning = Beginning(host, self._purses, waits)
        self.doer = Doer(host, self._settings.max_seconds)

    async def read(self, occasion_id: str) -> Kept:
        """Read an occasion.

        Raises:
            NotFound: There is none.
        """
        from .tables import ONE

        row = await self._host.store.first(ONE, {"id": occasion_id})
        if row is None:
            raise NotFound("occasion", occasion_id[:LONGEST_NAME])
        return kept_of(row)

    async def run(self, job: RunningJob) -> Json:
        """Do an occasion, deliver what came of it, and tell its source."""
        payload: Any = job.payload
        attempt = Attempt(await self.read(payload["occasion"]))
        occasion = attempt.kept.occasion
        try:
            state = await job.step(
                "outcome",
                partial(self._outcome, job, attempt),
                partial(self._write, attempt),
            )
        except BaseException:
            # What it has taken so far stands in the ledger.
            self._leave(attempt)
            raise
        self._told(attempt)
        if state == OccasionState.WAITING.value:
            await self._wait((await self.read(occasion.id)).occasion)
            return state
        self._leave(attempt)
        await job.step("delivered", partial(self._delivered, occasion.id))
        await self.finish(occasion.id)
        return state

    async def _delivered(self, occasion_id: str) -> Json:
        return await deliver_once(self._host, await self.read(occasion_id))

    async def finish(self, occasion_id: str) -> None:
        """Do what follows an end, however often: its session, its source."""
        kept = await self.read(occasion_id)
        if kept.terms is not None and kept.terms.session_id:
            await self._host.sessions.erase(kept.terms.session_id)
        source = self._sources.get(kept.occasion.source)
        if source is None:
            return
        await self._pause_after_strikes(source, kept)
        what = f"the source {source.kind}"
        await within(PATIENCE, what, source.ended(self._host, kept.occasion))

    async def close(
        self, occasion_id: str, reason: str, by: Context | None = None
    ) -> None:
        """End what is not being done: cancelled by somebody, else failed."""
        from .writes import Ending, end

        kept = await self.read(occasion_id)
        occasion, context = kept.occasion, by or self._context(kept)
        state = OccasionState.FAILED if by is None else OccasionState.CANCELLED
        outcome = Outcome(state, reason, "" if by is None else "cancelled")
        spending = self._waits.spending(occasion_id)
        if spending is not None:
            outcome = replace(outcome, cost=spending.cost)
        event = event_of(occasion, outcome, context, self._host.clock.time())
        values = columns_of(occasion, outcome, event.at)
        ending = Ending(values, keeps_of(self._host, event))
        if await self._host.store.write(partial(end, occasion=occasion, ending=ending)):
            self._host.events.publish(event)
        if occasion.state is OccasionState.WAITING:
            self._leave(Attempt(kept))

    async def resume_waiting(self, kept: Kept) -> bool:
        """Take up a turn that waits since before the start; False when it has ended."""
        occasion, terms = kept.occasion, kept.terms
        if terms is not None:
            day = day_of(occasion.created_at) if kept.day is None else kept.day
            spending = await self._purses.join(
                occasion, day, terms.allowance, terms.title
            )
            self._waits.begin(occasion.id, spending, terms.depth)
        return await self._wait(occasion)

    async def _wait(self, occasion: Occasion) -> bool:
        """Hear of the end of what waits; False when that has come already."""
        occasion_id = occasion.id
        if occasion.run_id:
            self._waits.wait_for(occasion_id, self.doer.run_ended(occasion.run_id))
            return True
        self._waits.wait(occasion_id)
        record = await self._host.journal.find(occasion_id)
        outcome = None if record is None else of_record(record)
        ended = record is None or (
            outcome is not None and outcome.state is not OccasionState.WAITING
        )
        if ended:
            self._waits.ended_already(occasion_id)
        return not ended

    async def _outcome(self, job: RunningJob, attempt: Attempt) -> Json:
        """Come to an outcome, and make ready what is written and told of it."""
        occasion = attempt.kept.occasion
        if occasion.ended_at is not None:
            return occasion.state.value
        try:
            if occasion.state is OccasionState.WAITING:
                outcome = await self._of_waited(attempt)
            elif job.job.attempts >= self._attempts:
                outcome = Outcome(
                    OccasionState.FAILED,
                    "the process died again and again while it was done",
                    "poisoned",
                )
            else:
                outcome = await self._done(attempt)
        except Gone:
            return OccasionState.CANCELLED.value
        except (Unavailable, NotFound) as error:
            # It may come right by itself: the queue tries it again.
            if job.job.attempts + 1 < self._attempts:
                raise
            outcome = failed(error)
        except AgentHostError as error:
            outcome = failed(error)
        except Exception:
            log.exception("occasion %s failed", occasion.id)
            fault = "it failed for an internal reason; the log says more"
            outcome = Outcome(OccasionState.FAILED, fault, "internal")
        return self._ready(attempt, outcome)

    def _ready(self, attempt: Attempt, outcome: Outcome) -> Json:
        occasion, task = attempt.occasion, attempt.task
        spending = attempt.spending
        cost = max(outcome.cost, 0 if spending is None else spending.cost)
        if spending is not None and outcome.code == QuotaExceeded.code and task:
            had = spending.purse.told
            detail = f"{outcome.detail}; the {occasion.source} {had}"
            outcome = replace(outcome, detail=detail)
        attempt.outcome = replace(outcome, cost=cost)
        context = task.context if task else self._context(attempt.kept)
        now = self._host.clock.time()
        attempt.event = event_of(occasion, attempt.outcome, context, now)
        # Asked on the loop: what is written is written in a thread.
        own = tuple(task.keeps) if task is not None else ()
        attempt.keeps = (*keeps_of(self._host, attempt.event), *own)
        return attempt.outcome.state.value

    def _write(self, attempt: Attempt, connection: Connection, _: Json) -> None:
        """Write the outcome, in the commit that remembers it."""
        from .writes import Ending, end

        outcome, event = attempt.outcome, attempt.event
        if outcome is None or event is None:
            return
        occasion = attempt.occasion
        ending = Ending(columns_of(occasion, outcome, event.at), attempt.keeps)
        attempt.written = end(connection, occasion, ending)

    def _told(self, attempt: Attempt) -> None:
        """Tell what is on disk now."""
        events = self._host.events
        if attempt.event is not None and attempt.written:
            for each in attempt.task.events if attempt.task else ():
                events.publish(each)
            events.publish(attempt.event)

    def _leave(self, attempt: Attempt) -> None:
        """Give back what its source holds for it."""
        occasion_id = attempt.kept.occasion.id
        spending = self._waits.end(occasion_id) or attempt.spending
        if spending is not None:
            # What turns take is counted call by call, a run's cost at its end.
            run = (
                attempt.outcome if attempt.outcome and attempt.outcome.run_id else None
            )
            spending.purse.settle(occasion_id, run.cost if run else 0)
            self._purses.leave(occasion_id, spending)

    def _context(self, kept: Kept) -> Context:
        depth = 0 if kept.terms is None else kept.terms.depth
        return Context(OPERATOR, depth=depth, labels=kept.occasion.labels)

    async def _of_waited(self, attempt: Attempt) -> Outcome:
        """What came of a turn, or a run, that has waited."""
        occasion = attempt.kept.occasion
        attempt.spending = self._waits.spending(occasion.id)
        if occasion.run_id:
            return await self.doer.of_run(occasion.run_id)
        record = await self._host.journal.find(occasion.id)
        gone = Outcome(OccasionState.CANCELLED, "its turn is gone, with its session")
        if record is None:
            return gone
        found = of_record(record)
        if found is None or found.state is OccasionState.WAITING:
            raise Unavailable("its turn has not ended yet")
        return found

    async def _done(self, attempt: Attempt) -> Outcome:
        """Ask what is to be done, see that it may be, and do it."""
        occasion = attempt.kept.occasion
        source = self._sources.get(occasion.source)
        if source is None:
            raise Unavailable(f"nothing serves the source {occasion.source!r}")
        try:
            asking = source.errand(self._host, occasion)
            errand = await within(PATIENCE, f"the source {source.kind}", asking)
            task = await self._beginning.begin(attempt, errand)
            return task if isinstance(task, Outcome) else await self.doer.do(task)
        except Lapsed as error:
            await self._pause(source, occasion, error.message)
            return refused(error)
        except (Denied, NotFound) as error:
            return refused(error)

    async def _pause_after_strikes(self, source: Source, kept: Kept) -> None:
        if kept.strike < self._settings.pause_after:
            return
        from .writes import forgive

        occasion = kept.occasion
        reason = f"{kept.strike} failures in a row: {occasion.detail}"
        await self._pause(source, occasion, reason)
        await self._host.store.write(partial(forgive, occasion=occasion))

    async def _pause(self, source: Source, occasion: Occasion, reason: str) -> None:
        log.warning("%s %s is paused: %s", source.kind, occasion.source_id, reason)
        what = f"the source {source.kind}"
        # It may have been deleted meanwhile.
        with suppress(NotFound):
            pausing = source.pause(self._host, occasion.source_id, reason)
            await within(PATIENCE, what, pausing)
