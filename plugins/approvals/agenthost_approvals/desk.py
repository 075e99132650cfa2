"""The port APPROVALS over the store: what asks, and what takes the answers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any
from uuid import uuid4

from agenthost import (
    AgentView,
    Approvals,
    Ask,
    Blocked,
    Cancelled,
    Conflict,
    Context,
    Denied,
    Host,
    InvalidInput,
    JsonObject,
    Keep,
    NotFound,
    Pool,
    Principal,
    PrincipalKind,
    ToolUse,
    TurnState,
    Waiting,
)
from agenthost_values.value_class import value_class

from .events import (
    ApprovalAnswered,
    ApprovalEvent,
    ApprovalRequested,
    ApprovalRevoked,
)
from .keeper import Keeper, close_turn
from .questions import check_question, check_values, digest_of, shown_to_people
from .remembering import check_remember
from .rows import Approval, Remember, State, approval_of

DEADLINE_SECONDS = 30 * 86_400.0
"""No question stays open longer."""
NOT_PEOPLE = frozenset({PrincipalKind.AGENT, PrincipalKind.ANONYMOUS})


@value_class
class Reply:
    """What a person says: yes or no, why, and the values that were asked for.

    ``digest`` is that of what they saw, when they say so. ``remember`` is what a yes
    holds for, ``pattern`` a text with stars by argument.
    """

    yes: bool
    reason: str = ""
    values: JsonObject = field(default_factory=dict)
    digest: str | None = None
    remember: Remember = "once"
    pattern: Mapping[str, str] = field(default_factory=dict)


class Desk(Approvals):
    """Where calls wait for people.

    Args:
        host: The daemon; its journal and its turns are used once it runs.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.keeper = Keeper(host)

    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:
        """Let a call pass that a person has approved; the same question is put once.

        Returns:
            The values that came with the yes.

        Raises:
            Waiting: Nobody has answered yet.
            Blocked: The answer was no, came too late, or this cannot be asked.
        """
        from . import writes

        row = self._row(context, call, ask)
        asked = approval_of(row)
        event = self._event(ApprovalRequested, asked, context)
        passed = replace(asked, state=State.APPROVED)
        answered = self._event(ApprovalAnswered, passed, context)
        keep, keep_answered = self._keeping(event), self._keeping(answered)
        putting = partial(writes.put, row=row, keep=keep, keep_answered=keep_answered)
        known, fresh = await self._host.store.write(putting)
        self.keeper.wake()
        (own,) = (each for each in known if each.digest == row["digest"])
        told = event if own.state is State.PENDING else answered
        if fresh and told is not None:
            self._host.events.publish(told)
        for each in known:
            _check_answer(each)
        _check_shown(own)
        if own.state is State.APPROVED:
            return own.values
        # The first of the call that is open is what is waited for.
        raise _waiting(own)

    async def standing(self, context: Context, call: ToolUse) -> JsonObject:
        """Let a call that is brought again pass only if all that was asked is approved.

        A question that is open still is withdrawn: whoever asked it asks no more.

        Returns:
            The values that came with each yes.

        Raises:
            Blocked: Something was not approved, or the call is another one by now.
        """
        from . import writes
        from .tables import OF_CALL

        one = {"turn": context.turn_id, "call": call.id}
        known = [approval_of(row) for row in await self._host.store.read(OF_CALL, one)]
        values: dict[str, Any] = {}
        for each in known:
            _check_answer(each)
            _check_shown(each)
            if _is_about(each, call):
                values |= each.values
        if known and not any(_is_about(each, call) for each in known):
            raise Blocked("the call is not the one that a person was asked about")
        if any(each.state is State.PENDING for each in known):
            now = self._host.clock.time()
            await self._host.store.write(partial(writes.drop, call=one, now=now))
            raise Blocked(
                "a person was asked and has not answered, and who asked is gone; "
                "enable the security system that asks about it, and ask again"
            )
        return values

    async def granted(self, context: Context, pool: Pool) -> int:
        """Tell what people let a pool spend beyond its first limit; ask for more.

        Raises:
            Waiting: A person is asked, and has not answered yet.
            QuotaExceeded: They said no, or nothing in time.
            RateLimited: Too many questions of the agent are open.
        """
        from . import purses

        asks, agent, turn_id = pool.asks, context.agent, context.turn_id
        if asks is None or asks.more <= 0:
            return 0
        if agent is None or turn_id is None:
            known = await purses.of_purse(self._host.store, asks.purse)
            return purses.standing(known, pool)
        row = self._common(context, agent, asks.deadline_seconds)
        asking = purses.asking(context, agent, pool, row)
        event = self._event(ApprovalRequested, approval_of(asking.question), context)
        keep = self._keeping(event)
        known, fresh = await self._host.store.write(partial(asking.put, keep=keep))
        self.keeper.wake()
        if fresh and event is not None:
            self._host.events.publish(event)
        return purses.standing(known, pool, turn_id)

    async def pending(self, turn_id: str) -> Waiting | None:
        """Tell what a turn waits for, None when all its questions are answered."""
        from .tables import WAITED_FOR

        row = await self._host.store.first(WAITED_FOR, {"turn": turn_id})
        return None if row is None else _waiting(approval_of(row))

    async def cancel(self, agent_id: str, reason: str, session_id: str = "") -> int:
        """End the turns of an agent that wait, in one session when it is named.

        Returns:
            How many there were; their rows say cancelled.
        """
        wanted = {"agent_id": agent_id}
        if session_id:
            wanted["session_id"] = session_id
        return await self._cancel(wanted, reason)

    async def get(self, approval_id: str) -> Approval:
        """Give an approval.

        Raises:
            NotFound: There is none.
        """
        from .tables import ONE

        row = await self._host.store.first(ONE, {"id": approval_id})
        if row is None:
            raise NotFound("approval", approval_id)
        return approval_of(row)

    async def list(
        self, state: State | None, agent_id: str | None, turn_id: str | None, limit: int
    ) -> Sequence[Approval]:
        """Give approvals, those that wait first, then the newest first."""
        from .tables import LISTED

        wanted = {
            "state": state and state.value,
            "agent_id": agent_id,
            "turn_id": turn_id,
            "limit": limit,
        }
        return [approval_of(row) for row in await self._host.store.read(LISTED, wanted)]

    async def answer(
        self, principal: Principal, approval_id: str, reply: Reply
    ) -> Approval:
        """Take a person's answer; of several at once the first counts.

        Raises:
            NotFound: There is no such approval.
            Denied: The principal may not answer it.
            InvalidInput: The values are not those that were asked for.
            Conflict: It is answered already, was something else, or has ended.
        """
        from . import writes

        approval = await self.get(approval_id)
        _check_principal(principal, approval)
        _check_shown(approval)
        if reply.digest not in {None, approval.digest}:
            raise Conflict("the digest is that of another question; read it again")
        if reply.yes:
            check_values(approval.shown["question"], reply.values)
            check_remember(approval, reply.remember, reply.pattern)
        _check_open(approval)
        if approval.expense is None:
            await self._check_turn(approval)
        state = State.APPROVED if reply.yes else State.DENIED
        answer = {
            "state": state.value,
            "answered_by": named(principal),
            "answered_at": self._host.clock.time(),
            "reason": reply.reason or None,
            "answers": json.dumps(dict(reply.values)),
            "remember": "" if reply.remember == "once" else reply.remember,
            "pattern": json.dumps(dict(reply.pattern)) if reply.pattern else "",
        }
        event = self._event(
            ApprovalAnswered, replace(approval, state=state), Context(principal)
        )
        keep = self._keeping(event)
        settle = partial(
            writes.settle, approval_id=approval_id, answer=answer, keep=keep
        )
        first = await self._host.store.write(settle)
        self.keeper.wake()
        approval = await self.get(approval_id)
        if not first:
            _check_open(approval)
            raise Conflict("the approval is overdue already; nothing was changed")
        if event is not None:
            self._host.events.publish(event)
        return approval

    async def revoke(self, principal: Principal, approval_id: str) -> Approval:
        """Have a yes that holds for more hold for its call alone from now on.

        Raises:
            NotFound: There is no such approval.
            Denied: The principal may not answer it.
            Conflict: It holds for nothing more.
        """
        from . import writes

        approval = await self.get(approval_id)
        _check_principal(principal, approval)
        event = self._event(ApprovalRevoked, approval, Context(principal))
        revoking = partial(
            writes.revoke, approval_id=approval_id, keep=self._keeping(event)
        )
        if not await self._host.store.write(revoking):
            raise Conflict("the approval holds for its call alone already")
        if event is not None:
            self._host.events.publish(event)
        return await self.get(approval_id)

    async def _check_turn(self, approval: Approval) -> None:
        """Refuse an answer that no turn waits for any more."""
        record = await self._host.journal.find(approval.turn_id)
        if record is None or record.state in {TurnState.DONE, TurnState.CANCELLED}:
            await self._cancel({"turn_id": approval.turn_id}, "the turn has ended")
            raise Conflict("the turn that asked has ended or was deleted")

    async def _cancel(self, wanted: dict[str, str], reason: str) -> int:
        from . import writes

        store, now = self._host.store, self._host.clock.time()
        cancel = partial(writes.cancel, wanted=wanted, reason=reason, now=now)
        ended = await store.write(cancel)
        turns = set(ended.values())
        error = Cancelled(f"the turn was stopped: {reason}")
        for turn_id in turns:
            await close_turn(self._host, turn_id, TurnState.CANCELLED, error)
        # What a crash leaves between these writes, the next start finds.
        if ended:
            await store.write(partial(writes.carry, ids=[*ended]))
        return len(turns)

    def _row(self, context: Context, call: ToolUse, ask: Ask) -> dict[str, Any]:
        agent, turn_id = context.agent, context.turn_id
        if agent is None or turn_id is None:
            raise Blocked("it needs a person's approval, and is not part of a turn")
        facts = {
            "agent": agent.name,
            "agent_id": agent.id,
            "session_id": agent.session_id,
            "turn_id": turn_id,
            "tool": call.name,
            "arguments": dict(call.arguments),
        }
        try:
            check_question(ask.question)
            shown = shown_to_people(ask.question, facts)
        except InvalidInput as error:
            raise Blocked(f"a person cannot be asked: {error.message}") from error
        return {
            **self._common(context, agent, ask.deadline_seconds),
            "id": str(uuid4()),
            "call_id": call.id,
            "tool": call.name,
            "shown": shown,
            "digest": digest_of(shown),
            "may_answer": ask.may_answer,
            "purse": "",
            "behind": "",
        }

    def _common(
        self, context: Context, agent: AgentView, seconds: float
    ) -> dict[str, Any]:
        """What the row of a question says of its turn and its time, whatever it asks.

        Raises:
            Blocked: There is no time to answer in.
        """
        now = self._host.clock.time()
        # Also what is no number is refused here.
        if not 0 < seconds < math.inf:
            raise Blocked("a person cannot be asked: the deadline has passed")
        asked_by = named(context.caller or context.principal)
        return {
            "turn_id": context.turn_id,
            "agent_id": agent.id,
            "session_id": agent.session_id,
            "tool": "",
            "asked_by": asked_by,
            "may_answer": "*",
            "state": State.PENDING.value,
            "created_at": now,
            "deadline": now + min(seconds, DEADLINE_SECONDS),
            "answered_by": None,
            "answered_at": None,
            "reason": None,
            "answers": None,
            "carried": 0,
            "owner": asked_by,
            "labels": "[]",
            "depth": context.depth,
            "remember": "",
            "pattern": "",
        }

    def _keeping(self, event: ApprovalEvent | None) -> Keep | None:
        return None if event is None else self._host.events.keeping(event)

    def _event(
        self, kind: type[ApprovalEvent], approval: Approval, context: Context
    ) -> ApprovalEvent | None:
        if not self._host.events.wants(kind):
            return None
        return kind(
            approval.agent_id,
            self._host.clock.time(),
            approval_id=approval.id,
            turn_id=approval.turn_id,
            session_id=approval.session_id,
            tool=approval.tool,
            state=approval.state.value,
            question=approval.shown["question"]["text"],
            purse=approval.purse,
            **context.caused,
        )


def named(principal: Principal) -> str:
    """Write who somebody is."""
    return f"{principal.kind}:{principal.name}"


def _waiting(approval: Approval) -> Waiting:
    text = approval.shown["question"]["text"]
    asked = approval.behind or approval.id
    message = f"waiting for approval {asked} of {approval.about}: {text}"
    return Waiting(message, approval.turn_id, asked)


def _check_answer(approval: Approval) -> None:
    """Refuse a call once anything that was asked about it was not approved.

    Raises:
        Blocked: So it is.
    """
    reason = f": {approval.reason}" if approval.reason else ""
    match approval.state:
        case State.DENIED:
            raise Blocked(f"a person said no{reason}")
        case State.EXPIRED:
            raise Blocked("no person answered in time, which is a no")
        case State.CANCELLED:
            raise Blocked(f"the question was withdrawn{reason}")


def _check_shown(approval: Approval) -> None:
    """See that what was shown is what was asked.

    Raises:
        Blocked: The row was changed since.
    """
    shown = json.dumps(approval.shown, sort_keys=True)
    if digest_of(shown) != approval.digest:
        raise Blocked("the approval was changed in the store since it was asked")


def _is_about(approval: Approval, call: ToolUse) -> bool:
    """Tell whether the call is the one that people were shown."""
    shown = [approval.shown["tool"], approval.shown["arguments"]]
    brought = [call.name, dict(call.arguments)]
    return json.dumps(shown, sort_keys=True) == json.dumps(brought, sort_keys=True)


def _check_open(approval: Approval) -> None:
    """Refuse an answer where there is one, and say whose it was."""
    if approval.state is not State.PENDING:
        by = f", by {approval.answered_by}" if approval.answered_by else ""
        raise Conflict(
            f"the approval is {approval.state} already{by}; nothing was changed"
        )


def _check_principal(principal: Principal, approval: Approval) -> None:
    who = named(principal)
    if principal.kind in NOT_PEOPLE:
        raise Denied(f"{who} cannot answer an approval: only people can")
    if not fnmatchcase(who, approval.may_answer):
        raise Denied(f"{who} may not answer this one; {approval.may_answer} may")
