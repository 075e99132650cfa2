"""Chat commands: who talks to an agent may answer what it asks, where they may."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping

from agenthost import (
    Agent,
    InvalidInput,
    NotFound,
    ToolContext,
    authorize,
)

from .desk import Desk, Reply
from .routes import desk_of, detail_of
from .rows import PENDING_PER_AGENT, Approval, State
from .shapes import REASON_LENGTH
from .spoken import SHORT, lines_of, plain, typed_values

Run = Callable[[ToolContext, Agent, str], Awaitable[str]]

LEAST = 4
"""Fewer characters of an id are no name for it."""


async def _show(call: ToolContext, agent: Agent, _: str) -> str:
    # Who may speak to an agent may not for that read or answer what it asks.
    authorize(call.principal, "route", "approvals:read")
    asked = await _pending(desk_of(call.host), agent)
    if not asked:
        return "Nothing waits for an answer."
    return "\n\n".join(_told(each) for each in asked)


async def _approve(call: ToolContext, agent: Agent, line: str) -> str:
    authorize(call.principal, "route", "approvals:write")
    desk = desk_of(call.host)
    try:
        wanted, *texts = shlex.split(line) or [""]
    except ValueError as error:
        raise InvalidInput("", f"the quotes are not closed: {error}") from error
    approval = await _one(desk, agent, wanted)
    values = typed_values(approval.shown["question"].get("schema"), texts)
    reply = Reply(yes=True, values=values, digest=approval.digest)
    await desk.answer(call.principal, approval.id, reply)
    return f"Approved: {plain(approval.about)} goes on."


async def _deny(call: ToolContext, agent: Agent, line: str) -> str:
    authorize(call.principal, "route", "approvals:write")
    desk = desk_of(call.host)
    wanted, _, reason = line.partition(" ")
    approval = await _one(desk, agent, wanted)
    if len(reason) > REASON_LENGTH:
        raise InvalidInput("why", f"must have at most {REASON_LENGTH} characters")
    reply = Reply(yes=False, reason=reason.strip(), digest=approval.digest)
    await desk.answer(call.principal, approval.id, reply)
    return f"Denied: {plain(approval.about)} does not run."


async def _pending(desk: Desk, agent: Agent) -> list[Approval]:
    return list(await desk.list(State.PENDING, agent.id, None, PENDING_PER_AGENT))


async def _one(desk: Desk, agent: Agent, wanted: str) -> Approval:
    """Find the agent's open question whose id begins so.

    Raises:
        InvalidInput: The id is missing or too short, or several begin so.
        NotFound: None does.
    """
    if len(wanted) < LEAST:
        raise InvalidInput("id", "name the question: /approvals shows what waits")
    asked = await _pending(desk, agent)
    found = [each for each in asked if each.id.startswith(wanted.lower())]
    if not found:
        raise NotFound("open question", wanted)
    if len(found) > 1:
        raise InvalidInput("id", f"{len(found)} questions begin with {wanted!r}")
    return found[0]


def _told(approval: Approval) -> str:
    """Tell a question, fenced: nothing of it is anything but text."""
    lines = "\n".join(lines_of(detail_of(approval)))
    fence = "`" * max(3, 1 + _longest_run(lines))
    short = approval.id[:SHORT]
    return f"{fence}\n{lines}\n{fence}\nAnswer with /approve {short} or /deny {short}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest


RUNS: Mapping[str, Run] = {"approvals": _show, "approve": _approve, "deny": _deny}
"""What each command does."""
