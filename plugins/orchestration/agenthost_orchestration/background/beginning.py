"""Before an occasion is done: who asked for it, what it may spend, where it speaks."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from agenthost import (
    Agent,
    AgentHostError,
    Blocked,
    Conflict,
    Context,
    Host,
    Keep,
    NotFound,
    QuotaExceeded,
    Waiting,
)

from .conversations import session_for
from .doing import Task
from .errands import Errand, Occasion, OccasionState, SessionMode
from .events import OccasionEvent
from .outcomes import Outcome, event_of, refused
from .purses import Purses, Spending, day_of
from .rights import Lapsed, check_errand, principal_of
from .rows import Kept, terms_of, terms_text
from .waits import Waits


class Gone(AgentHostError):
    """It was cancelled or has ended while it was to be begun."""


@dataclass(slots=True)
class Attempt:
    """One run of an occasion's job, until its outcome is on disk."""

    kept: Kept
    outcome: Outcome | None = None
    spending: Spending | None = None
    task: Task | None = None
    event: OccasionEvent | None = None
    keeps: tuple[Keep, ...] = ()
    written: bool = False

    @property
    def occasion(self) -> Occasion:
        """The occasion as it stands."""
        return self.kept.occasion if self.task is None else self.task.occasion


class Beginning:
    """Begins occasions.

    Args:
        host: The daemon.
        purses: What sources may spend.
        waits: The turns of occasions.
    """

    def __init__(self, host: Host, purses: Purses, waits: Waits) -> None:
        self._host = host
        self._purses = purses
        self._waits = waits

    async def begin(self, attempt: Attempt, errand: Errand) -> Task | Outcome:
        """See that it may be done, and write that it is being done.

        Returns:
            What is to be done, or why it is not.

        Raises:
            Lapsed: Whoever asked for it may not any more.
            Denied: It may not be done now.
            Gone: It was cancelled meanwhile.
        """
        host, occasion = self._host, attempt.kept.occasion
        principal = await principal_of(host, errand.creator)
        agent = self._agent_of(errand)
        check_errand(principal, errand, agent)
        if agent is not None:
            try:
                agent.check_accepts_messages()
            except Conflict as error:
                return refused(error)
        day = attempt.kept.day
        day = day_of(host.clock.time()) if day is None else day
        said = errand.allowance_micro_usd, errand.title
        spending = await self._purses.join(occasion, day, *said)
        attempt.spending = spending
        labels = errand.labels | occasion.labels
        context = Context(
            principal,
            depth=errand.depth,
            labels=labels,
            pools=spending.pools,
            log_fields={"occasion_id": occasion.id},
        )
        task = Task(occasion, errand, context, spending, agent)
        if refusal := await self._no_money(task):
            return refusal
        if agent is not None:
            task.session_id = await session_for(host, occasion, errand, agent)
        self._waits.begin(occasion.id, spending, errand.depth)
        await self._mark_begun(task, day)
        attempt.task = task
        return task

    def _agent_of(self, errand: Errand) -> Agent | None:
        if not errand.agent_id:
            return None
        try:
            return self._host.agents.find(errand.agent_id)
        except NotFound as error:
            raise Lapsed(f"{error.message}; name another agent") from error

    async def _no_money(self, task: Task) -> Outcome | None:
        """Refuse what its source has no money for; what a run holds is waited for.

        While a person is asked for more nothing else of the source begins, and nothing
        after they said no: it would only ask again.
        """
        purse, errand = task.spending.purse, task.errand
        if errand.event is not None and not errand.agent_id and not errand.workflow_id:
            return None
        fresh = task.occasion.state is not OccasionState.RUNNING
        others = len(purse.members) > 1 or bool(errand.workflow_id)
        if fresh and others and (said := await self._asked(task)):
            return said
        if task.occasion.id not in purse.reserved:
            await purse.wait_for_runs()
        if fresh and purse.spent and (said := await self._over(task)):
            return said
        if errand.workflow_id and not errand.agent_id:
            purse.reserve(task.occasion.id)
            # The run has a limit of its own, for which all of this is held.
            task.context = replace(task.context, pools=())
        return None

    async def _over(self, task: Task) -> Outcome | None:
        """Refuse what nobody can be asked about; else it begins, and asks."""
        if task.spending.purse.pool.asks is not None:
            return await self._asked(task)
        told = task.spending.purse.told
        return refused(QuotaExceeded(f"the {task.occasion.source} {told}"))

    async def _asked(self, task: Task) -> Outcome | None:
        """Take what people have said of the purse, and refuse where that is nothing."""
        purse, host = task.spending.purse, self._host
        pool, why = purse.pool, f"the {task.occasion.source} {purse.told}"
        if pool.asks is None:
            return None
        try:
            granted = await host.approvals.granted(task.context, pool)
        except QuotaExceeded as no:
            return refused(no)
        except Waiting as waits:
            open_ = waits.facts["approval_id"]
            return refused(QuotaExceeded(f"{why}; a person is asked: {open_}"))
        except Blocked:
            return refused(QuotaExceeded(why)) if purse.spent else None
        pool.limit = pool.asks.limit + granted
        return None

    async def _mark_begun(self, task: Task, day: int) -> None:
        """Write that it is being done, and on which terms.

        Raises:
            Gone: It was cancelled meanwhile.
        """
        from .writes import begin

        host, occasion, errand = self._host, task.occasion, task.errand
        ends = task.session_id if errand.session is SessionMode.NEW else ""
        reserved = task.spending.purse.reserved.get(occasion.id, 0)
        values: dict[str, Any] = {
            "terms": terms_text(terms_of(errand, reserved, ends)),
            "day": day,
            "labels": json.dumps(sorted(task.context.labels)),
        }
        task.occasion = replace(occasion, labels=task.context.labels)
        if task.agent is not None:
            id_, agent_id = occasion.id, task.agent.id
            values |= {"turn_id": id_, "agent_id": agent_id}
            task.occasion = replace(task.occasion, turn_id=id_, agent_id=agent_id)
        started = Outcome(OccasionState.RUNNING)
        event = event_of(task.occasion, started, task.context, host.clock.time())
        keep = host.events.keeping(event)
        writing = partial(begin, occasion_id=occasion.id, values=values, keep=keep)
        if not await host.store.write(writing):
            raise Gone("it was cancelled")
        host.events.publish(event)
