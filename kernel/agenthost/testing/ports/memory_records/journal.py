"""The journal of turns in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from agenthost_chat.chat import Message, Role, ToolOutput, Usage

from ....errors import NotFound, PastFailure, Superseded
from ....ports.records import (
    NOBODY,
    CallState,
    Entry,
    Outcome,
    Step,
    TurnRecord,
    TurnResult,
    TurnState,
    Writer,
)
from ....turns.events import NOTHING
from .places import MemoryPlace, left_by, remove
from .rows import Rows, Seat

GONE = (Superseded, NotFound)
"""What says that nothing is left for this process to close."""


def _left_by(
    writer: Writer, ids: Iterable[str], held: Mapping[str, Writer]
) -> list[str]:
    """Choose what the earlier epochs of a writer's node left, or nobody's."""

    def left(by: Writer) -> bool:
        return not by.node or (by.node == writer.node and by.epoch < writer.epoch)

    return [id_ for id_ in ids if left(held.get(id_, NOBODY))]


class MemoryJournal:
    """What turns write, and what the next process learns of them."""

    def __init__(self, rows: Rows, seat: Seat | None = None) -> None:
        self._rows = rows
        self._seat = seat or Seat()
        self._late: dict[str, Step] = {}

    def keep(self, *steps: Step) -> asyncio.Future[None]:
        """Write a turn's next steps in one piece."""
        return self._rows.write(self._keep_all, steps)

    def keep_late(self, step: Step) -> None:
        """Write what closes a turn, now or before its session's next turn."""
        error = self.keep(step).exception()
        if error is not None and not isinstance(error, GONE):
            self._late[step.turn_id] = step

    async def close_late(self, session_id: str) -> None:
        """Write now what :meth:`keep_late` has left of a session, or raise."""
        for step in [*self._late.values()]:
            if step.session_id == session_id:
                with suppress(*GONE):
                    await self.keep(step)
                del self._late[step.turn_id]

    def start_call(
        self,
        turn_id: str,
        call_id: str,
        ended: Sequence[Outcome] = (),
        writer: Writer = NOBODY,
    ) -> asyncio.Future[None]:
        """Write that an effect is about to begin, and what came of those before it."""
        return self._rows.write(self._start, turn_id, call_id, ended, writer)

    def _start(
        self, turn_id: str, call_id: str, ended: Sequence[Outcome], writer: Writer
    ) -> None:
        self._check_held(turn_id, writer)
        self._start_call(turn_id, call_id, ended)

    def _start_call(self, turn_id: str, call_id: str, ended: Sequence[Outcome]) -> None:
        for outcome in ended:
            self._end_call(turn_id, outcome)
        self._move(turn_id, call_id, CallState.STARTED)

    def line_up(
        self, session_id: str, work_id: str, writer: Writer, asked_by: str = ""
    ) -> MemoryPlace:
        """Take the last place for a session."""
        return MemoryPlace(self._rows, session_id, work_id, writer, asked_by)

    async def holder(self, session_id: str) -> tuple[str, str] | None:
        """Tell who has the first place for a session."""
        for first in self._rows.places.get(session_id, ()):
            return first.writer.node, first.work_id
        return None

    async def calls(
        self, turn_id: str
    ) -> Mapping[str, tuple[CallState, Outcome | None]]:
        """Read how a turn's calls stand, by id, with the outcome where it is kept."""
        found = self._rows.calls.items()
        return {call: stands for (turn, call), stands in found if turn == turn_id}

    async def find(self, turn_id: str) -> TurnRecord | None:
        """Read a turn, or None when there is none."""
        return self._rows.turns.get(turn_id)

    async def said(self, session_id: str, turn_id: str) -> list[Entry]:
        """Read what was said in a turn, also when it has been summarised."""
        spoken = self._rows.spoken(session_id)
        found = [each for each in spoken if each.turn_id == turn_id]
        return sorted(found, key=lambda each: each.seq)

    async def enter(self, node: str) -> Writer:
        """Begin the next epoch of a node, as which this process writes from now on."""
        self._rows.epochs[node] = self._rows.epochs.get(node, 0) + 1
        self._seat.writer = Writer(node, self._rows.epochs[node])
        return self._seat.writer

    async def interrupt(self, writer: Writer) -> int:
        """At boot: mark what earlier epochs of the node left running; count it."""
        return await self._rows.write(self._interrupt, writer)

    def _interrupt(self, writer: Writer) -> int:
        rows = self._rows
        remove(rows, left_by(rows, writer))
        fleeting = [s.id for s in rows.sessions.values() if s.ephemeral and not s.key]
        rows.erase_sessions(_left_by(writer, fleeting, rows.openers))
        left = _left_by(writer, rows.turns, rows.holders)
        running = [id_ for id_ in left if rows.turns[id_].state is TurnState.RUNNING]
        for turn_id in left:
            self._abandon_calls(turn_id)
        for turn_id in running:
            self._set(turn_id, state=TurnState.INTERRUPTED)
            rows.holders[turn_id] = writer
        return len(running)

    def _check_current(self, writer: Writer) -> None:
        if self._rows.epochs.get(writer.node, 0) > writer.epoch:
            raise Superseded("another process has started as this node since")

    def _check_held(self, turn_id: str, writer: Writer) -> None:
        if turn_id not in self._rows.turns:
            raise NotFound("turn", turn_id)
        self._check_unended(turn_id)
        holder = self._rows.holders[turn_id]
        mine = holder.node == writer.node and holder.epoch <= writer.epoch
        if holder.node and not mine:
            raise Superseded("the turn belongs to another daemon by now")

    def _check_unended(self, turn_id: str) -> None:
        if self._rows.turns[turn_id].state in {TurnState.DONE, TurnState.CANCELLED}:
            raise Superseded("the turn has ended")

    async def stop(self) -> None:
        """Try no more to write what is late."""
        self._late.clear()

    def _keep_all(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._rows.keep(step.also)
            if step.spent is not None:
                self._rows.book(step.spent)
        own, closed = steps[-1].own, steps[-1].closed
        if own is not None and own.key is None and closed is not None:
            # What began before goes; what begins here is not written at all.
            if steps[0].opened is None:
                self._check_held(steps[0].turn_id, steps[0].writer)
                self._rows.erase_sessions([own.id])
            return
        self._begin(steps[0])
        for step in steps:
            if step.message is not None:
                self._rows.append(step, step.message)
        if closed is not None:
            self._close(steps[-1], closed)
        for step in steps:
            if step.message is not None:
                self._follow_calls(step, step.message)

    def _begin(self, step: Step) -> None:
        if step.opened is not None:
            self._check_current(step.writer)
            if step.own is not None:
                self._rows.open_session(step.own, step.writer)
            self._open(step, step.opened)
            self._rows.holders[step.turn_id] = step.writer
        elif step.reopened:
            self._check_unended(step.turn_id)
            self._check_current(step.writer)
            self._reopen(step)
            self._rows.holders[step.turn_id] = step.writer
        else:
            self._check_held(step.turn_id, step.writer)

    def _open(self, step: Step, agent_id: str) -> None:
        facts = agent_id, step.session_id, step.digest, step.settings, step.owner
        begun = replace(NOTHING, labels=step.labels)
        self._rows.turns[step.turn_id] = TurnRecord(
            TurnState.RUNNING, begun, None, *facts
        )

    def _reopen(self, step: Step) -> None:
        for at, entry in [*self._rows.messages.items()]:
            if entry.turn_id == step.turn_id and entry.partial:
                self._rows.supersede(at)
        self._set(step.turn_id, state=TurnState.RUNNING, error=None)

    def _close(self, step: Step, closed: TurnRecord) -> None:
        error, result = closed.error, closed.result
        tokens = Usage(result.usage.input_tokens, result.usage.output_tokens)
        if closed.state is not TurnState.DONE:
            self._abandon_calls(step.turn_id)
        waits = closed.state is TurnState.WAITING
        self._rows.holders[step.turn_id] = NOBODY if waits else step.writer
        self._set(
            step.turn_id,
            state=closed.state,
            result=replace(result, usage=tokens),
            error=None if error is None else PastFailure(error.message, error.code),
        )

    def _set(
        self,
        turn_id: str,
        state: TurnState,
        result: TurnResult | None = None,
        error: PastFailure | None = None,
    ) -> None:
        known = self._rows.turns.get(turn_id)
        if known is not None:
            result = known.result if result is None else result
            changed = replace(known, state=state, result=result, error=error)
            self._rows.turns[turn_id] = changed

    def _follow_calls(self, step: Step, message: Message) -> None:
        outputs = [part for part in message.parts if isinstance(part, ToolOutput)]
        if step.closed is not None and step.closed.state is TurnState.WAITING:
            for out in outputs:
                if out.id not in step.unknown:
                    self._end_call(step.turn_id, Outcome(out))
        elif message.role is Role.TOOL:
            for out in outputs:
                unsure = out.id in step.unknown
                end = CallState.UNKNOWN if unsure else CallState.COMMITTED
                self._move(step.turn_id, out.id, end)
        elif step.closed is None:
            for use in message.tool_uses:
                self._rows.calls[step.turn_id, use.id] = CallState.INTENDED, None

    def _move(
        self,
        turn_id: str,
        call_id: str,
        state: CallState,
        outcome: Outcome | None = None,
    ) -> None:
        if (turn_id, call_id) in self._rows.calls:
            self._rows.calls[turn_id, call_id] = state, outcome

    def _end_call(self, turn_id: str, outcome: Outcome) -> None:
        state = CallState.COMMITTED if outcome.known else CallState.UNKNOWN
        kept = replace(outcome, waits=None)
        self._move(turn_id, outcome.output.id, state, kept)

    def _abandon_calls(self, turn_id: str) -> None:
        for (turn, call), (state, outcome) in [*self._rows.calls.items()]:
            if turn == turn_id and state is CallState.STARTED:
                self._move(turn, call, CallState.UNKNOWN, outcome)
