"""The journal of turns: what was intended, what began, what is known of its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, bindparam, insert, select, update

from ..chat import ToolOutput, ToolUse
from ..codec import dump_json
from ..errors import AgentHostError
from ..tables import tool_calls, turns
from .events import TurnResult


class TurnState(StrEnum):
    """Where a turn stands. Interrupted turns were cut off by the daemon's death."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


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
BY_ID = select(turns).where(turns.c.id == bindparam("id"))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn closes its row."""

    state: TurnState
    result: TurnResult
    error: AgentHostError | None = None


def open_turn(
    connection: Connection, turn_id: str, session_id: str, agent_id: str, now: float
) -> None:
    """Write that a turn has begun."""
    connection.execute(
        _OPEN,
        {
            "id": turn_id,
            "session_id": session_id,
            "agent_id": agent_id,
            "state": TurnState.RUNNING.value,
            "iterations": 0,
            "input_tokens": 0,
            "output_tokens": 0,
            "cost_micro_usd": 0,
            "started_at": now,
        },
    )


def reopen_turn(connection: Connection, turn_id: str) -> None:
    """Write that an interrupted or failed turn goes on."""
    connection.execute(_REOPEN, {"turn": turn_id})


def close_turn(
    connection: Connection, turn_id: str, ending: Ending, now: float
) -> None:
    """Write how a turn ended."""
    result, error = ending.result, ending.error
    connection.execute(
        _CLOSE,
        {
            "turn": turn_id,
            "new_state": ending.state.value,
            "new_response": result.text,
            "new_error": error.message if error else None,
            "new_code": error.code if error else None,
            "new_iterations": result.iterations,
            "new_input": result.usage.input_tokens,
            "new_output": result.usage.output_tokens,
            "new_cost": result.cost_micro_usd,
            "now": now,
        },
    )


def intend(
    connection: Connection,
    turn: tuple[str, str],
    calls: Sequence[ToolUse],
    now: float,
) -> None:
    """Write the calls a model asked for; ``turn`` is its id and its session's."""
    connection.execute(
        _INTEND,
        [
            {
                "turn_id": turn[0],
                "call_id": call.id,
                "session_id": turn[1],
                "tool": call.name,
                "arguments": dump_json(dict(call.arguments)),
                "state": CallState.INTENDED.value,
                "created_at": now,
            }
            for call in calls
        ],
    )


def start_call(connection: Connection, turn_id: str, call_id: str) -> None:
    """Write that an effect is about to begin."""
    connection.execute(
        _MOVE,
        {
            "turn": turn_id,
            "call": call_id,
            "new_state": CallState.STARTED.value,
            "now": None,
        },
    )


def end_calls(
    connection: Connection, turn_id: str, outputs: Sequence[ToolOutput], now: float
) -> None:
    """Write that the outcomes of these calls are known."""
    connection.execute(
        _MOVE,
        [
            {
                "turn": turn_id,
                "call": output.id,
                "new_state": CallState.COMMITTED.value,
                "now": now,
            }
            for output in outputs
        ],
    )


def abandon_calls(connection: Connection, turn_id: str) -> None:
    """Write that the turn will not learn how its running calls ended."""
    connection.execute(_ABANDON, {"turn": turn_id})


def interrupt_all(connection: Connection) -> int:
    """At boot: mark what the last process left running; count the turns."""
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
