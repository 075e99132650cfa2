"""The journal of turns: what was intended, what began, what is known of its end."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from functools import partial

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
from .tables import tool_calls, turns
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
_CLOSE = (
    update(turns)
    .where(turns.c.id == bindparam("turn"))
    .values(
        state=bindparam("new_state"),
        response=bindparam("new_response"),
        error=bindparam("new_error"),
        error_code=bindparam("new_code"),
        iterations=bindparam("new_iterations"),
        input_tokens=bindparam("new_input"),
        output_tokens=bindparam("new_output"),
        cost_micro_usd=bindparam("new_cost"),
        ended_at=bindparam("now"),
    )
)
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
    for step in steps:
        _keep(connection, step)


def _keep(connection: Connection, step: Step) -> None:
    if step.message is not None:
        _say(connection, step, step.message)
    if step.opened is not None:
        _open(connection, step, step.opened)
    if step.reopened:
        connection.execute(_REOPEN, {"turn": step.turn_id})
    if step.spent is not None:
        record(connection, step.spent)
    if step.closed is not None:
        _close(connection, step, step.closed)


def _say(connection: Connection, step: Step, message: Message) -> None:
    append(connection, step, message)
    if message.role is Role.TOOL:
        _end_calls(connection, step, message)
    elif step.closed is None and message.tool_uses:
        _intend(connection, step, message)


def _open(connection: Connection, step: Step, agent_id: str) -> None:
    connection.execute(
        _OPEN,
        {
            "id": step.turn_id,
            "session_id": step.session_id,
            "agent_id": agent_id,
            "state": TurnState.RUNNING.value,
            "iterations": 0,
            "input_tokens": 0,
            "output_tokens": 0,
            "cost_micro_usd": 0,
            "started_at": step.at,
        },
    )


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


def _close(connection: Connection, step: Step, closed: TurnRecord) -> None:
    if closed.state is not TurnState.DONE:
        connection.execute(_ABANDON, {"turn": step.turn_id})
    result, error = closed.result, closed.error
    connection.execute(
        _CLOSE,
        {
            "turn": step.turn_id,
            "new_state": closed.state.value,
            "new_response": result.text,
            "new_error": error.message if error else None,
            "new_code": error.code if error else None,
            "new_iterations": result.iterations,
            "new_input": result.usage.input_tokens,
            "new_output": result.usage.output_tokens,
            "new_cost": result.cost_micro_usd,
            "now": step.at,
        },
    )


def _interrupt_all(connection: Connection) -> int:
    connection.execute(
        update(tool_calls)
        .where(tool_calls.c.state == CallState.STARTED.value)
        .values(state=CallState.UNKNOWN.value)
    )
    return connection.execute(
        update(turns)
        .where(turns.c.state == TurnState.RUNNING.value)
        .values(state=TurnState.INTERRUPTED.value)
    ).rowcount
