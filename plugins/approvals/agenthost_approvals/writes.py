"""What is written of approvals: functions of a connection, each in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenthost import Blocked, Keep, RateLimited
from sqlalchemy import Connection, case, delete, insert, not_, select, update

from .remembering import answered_before
from .rows import PENDING_PER_AGENT, Approval, State, approval_of
from .tables import ABOUT_MONEY, OF_CALL, OPEN, PENDING, WAITING_OF_AGENT, approvals

QUESTIONS_PER_CALL = 8
_SETTLED = {"carried": case((ABOUT_MONEY, 1), else_=approvals.c.carried)}
"""A question about money is done with its answer: the turns behind it go on."""


def put(
    connection: Connection,
    row: Mapping[str, Any],
    keep: Keep | None = None,
    keep_answered: Keep | None = None,
) -> tuple[Sequence[Approval], bool]:
    """Ask about a call, unless the same was asked before; keep what goes with it.

    A yes that holds for it already answers it in the same moment.

    Returns:
        All approvals of the call, and whether this one is new.

    Raises:
        RateLimited: Too many calls of the agent wait already.
        Blocked: Too much was asked about this call already.
    """
    expire(connection, row["created_at"])
    call = {"turn": row["turn_id"], "call": row["call_id"]}
    known = [approval_of(each) for each in connection.execute(OF_CALL, call).mappings()]
    if any(each.digest == row["digest"] for each in known):
        return known, False
    if len(known) >= QUESTIONS_PER_CALL:
        raise Blocked("a person was asked about this call again and again; go on")
    if answer := answered_before(connection, row):
        row, keep = {**row, **answer}, keep_answered
    else:
        check_room(connection, row["agent_id"])
    connection.execute(insert(approvals).values(row))
    if keep is not None:
        keep(connection)
    return [*known, approval_of(row)], True


def check_room(connection: Connection, agent_id: str) -> None:
    """See that not too many questions of an agent are open.

    Raises:
        RateLimited: There are.
    """
    agent = {"agent": agent_id}
    if connection.execute(WAITING_OF_AGENT, agent).scalar_one() >= PENDING_PER_AGENT:
        raise RateLimited(
            f"{PENDING_PER_AGENT} questions of this agent wait for a person already; "
            "answer some of them first"
        )


def settle(
    connection: Connection,
    approval_id: str,
    answer: Mapping[str, Any],
    keep: Keep | None = None,
) -> bool:
    """Write an answer; False when another was there first, or it comes too late."""
    answered = (
        update(approvals)
        .where(
            approvals.c.id == approval_id,
            PENDING,
            approvals.c.deadline > answer["answered_at"],
        )
        .values({**answer, **_SETTLED})
    )
    if not connection.execute(answered).rowcount:
        return False
    behind = update(approvals).where(approvals.c.behind == approval_id, PENDING)
    connection.execute(behind.values(answer))
    if keep is not None:
        keep(connection)
    return True


def revoke(connection: Connection, approval_id: str, keep: Keep | None = None) -> bool:
    """Have a yes hold for its call alone from now on; False when it does already."""
    held = (
        update(approvals)
        .where(approvals.c.id == approval_id, approvals.c.remember != "")
        .values(remember="", pattern="")
    )
    if not connection.execute(held).rowcount:
        return False
    if keep is not None:
        keep(connection)
    return True


def expire(connection: Connection, now: float) -> int:
    """End what nobody has answered in time."""
    overdue = (
        update(approvals)
        .where(OPEN, PENDING, approvals.c.deadline <= now)
        .values(state=State.EXPIRED.value, answered_at=now, **_SETTLED)
    )
    return connection.execute(overdue).rowcount


def cancel(
    connection: Connection, wanted: Mapping[str, str], reason: str, now: float
) -> Mapping[str, str]:
    """End what waits where these columns have these values; give ids and turns."""
    those = [approvals.c[name] == value for name, value in wanted.items()]
    ended = (
        update(approvals)
        .where(OPEN, PENDING, not_(ABOUT_MONEY), *those)
        .values(state=State.CANCELLED.value, reason=reason, answered_at=now)
        .returning(approvals.c.id, approvals.c.turn_id, approvals.c.behind)
    )
    gone = connection.execute(ended).all()
    for question in {row.behind for row in gone} - {""}:
        _withdraw_unwaited(connection, question, now)
    return {row.id: row.turn_id for row in gone}


def _withdraw_unwaited(connection: Connection, question: str, now: float) -> None:
    """End a question about money that no turn waits for any more."""
    waiter = approvals.alias("waiter")
    behind = select(waiter.c.id).where(
        waiter.c.behind == question, waiter.c.state == State.PENDING.value
    )
    if connection.execute(behind.limit(1)).first() is None:
        withdrawn = update(approvals).where(approvals.c.id == question, PENDING)
        ended = {"state": State.CANCELLED.value, "answered_at": now, "carried": 1}
        reason = "nothing waits for it any more"
        connection.execute(withdrawn.values(**ended, reason=reason))


def drop(connection: Connection, call: Mapping[str, Any], now: float) -> None:
    """Withdraw what is open of a call, whose turn goes on without it."""
    withdrawn = (
        update(approvals)
        .where(
            approvals.c.turn_id == call["turn"],
            approvals.c.call_id == call["call"],
            PENDING,
        )
        .values(
            state=State.CANCELLED.value,
            reason="who asked is gone",
            answered_at=now,
            carried=1,
        )
    )
    connection.execute(withdrawn)


def carry(connection: Connection, ids: Sequence[str]) -> None:
    """Remember that their turn needs nothing more of these.

    Others of the turn may have been answered since, which it does not know yet.
    """
    done = update(approvals).where(approvals.c.id.in_(ids)).values(carried=1)
    connection.execute(done)


def forget(connection: Connection, before: float) -> None:
    """Delete what ended before a moment."""
    old = delete(approvals).where(
        approvals.c.carried == 1, approvals.c.answered_at < before
    )
    connection.execute(old)
