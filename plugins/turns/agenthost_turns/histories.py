"""What was said before, as guards let a turn read it."""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agenthost import Context, Conversation, Custom, Guard, HistoryCase, Message

if TYPE_CHECKING:
    from .parts import Parts

log = logging.getLogger(__name__)
REPAIRED = "history_repaired"


async def conversation_of(
    parts: Parts, context: Context, session_id: str
) -> Conversation:
    """Read a session as its next turn finds it."""
    session = await parts.sessions.get(session_id)
    found = await parts.sessions.history(session)
    said = Conversation(session, let_through(parts, context, found.messages))
    said.labels = found.labels
    return said


def let_through(
    parts: Parts,
    context: Context,
    messages: Sequence[Message],
    spoken: Sequence[Message] = (),
    loop: AbstractEventLoop | None = None,
) -> list[Message]:
    """Ask the guards of conversations; what they change of it is told.

    Its rows stay as they are: what a turn reads is a view, the same each time.

    Args:
        parts: What the turn works with.
        context: Whose turn it is.
        messages: What was said.
        spoken: What of it the turn has said itself, where it goes on.
        loop: Where it is told, in a thread beside that.

    Raises:
        AgentHostError: A guard refuses it.
    """
    guards = parts.host.guards
    if not messages or not guards.filled(Guard.HISTORY):
        return list(messages)
    case = HistoryCase(context, tuple(messages), tuple(spoken))
    left = guards.check(Guard.HISTORY, case).messages
    if left != case.messages:
        told = parts, context, len(case.messages), len(left)
        _tell(*told) if loop is None else loop.call_soon_threadsafe(_tell, *told)
    return list(left)


def _tell(parts: Parts, context: Context, found: int, left: int) -> None:
    session = context.agent.session_id if context.agent is not None else ""
    log.warning(
        "session %s was repaired for this turn: %d messages, %d as a model reads "
        "them; its rows are as they were",
        session,
        found,
        left,
    )
    if parts.host.events.wants(Custom):
        facts = {"session_id": session, "found": found, "left": left}
        now, told = parts.clock.time(), context.caused
        parts.host.events.publish(Custom(session, now, REPAIRED, facts, **told))
