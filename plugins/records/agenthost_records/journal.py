"""The journal of turns: what was intended, what began, what is known of its end."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from functools import partial
from typing import Any

from agenthost import (
    Message,
    Role,
    Step,
    Store,
    ToolOutput,
    TurnRecord,
    TurnResult,
    TurnState,
    Usage,
)
from sqlalchemy import Connection, bindparam, insert, select, update

from .codec import dump_json
from .sessions import append
from .tables import RUNNING, tool_calls, turns
from .usage import record


class CallState(StrEnum):
    """Where a tool call stands: only STARTED and UNKNOWN may have had an effect."""

    INTENDED = "intended"
    STARTED = "started"
    COMMITTED = "committed"
    UNKNOWN = "unknown"


_OPEN = insert(turns)
_REOPEN = (
    update(turns)
    .where(turns.c.id == bindparam("turn"))
    .values(state=TurnState.RUNNING.value, error=None, error_code=None)
)
_CLOSE = update(turns).where(turns.c.id == bindparam("turn"))
_INTEND = insert(tool_calls)
_MOVE = (
    update(tool_calls)
    .where(
        tool_calls.c.turn_id == bindparam("turn"),
        tool_calls.c.call_id == bindparam("call"),
    )
    .values(state=bindparam("new_state"), ended_at=bindparam("now"))
)
_ABANDON = (
    update(tool_calls)
    .where(
        tool_calls.c.turn_id == bindparam("turn"),
        tool_calls.c.state == CallState.STARTED.value,
    )
    .values(state=CallState.UNKNOWN.value)
)
_BY_ID = select(turns).where(turns.c.id == bindparam("id"))


class TurnJournal:
    """What turns write, and what the next process learns of them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep(self, *steps: Step) -> asyncio.Future[None]:
        """Write steps in one piece; it starts at once, awaited or not."""
        return self._store.write(partial(_keep_all, steps=steps))

    def start_call(self, turn_id: str, call_id: str) -> asyncio.Future[None]:
        """Write that an effect is about to begin."""
        return self._store.write(partial(_start_call, turn_id=turn_id, call_id=call_id))

    async def find(self, turn_id: str) -> TurnRecord | None:
        """Read a turn, or None when there is none."""
        row = await self._store.first(_BY_ID, {"id": turn_id})
        if row is None:
            return None
        result = TurnResult(
            text=row["response"] or "",
            usage=Usage(row["input_tokens"], row["output_tokens"]),
            iterations=row["iterations"],
            cost_micro_usd=row["cost_micro_usd"],
        )
        return TurnRecord(TurnState(row["state"]), result)

    async def interrupt_all(self) -> int:
        """At boot: mark what the last process left running; count the turns."""
        return await self._store.write(_interrupt_all)


def _keep_all(connection: Connection, steps: tuple[Step, ...]) -> None:
    append(connection, steps)
    _set_turn(connection, steps[0], steps[-1])
    for step in steps:
        if step.spent is not None:
            record(connection, step.spent)
        if step.message is not None:
            _follow_calls(connection, step, step.message)


def _set_turn(connection: Connection, first: Step, last: Step) -> None:
    """Write where the turn stands: one row, also when it begins and ends at once."""
    ending = {} if last.closed is None else _ending(last, last.closed)
    if first.opened is not None:
        connection.execute(_OPEN, {**_beginning(first, first.opened), **ending})
        return
    if first.reopened:
        connection.execute(_REOPEN, {"turn": first.turn_id})
    if last.closed is not None:
        if last.closed.state is not TurnState.DONE:
            connection.execute(_ABANDON, {"turn": last.turn_id})
        connection.execute(_CLOSE, {"turn": last.turn_id, **ending})


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
    }


def _ending(step: Step, closed: TurnRecord) -> dict[str, Any]:
    result, error = closed.result, closed.error
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
    }


def _follow_calls(connection: Connection, step: Step, message: Message) -> None:
    if message.role is Role.TOOL:
        _end_calls(connection, step, message)
    elif step.closed is None and message.tool_uses:
        _intend(connection, step, message)


def _intend(connection: Connection, step: Step, message: Message) -> None:
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
            }
            for call in message.tool_uses
        ],
    )


def _start_call(connection: Connection, turn_id: str, call_id: str) -> None:
    connection.execute(
        _MOVE,
        {
            "turn": turn_id,
            "call": call_id,
            "new_state": CallState.STARTED.value,
            "now": None,
        },
    )


def _end_calls(connection: Connection, step: Step, message: Message) -> None:
    connection.execute(
        _MOVE,
        [
            {
                "turn": step.turn_id,
                "call": output.id,
                "new_state": CallState.COMMITTED.value,
                "now": step.at,
            }
            for output in message.parts
            if isinstance(output, ToolOutput)
        ],
    )


def _interrupt_all(connection: Connection) -> int:
    connection.execute(
        update(tool_calls)
        .where(tool_calls.c.state == CallState.STARTED.value)
        .values(state=CallState.UNKNOWN.value)
    )
    return connection.execute(
        update(turns).where(RUNNING).values(state=TurnState.INTERRUPTED.value)
    ).rowcount
