"""The journal of turns: what was intended, what began, what is known of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from agenthost import (
    NOBODY,
    CallState,
    Entry,
    Message,
    NotFound,
    Outcome,
    Role,
    Row,
    Session,
    Step,
    Store,
    ToolOutput,
    TurnRecord,
    TurnState,
    Writer,
)
from sqlalchemy import (
    Connection,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from .codec import (
    dump_citations,
    dump_json,
    dump_labels,
    dump_part,
    dump_settings,
    load_labels,
    load_part,
)
from .fleeting import FleetingTurns
from .late import LateSteps
from .lines import Lines
from .rows import entry, turn_record
from .session_rows import SUPERSEDED, append, erase, open_session, supersede
from .tables import (
    RUNNING,
    agents,
    messages,
    session_holders,
    sessions,
    tool_calls,
    turns,
)
from .usage import record
from .writers import (
    CURRENT,
    HELD,
    OWN,
    UNENDED,
    by,
    check_current,
    check_held,
    left_by,
)

_OPEN = insert(turns)
_REOPEN = (
    update(turns)
    .where(turns.c.id == bindparam("turn"), UNENDED, CURRENT)
    .values(state=TurnState.RUNNING.value, error=None, error_code=None)
)
_CLOSE = update(turns).where(turns.c.id == bindparam("turn"), OWN)
_INTEND = insert(tool_calls)
_MOVE = (
    update(tool_calls)
    .where(
        tool_calls.c.turn_id == bindparam("turn"),
        tool_calls.c.call_id == bindparam("call"),
    )
    .values(
        state=bindparam("new_state"),
        ended_at=bindparam("now"),
        output=bindparam("out"),
        labels=func.coalesce(bindparam("made_of"), tool_calls.c.labels),
    )
)
_START = _MOVE.where(HELD)
_ABANDON = (
    update(tool_calls)
    .where(
        tool_calls.c.turn_id == bindparam("turn"),
        tool_calls.c.state == CallState.STARTED.value,
    )
    .values(state=CallState.UNKNOWN.value)
)
_FLEETING = select(sessions.c.id).where(
    sessions.c.ephemeral == 1, sessions.c.key.is_(None)
)
_CALLED = select(turns.c.id).where(turns.c.id == tool_calls.c.turn_id)
_MAY_GO_ON = select(
    exists().where(agents.c.id == bindparam("agent")).label("found"),
    CURRENT.label("current"),
)
_BY_ID = select(turns).where(turns.c.id == bindparam("id"))
_CALLS = select(
    tool_calls.c.call_id, tool_calls.c.state, tool_calls.c.output, tool_calls.c.labels
).where(tool_calls.c.turn_id == bindparam("turn"))
_SAID = (
    select(messages)
    .where(
        messages.c.session_id == bindparam("session"),
        messages.c.turn_id == bindparam("turn"),
        messages.c.partial != SUPERSEDED,
    )
    .order_by(messages.c.seq)
)


class TurnJournal:
    """What turns write, and what the next process learns of them.

    ``keep_late`` and ``close_late`` are those of what could not be written, ``line_up``
    and ``holder`` those of the lines for sessions.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        late = LateSteps(self.keep)
        self.keep_late = late.keep
        self.close_late = late.close
        self._late = late
        self._fleeting = FleetingTurns()
        self._lines = Lines(store)
        self.line_up = self._lines.up
        self.holder = self._lines.first

    def keep(self, *steps: Step) -> asyncio.Future[None]:
        """Write steps in one piece; it starts at once, awaited or not."""
        if steps[0].own is None:
            return self._store.write(partial(_keep_all, steps=steps, rows=steps))
        rows = self._fleeting.rows(steps)
        written = self._store.write(partial(_keep_all, steps=steps, rows=rows))
        self._fleeting.follow(steps, written)
        return written

    def start_call(
        self,
        turn_id: str,
        call_id: str,
        ended: Sequence[Outcome] = (),
        writer: Writer = NOBODY,
    ) -> asyncio.Future[None]:
        """Write that an effect is about to begin, and what came of those before it."""
        moves = [*map(_ended, ended), _move(call_id, CallState.STARTED)]
        starting = partial(_start_call, turn_id=turn_id, moves=moves, writer=writer)
        return self._store.write(starting)

    async def calls(
        self, turn_id: str
    ) -> Mapping[str, tuple[CallState, Outcome | None]]:
        """Read how a turn's calls stand, by id, with the outcome where it is kept."""
        rows = await self._store.read(_CALLS, {"turn": turn_id})
        return {
            row["call_id"]: (CallState(row["state"]), _outcome(row)) for row in rows
        }

    async def find(self, turn_id: str) -> TurnRecord | None:
        """Read a turn, or None when there is none."""
        row = await self._store.first(_BY_ID, {"id": turn_id})
        return None if row is None else turn_record(row)

    async def said(self, session_id: str, turn_id: str) -> list[Entry]:
        """Read what was said in a turn, also when it has been summarised."""
        found = {"session": session_id, "turn": turn_id}
        return [entry(row) for row in await self._store.read(_SAID, found)]

    async def stop(self) -> None:
        """Try no more what could not be written."""
        await self._late.stop()
        await self._lines.stop()

    async def mark_interrupted(self, writer: Writer) -> int:
        """At boot: mark what earlier epochs of the node left running; count it."""
        return await self._store.write(partial(mark_left, writer=writer))


def _outcome(row: Row) -> Outcome | None:
    part = load_part(row["output"]) if row["output"] else None
    if not isinstance(part, ToolOutput):
        return None
    known = CallState(row["state"]) is CallState.COMMITTED
    return Outcome(part, known, load_labels(row["labels"]))


def _keep_all(
    connection: Connection, steps: tuple[Step, ...], rows: tuple[Step, ...]
) -> None:
    for step in steps:
        if step.also is not None:
            step.also(connection)
        if step.spent is not None:
            record(connection, step.spent)
    if rows:
        _keep_rows(connection, rows)
    elif steps[0].opened is None or steps[-1].closed is None:
        _check_fleeting(connection, steps[0], steps[0].own)


def _check_fleeting(connection: Connection, step: Step, own: Session | None) -> None:
    """See that a turn might be written, though nothing of it is."""
    given = {"agent": own and own.agent_id, **by(step.writer)}
    found, current = connection.execute(_MAY_GO_ON, given).one()
    if not current:
        check_current(connection, step.writer)
    if not found:
        if step.opened is not None:
            raise NotFound("agent", step.opened)
        raise NotFound("session", step.session_id)


def _keep_rows(connection: Connection, steps: tuple[Step, ...]) -> None:
    first, own = steps[0], steps[-1].own
    if own is not None and own.key is None and steps[-1].closed is not None:
        if not erase(connection, own.id):
            _refuse(connection, first)
        return
    if own is not None and first.opened is not None:
        open_session(connection, own, first.writer)
    if first.reopened:
        _take_over(connection, first)
        supersede(connection, first)
    append(connection, steps)
    _set_turn(connection, first, steps[-1])
    for step in steps:
        if step.message is not None:
            _follow_calls(connection, step, step.message)


def _refuse(connection: Connection, step: Step) -> NoReturn:
    check_held(connection, step.writer, step.turn_id)
    raise NotFound("session", step.session_id)


def _set_turn(connection: Connection, first: Step, last: Step) -> None:
    """Write where the turn stands: one row, also when it begins and ends at once."""
    ending = {} if last.closed is None else _ending(last, last.closed)
    if first.opened is not None:
        connection.execute(_OPEN, {**_beginning(first, first.opened), **ending})
        return
    if last.closed is not None:
        if last.closed.state is not TurnState.DONE:
            connection.execute(_ABANDON, {"turn": last.turn_id})
        here = {"turn": last.turn_id, **by(last.writer)}
        if not connection.execute(_CLOSE, {**here, **ending}).rowcount:
            _refuse(connection, last)


def _take_over(connection: Connection, step: Step) -> None:
    taken = {"node": step.writer.node, "epoch": step.writer.epoch}
    here = {"turn": step.turn_id, **by(step.writer)}
    if not connection.execute(_REOPEN, {**here, **taken}).rowcount:
        _refuse(connection, step)


def _beginning(step: Step, agent_id: str) -> dict[str, Any]:
    return {
        "id": step.turn_id,
        "session_id": step.session_id,
        "agent_id": agent_id,
        "state": TurnState.RUNNING.value,
        "iterations": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "cost_micro_usd": 0,
        "started_at": step.at,
        "digest": step.digest,
        "settings": step.settings and dump_settings(step.settings),
        "owner": step.owner,
        "labels": dump_labels(step.labels),
        "node": step.writer.node,
        "epoch": step.writer.epoch,
    }


def _ending(step: Step, closed: TurnRecord) -> dict[str, Any]:
    result, error = closed.result, closed.error
    # Whoever has the answer that it waits for goes on with it, or closes it.
    holder = NOBODY if closed.state is TurnState.WAITING else step.writer
    return {
        "state": closed.state.value,
        "response": result.text,
        "error": error.message if error else None,
        "error_code": error.code if error else None,
        "iterations": result.iterations,
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
        "cost_micro_usd": result.cost_micro_usd,
        "ended_at": step.at,
        "model": result.model,
        "labels": dump_labels(result.labels),
        "node": holder.node,
        "epoch": holder.epoch,
        "finish": result.finish and result.finish.value,
        "citations": dump_citations(cited) if (cited := result.citations) else None,
    }


def _follow_calls(connection: Connection, step: Step, message: Message) -> None:
    if step.closed is not None and step.closed.state is TurnState.WAITING:
        _keep_outputs(connection, step, message)
    elif message.role is Role.TOOL:
        # What a turn begins with answers calls that are no rows of its own.
        if step.opened is None:
            _end_calls(connection, step, message)
    elif step.closed is None and message.tool_uses:
        _intend(connection, step, message)


def _intend(connection: Connection, step: Step, message: Message) -> None:
    labels = dump_labels(step.labels)
    connection.execute(
        _INTEND,
        [
            {
                "turn_id": step.turn_id,
                "call_id": call.id,
                "session_id": step.session_id,
                "tool": call.name,
                "arguments": dump_json(dict(call.arguments)),
                "state": CallState.INTENDED.value,
                "created_at": step.at,
                "owner": step.owner,
                "labels": labels,
            }
            for call in message.tool_uses
        ],
    )


def _move(
    call_id: str,
    state: CallState,
    now: float | None = None,
) -> dict[str, Any]:
    row = {"call": call_id, "new_state": state.value, "now": now}
    return {**row, "out": None, "made_of": None}


def _ended(outcome: Outcome) -> dict[str, Any]:
    """An effect's end, with its words: the step that holds them is yet to come."""
    state = CallState.COMMITTED if outcome.known else CallState.UNKNOWN
    labels = dump_labels(outcome.labels)
    kept = {"out": dump_part(outcome.output), "made_of": labels}
    return _move(outcome.output.id, state) | kept


def _move_calls(
    connection: Connection, turn_id: str, moves: list[dict[str, Any]]
) -> None:
    connection.execute(_MOVE, [{"turn": turn_id, **move} for move in moves])


def _start_call(
    connection: Connection, turn_id: str, moves: list[dict[str, Any]], writer: Writer
) -> None:
    here = {"turn": turn_id, **by(writer)}
    started = connection.execute(_START, [here | move for move in moves])
    if not started.rowcount:
        check_held(connection, writer, turn_id)
        raise NotFound("turn", turn_id)


def _end_calls(connection: Connection, step: Step, message: Message) -> None:
    """The calls of a step have ended; their words are in its message."""
    ended = [part.id for part in message.parts if isinstance(part, ToolOutput)]
    moves = [
        _move(id_, CallState.UNKNOWN, step.at)
        if id_ in step.unknown
        else _move(id_, CallState.COMMITTED, step.at)
        for id_ in ended
    ]
    _move_calls(connection, step.turn_id, moves)


def _keep_outputs(connection: Connection, step: Step, message: Message) -> None:
    """Some calls of the step have ended, and the turn goes on without asking again."""
    outputs = [part for part in message.parts if isinstance(part, ToolOutput)]
    ended = [_ended(Outcome(out)) for out in outputs if out.id not in step.unknown]
    if ended:
        _move_calls(connection, step.turn_id, ended)


def mark_left(connection: Connection, writer: Writer) -> int:
    """Mark what earlier epochs of a node left running; count the turns."""
    connection.execute(delete(session_holders).where(left_by(session_holders, writer)))
    fleeting = connection.execute(_FLEETING.where(left_by(sessions, writer)))
    for session_id in fleeting.scalars().all():
        erase(connection, session_id)
    connection.execute(
        update(tool_calls)
        .where(
            tool_calls.c.state == CallState.STARTED.value,
            exists(_CALLED.where(left_by(turns, writer))),
        )
        .values(state=CallState.UNKNOWN.value)
    )
    # They belong to this epoch now, so that an earlier one's late steps are refused.
    taken = {"node": writer.node, "epoch": writer.epoch}
    cut_off = {"state": TurnState.INTERRUPTED.value, **taken}
    left = update(turns).where(RUNNING, left_by(turns, writer))
    return connection.execute(left.values(**cut_off)).rowcount
