"""What ends overdue questions and goes on with answered turns; the rows say which."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from agenthost import (
    Agent,
    AgentHostError,
    Cancelled,
    Conflict,
    Context,
    Grants,
    Host,
    Principal,
    RateLimited,
    Row,
    Step,
    StorageFull,
    TurnRecord,
    TurnState,
    Unavailable,
    Waiting,
)

from .rows import OLD, UNSETTLED, State, approval_of

if TYPE_CHECKING:
    from agenthost import Pool

    from .purses import Money

LONGEST_WAIT = 60.0
"""Seconds after which a jump of the wall clock is noticed."""
TRY_AGAIN = 5.0
DAY = 86_400.0
KEPT = 90 * DAY
LATER = (Unavailable, StorageFull, RateLimited)
"""What stands in a turn's way now, and will not for ever."""

log = logging.getLogger(__name__)


class Keeper:
    """One task that sleeps until an answer comes or a deadline passes.

    It works from the rows alone, so that a crash between any two writes loses nothing:
    an answered row is open until its turn has gone on and ended, or asks again.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._not_before: dict[str, float] = {}
        self._forget_at = 0.0

    def start(self) -> None:
        """Begin with what the last process left."""
        self._task = asyncio.create_task(self._run(), name="approvals")

    def wake(self) -> None:
        """Look at the rows again."""
        self._changed.set()

    async def stop(self) -> None:
        """End; answered turns that have not ended go on after the next start."""
        tasks = [*self._turns.values(), *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            try:
                await self._forget()
                due = await self._once()
            except AgentHostError as error:
                log.warning("approvals are looked at again: %s", error.message)
                due = self._host.clock.time() + TRY_AGAIN
            await self._wait(due)

    async def _forget(self) -> None:
        """Once a day, delete what ended long ago."""
        now = self._host.clock.time()
        if now < self._forget_at:
            return
        if await self._host.store.first(OLD, {"before": now - KEPT}) is not None:
            from . import writes

            await self._host.store.write(partial(writes.forget, before=now - KEPT))
        self._forget_at = now + DAY

    async def _once(self) -> float | None:
        """Do what is due, and tell when something will be."""
        store, now = self._host.store, self._host.clock.time()
        rows = await store.read(UNSETTLED)
        if any(_is_pending(row) and row["deadline"] <= now for row in rows):
            from . import writes

            await store.write(partial(writes.expire, now=now))
            rows = await store.read(UNSETTLED)
        pending = [row for row in rows if _is_pending(row)]
        waiting = {row["turn_id"] for row in pending}
        self._begin([row for row in rows if row["turn_id"] not in waiting], now)
        times = [row["deadline"] for row in pending]
        return min([*times, *self._not_before.values()], default=None)

    def _begin(self, answered: Sequence[Row], now: float) -> None:
        """Go on with the turns that wait for nothing more."""
        for turn_id in dict.fromkeys(row["turn_id"] for row in answered):
            if turn_id in self._turns or self._not_before.get(turn_id, now) > now:
                continue
            self._not_before.pop(turn_id, None)
            own = [row for row in answered if row["turn_id"] == turn_id]
            task = asyncio.create_task(self._carry(turn_id, own), name="approved turn")
            self._turns[turn_id] = task
            task.add_done_callback(partial(self._carried, turn_id))

    def _carried(self, turn_id: str, _: asyncio.Task[None]) -> None:
        del self._turns[turn_id]
        self.wake()

    async def _wait(self, due: float | None) -> None:
        """Wait until something changes, or something is due."""
        waits = [asyncio.ensure_future(self._changed.wait())]
        if due is not None:
            waits.append(asyncio.ensure_future(self._sleep_until(due)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _sleep_until(self, due: float) -> Literal[True]:
        clock = self._host.clock
        await clock.sleep(max(min(due - clock.time(), LONGEST_WAIT), 0.0))
        return True

    async def _carry(self, turn_id: str, rows: Sequence[Row]) -> None:
        """Let a turn go on, and remember it once that is not to be done again."""
        from . import writes

        try:
            if any(row["state"] == State.CANCELLED for row in rows):
                withdrawn = Cancelled(
                    "the turn was stopped: its question was withdrawn"
                )
                await close_turn(self._host, turn_id, TurnState.CANCELLED, withdrawn)
            elif (money := await self._money(rows)) and money.refusal is not None:
                failed = TurnState.FAILED
                await close_turn(self._host, turn_id, failed, money.refusal)
            else:
                await self._go_on(turn_id, rows, money)
            ids = [row["id"] for row in rows]
            await self._host.store.write(partial(writes.carry, ids=ids))
        except LATER as error:
            self._again(turn_id, error.message)
        except Exception:
            log.exception("turn %s could not go on", turn_id)
            self._again(turn_id, "see above")

    def _again(self, turn_id: str, reason: str) -> None:
        log.info("turn %s goes on later: %s", turn_id, reason)
        self._not_before[turn_id] = self._host.clock.time() + TRY_AGAIN

    async def _money(self, rows: Sequence[Row]) -> Money | None:
        """Tell what came of a question about money, if the turn waited for one."""
        asked = next((row["behind"] for row in rows if row["behind"]), "")
        if not asked:
            return None
        from .purses import money_of
        from .tables import ONE

        row = await self._host.store.first(ONE, {"id": asked})
        return None if row is None else money_of(approval_of(row))

    async def _go_on(
        self, turn_id: str, rows: Sequence[Row], money: Money | None
    ) -> None:
        """Run a turn to its end, or to its next question.

        Raises:
            AgentHostError: One of ``LATER``.
        """
        try:
            agent = self._host.agents.get(rows[0]["agent_id"])
            pools = () if money is None else (money.pool,)
            await self._resume(agent, turn_id, rows, pools)
        except LATER:
            raise
        except Waiting:
            return
        except AgentHostError as error:
            # Its row may be as it was: the question has left the session, for one.
            await close_turn(self._host, turn_id, TurnState.FAILED, error)

    async def _resume(
        self, agent: Agent, turn_id: str, rows: Sequence[Row], pools: tuple[Pool, ...]
    ) -> None:
        try:
            agent.check_accepts_messages()
        except Conflict as error:
            raise Unavailable(error.message) from error
        answered = {row[name] for row in rows for name in ("id", "behind")}
        depth = rows[0]["depth"]
        context = Context(_principal(rows[0]["asked_by"]), pools=pools, depth=depth)
        while True:
            watcher = await self._host.turns.resume(context, agent, turn_id)
            watcher.leave()
            try:
                await watcher.turn.result()
                return
            except Waiting as waiting:
                # It may be answered before it has stopped to wait, and not know it.
                if waiting.facts["approval_id"] not in answered:
                    raise


async def close_turn(
    host: Host, turn_id: str, state: TurnState, error: AgentHostError
) -> None:
    """Close a turn that waits and will not go on."""
    record = await host.journal.find(turn_id)
    if record is None or record.state is not TurnState.WAITING:
        return
    closed = TurnRecord(state, record.result, error)
    now, session_id = host.clock.time(), record.session_id
    step = Step(
        session_id,
        turn_id,
        now,
        writer=host.writer,
        closed=closed,
        agent_id=record.agent_id,
    )
    await host.journal.keep(step)


def _is_pending(row: Row) -> bool:
    return bool(row["state"] == State.PENDING)


def _principal(named: str) -> Principal:
    """Who started the turn, by name alone: their rights are not needed any more."""
    kind, _, name = named.partition(":")
    return Principal(kind, name, Grants())
