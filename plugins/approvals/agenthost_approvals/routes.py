"""The REST surface: what waits for people, and their answers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from agenthost import Answer, Call, Host, NotFound, RouteGroup, timestamp

from .desk import Desk, Reply
from .remembering import exact_pattern
from .rows import Approval, State
from .shapes import (
    ApprovalDetail,
    ApprovalItem,
    ApprovalList,
    Approve,
    Deny,
    ExpenseShown,
    ListQuery,
)

MILLION = 1_000_000

routes = RouteGroup("approvals")


@routes.get(
    "/api/approvals", scope="approvals:read", query=ListQuery, answer=ApprovalList
)
async def list_approvals(call: Call, query: ListQuery) -> Answer:
    """List approvals: those that wait first, then the newest first."""
    agent_id = str(query.agent_id) if query.agent_id else None
    turn_id = str(query.turn_id) if query.turn_id else None
    state = State(query.state) if query.state else None
    found = await desk_of(call.host).list(state, agent_id, turn_id, query.limit)
    return {"approvals": [_item(each) for each in found], "total": len(found)}


@routes.get(
    "/api/approvals/<approval_id>", scope="approvals:read", answer=ApprovalDetail
)
async def get_approval(call: Call, approval_id: UUID) -> Answer:
    """Show an approval with the arguments of its call and what is asked for."""
    return detail_of(await desk_of(call.host).get(str(approval_id)))


@routes.post(
    "/api/approvals/<approval_id>/approve",
    scope="approvals:write",
    body=Approve,
    answer=ApprovalDetail,
)
async def approve(call: Call, approval_id: UUID, body: Approve) -> Answer:
    """Say yes, with the values that were asked for; the turn goes on."""
    reply = Reply(
        yes=True,
        values=body.values,
        digest=body.digest,
        remember=body.remember,
        pattern=body.pattern,
    )
    desk = desk_of(call.host)
    return detail_of(await desk.answer(call.principal, str(approval_id), reply))


@routes.post(
    "/api/approvals/<approval_id>/deny",
    scope="approvals:write",
    body=Deny,
    answer=ApprovalDetail,
)
async def deny(call: Call, approval_id: UUID, body: Deny) -> Answer:
    """Say no; the model is told the reason, and the turn goes on."""
    reply = Reply(yes=False, reason=body.reason, digest=body.digest)
    desk = desk_of(call.host)
    return detail_of(await desk.answer(call.principal, str(approval_id), reply))


@routes.post(
    "/api/approvals/<approval_id>/revoke",
    scope="approvals:write",
    answer=ApprovalDetail,
)
async def revoke(call: Call, approval_id: UUID) -> Answer:
    """Have a yes for a session or a pattern hold no more; what ran has run."""
    desk = desk_of(call.host)
    return detail_of(await desk.revoke(call.principal, str(approval_id)))


def desk_of(host: Host) -> Desk:
    """Find our own desk.

    Raises:
        NotFound: Another backend serves the approvals.
    """
    desk = host.approvals
    if not isinstance(desk, Desk):
        raise NotFound("approvals", "[backends] approvals names another backend")
    return desk


def _item(approval: Approval) -> ApprovalItem:
    return {
        "id": approval.id,
        "state": approval.state.value,
        "kind": "tool_call" if approval.expense is None else "expense",
        "tool": approval.tool,
        "expense": _expense(approval.expense),
        "question": approval.shown["question"]["text"],
        "agent_id": approval.agent_id,
        "agent_name": approval.shown["agent"],
        "session_id": approval.session_id,
        "turn_id": approval.turn_id,
        "asked_by": approval.asked_by,
        "may_answer": approval.may_answer,
        "created_at": timestamp(approval.created_at),
        "deadline": timestamp(approval.deadline),
        "answered_by": approval.answered_by,
        "answered_at": _moment(approval.answered_at),
        "reason": approval.reason,
        "remember": approval.remember,
        "pattern": dict(approval.pattern),
    }


def detail_of(approval: Approval) -> ApprovalDetail:
    """Show an approval with all that a person reads before they answer."""
    asked: dict[str, Any] = approval.shown["question"]
    return {
        **_item(approval),
        "arguments": approval.shown["arguments"],
        "schema": asked.get("schema"),
        "choices": asked.get("choices", []),
        "url": asked.get("url"),
        "digest": approval.digest,
        "values": dict(approval.values),
        "exact_pattern": exact_pattern(approval),
    }


def _expense(told: dict[str, Any] | None) -> ExpenseShown | None:
    if told is None:
        return None
    return {
        "purse": told["purse"],
        "purpose": told["purpose"],
        "used_usd": told["used_micro_usd"] / MILLION,
        "limit_usd": told["limit_micro_usd"] / MILLION,
        "more_usd": told["more_micro_usd"] / MILLION,
    }


def _moment(at: float | None) -> str | None:
    return None if at is None else timestamp(at)
