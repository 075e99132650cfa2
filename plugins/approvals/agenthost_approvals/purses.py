"""Questions about money: whether a purse may have more, and the turns that wait for it.

Of a purse one question is open at a time, and each turn that waits for the answer has a
row behind it. What a purse may spend beyond its limit is what was granted of it in all:
a sum over rows, so that a yes counts once, whoever hears of it and however often.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agenthost import (
    AgentView,
    Context,
    Expense,
    InvalidInput,
    JsonObject,
    Pool,
    Question,
    QuotaExceeded,
    Store,
    Waiting,
)
from agenthost_values.value_class import value_class

from .questions import digest_of, shown_to_people
from .rows import Approval, State, approval_of

if TYPE_CHECKING:
    from agenthost import Keep
    from sqlalchemy import Connection

MILLION = 1_000_000
LONGEST_PURPOSE = 1_000
NO = frozenset({State.DENIED, State.EXPIRED})


class NotGranted(QuotaExceeded):
    """A person was asked whether more may be spent, and has not said yes."""

    code = "not_granted"


@value_class
class Asking:
    """A question about money as it would be put, and the turn that would wait for it.

    Args:
        pool: What is used up.
        question: The row of the question.
        waiter: The row of the turn.
    """

    pool: Pool
    question: Mapping[str, Any]
    waiter: Mapping[str, Any]

    def put(
        self, connection: Connection, keep: Keep | None
    ) -> tuple[Sequence[Approval], bool]:
        """Put the question, or wait behind the one that is open.

        Returns:
            All questions about the purse, and whether this one is new.

        Raises:
            RateLimited: Too many questions of the agent are open.
        """
        from sqlalchemy import insert

        from .tables import OF_PURSE, approvals
        from .writes import check_room, expire

        expire(connection, self.question["created_at"])
        purse = self.question["purse"]
        found = connection.execute(OF_PURSE, {"purse": purse}).mappings()
        known = [each for each in map(approval_of, found) if each.purse == purse]
        asks = self.pool.asks
        assert asks is not None  # noqa: S101 - or nothing would be asked
        if asks.limit + granted_of(known) > self.pool.limit:
            return known, False
        open_ = next((each for each in known if each.state is State.PENDING), None)
        if open_ is not None:
            self._wait_behind(connection, open_)
            return known, False
        if no_to(known, self.pool):
            return known, False
        check_room(connection, self.question["agent_id"])
        connection.execute(insert(approvals).values(self.question))
        asked = approval_of(self.question)
        self._wait_behind(connection, asked)
        if keep is not None:
            keep(connection)
        return [*known, asked], True

    def _wait_behind(self, connection: Connection, asked: Approval) -> None:
        from sqlalchemy import insert, select

        from .tables import approvals

        known = select(approvals.c.id).where(
            approvals.c.behind == asked.id,
            approvals.c.turn_id == self.waiter["turn_id"],
        )
        if connection.execute(known).first() is not None:
            return
        place = {"behind": asked.id, "call_id": asked.id, "deadline": asked.deadline}
        connection.execute(insert(approvals).values({**self.waiter, **place}))


async def of_purse(store: Store, purse: str) -> Sequence[Approval]:
    """Read what was asked about a purse and its parts, oldest first."""
    from .tables import OF_PURSE

    return [approval_of(row) for row in await store.read(OF_PURSE, {"purse": purse})]


def granted_of(known: Sequence[Approval]) -> int:
    """Sum what people granted, in micro-USD; what was changed since counts nothing."""
    yes = (each for each in known if each.state is State.APPROVED and _as_shown(each))
    return sum(map(_more, yes))


def _more(asked: Approval) -> int:
    return int(asked.shown["expense"]["more_micro_usd"])


def _as_shown(asked: Approval) -> bool:
    return digest_of(json.dumps(asked.shown, sort_keys=True)) == asked.digest


def no_to(known: Sequence[Approval], pool: Pool) -> NotGranted | None:
    """Give the no to what would be asked now: the same was asked at this limit."""
    for each in known:
        reached = each.shown["expense"]["limit_micro_usd"] == pool.limit
        if reached and each.state in NO:
            return not_granted(each)
    return None


def not_granted(asked: Approval) -> NotGranted:
    """Say who said no."""
    purpose = asked.shown["expense"]["purpose"]
    if asked.state is State.EXPIRED:
        return NotGranted(
            f"no person answered in time whether {purpose} may spend more, which is "
            "a no"
        )
    reason = f": {asked.reason}" if asked.reason else ""
    return NotGranted(f"{asked.answered_by} did not let {purpose} spend more{reason}")


def standing(known: Sequence[Approval], pool: Pool, turn_id: str = "") -> int:
    """Tell what was granted of a purse; who only asks is told of its parts as well.

    Args:
        known: What was asked about the purse, and its parts.
        pool: What is used up.
        turn_id: The turn that waits for more, "" where none does.

    Raises:
        Waiting: A question is open.
        NotGranted: The last answer was a no.
    """
    assert pool.asks is not None  # noqa: S101 - or nothing was asked
    own = [each for each in known if each.purse == pool.asks.purse]
    granted = granted_of(own)
    if pool.asks.limit + granted > pool.limit:
        return granted
    for each in known:
        if each.state is State.PENDING:
            text = each.shown["question"]["text"]
            about = f"waiting for approval {each.id} of {each.about}: {text}"
            raise Waiting(about, turn_id, each.id)
    parts = [each for each in known if each not in own]
    # Of a part as much is asked for as the whole may spend: that may be more by now.
    if parts and parts[-1].state in NO and _more(parts[-1]) == pool.asks.more:
        raise not_granted(parts[-1])
    if no := no_to(own, pool):
        raise no
    return granted


@value_class
class Money:
    """What came of a question about money.

    Args:
        pool: What is left to spend after a yes. Whoever keeps the purse gives a turn
            that goes on their own in its place; they may be gone.
        refusal: The no, None after a yes.
    """

    pool: Pool
    refusal: NotGranted | None


def money_of(asked: Approval) -> Money:
    """Tell what came of an answered question."""
    told: JsonObject = asked.shown["expense"]
    limit, more = told["limit_micro_usd"], told["more_micro_usd"]
    named = told["purse"], told["purpose"]
    asks = Expense(*named, told["first_limit_micro_usd"], more, told["seconds"])
    pool = Pool(limit + more, told["used_micro_usd"], asks=asks)
    return Money(pool, not_granted(asked) if asked.state in NO else None)


def shown(context: Context, agent: AgentView, pool: Pool) -> str:
    """Write what a person is shown.

    Raises:
        InvalidInput: It cannot be shown.
    """
    asks = pool.asks
    if asks is None or len(asks.purpose) > LONGEST_PURPOSE or asks.more <= 0:
        raise InvalidInput("expense", "it has no purpose, a too long one, or no amount")
    used, limit, more = (n / MILLION for n in (pool.used, pool.limit, asks.more))
    question = Question(
        f"May {asks.purpose} spend {more:g} USD more? "
        f"It has used {used:g} of {limit:g} USD."
    )
    expense = {
        "purse": asks.purse,
        "purpose": asks.purpose,
        "used_micro_usd": pool.used,
        "limit_micro_usd": pool.limit,
        "more_micro_usd": asks.more,
        "first_limit_micro_usd": asks.limit,
        "seconds": asks.deadline_seconds,
    }
    facts = {
        "agent": agent.name,
        "agent_id": agent.id,
        "session_id": agent.session_id,
        "turn_id": context.turn_id,
        "tool": "",
        "arguments": {},
        "expense": expense,
    }
    return shown_to_people(question, facts)


def asking(context: Context, agent: AgentView, pool: Pool, row: JsonObject) -> Asking:
    """Make ready what is written.

    Args:
        context: The turn that would wait.
        agent: Whose.
        pool: What is used up.
        row: What both rows have alike.

    Raises:
        InvalidInput: It cannot be shown.
    """
    assert pool.asks is not None  # noqa: S101 - or nothing would be asked
    seen = shown(context, agent, pool)
    both = {**row, "shown": seen, "digest": digest_of(seen), "purse": pool.asks.purse}
    question = {**both, "id": str(uuid4()), "call_id": pool.asks.purse, "behind": ""}
    return Asking(pool, question, {**both, "id": str(uuid4())})
