"""A compaction without a model: it counts what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from agenthost_chat.chat import Message, Role, Text, Usage

from ...agent import Agent
from ...context import Context
from ...errors import Conflict
from ...host import Host
from ...ports.compaction import Condensed
from ...ports.models import Target
from ...ports.records import Entry, TurnState
from ...ports.sessions import Conversation, Session
from ...ports.usage import Spent


class CountingCompaction:
    """Condenses at once and for nothing, for tests of long conversations.

    ``CompactionBackend("counting", CountingCompaction)`` serves a daemon with it.

    Args:
        host: The daemon.
        above: Messages above which a session is condensed.
        keep: Messages at the end that stay, at most, unless the cut would fall
            between a question and its answer.
    """

    def __init__(
        self, host: Host, _: object = None, *, above: int = 6, keep: int = 2
    ) -> None:
        self._host = host
        self._above = above
        self._keep = keep

    async def before_turn(
        self,
        conversation: Conversation,
        target: Target,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> bool:
        """Condense a conversation of too many messages."""
        if len(conversation.messages) <= self._above:
            return False
        with suppress(Conflict):
            return (await self._condense(conversation.session)).summarised > 0
        return False

    async def make_room(
        self,
        session: Session,
        target: Target,  # noqa: ARG002
        context: Context,
    ) -> bool:
        """Condense all that was said before the turn of the context."""
        return (await self._condense(session, context.turn_id)).summarised > 0

    async def of_agent(self, agent: Agent, session_id: str = "") -> Condensed:
        """Condense a session, by default the agent's own, inside its mailbox."""
        return await self._host.turns.apart(agent, self._inside, session_id)

    async def _inside(self, session_id: str) -> Condensed:
        session = await self._host.sessions.get(session_id)
        count = session.next_seq - session.first_seq
        if count <= self._above:
            return Condensed(summarised=0, kept=count)
        return await self._condense(session)

    async def _condense(self, session: Session, until: str | None = None) -> Condensed:
        entries = await self._host.sessions.entries(session)
        most = max(len(entries) - self._keep, 0)
        if until is not None:
            spoke = (i for i, each in enumerate(entries) if each.turn_id == until)
            most = next(spoke, len(entries))
        cut = await self._cut(session, entries, most)
        if cut == 0:
            return Condensed(summarised=0, kept=len(entries))
        text = f"{session.first_seq + cut} messages came before"
        nothing = Spent(
            self._host.clock.time(),
            session.agent_id,
            session.id,
            "",
            "counting",
            "none",
            Usage(),
            0,
        )
        summary = Message(Role.USER, (Text(text),))
        await self._host.sessions.compact(session, entries[cut].seq, summary, nothing)
        return Condensed(summarised=cut, kept=len(entries) - cut)

    async def _cut(self, session: Session, entries: Sequence[Entry], most: int) -> int:
        """Find the question that what stays begins with."""
        turns = await self._host.sessions.turns(session.id)
        waiting = {
            turn for turn, row in turns.items() if row.state is TurnState.WAITING
        }
        cut = min(most, len(entries) - 1)
        for index, entry in enumerate(entries[:cut]):
            if entry.turn_id in waiting:
                return index
        while cut and entries[cut].message.role is not Role.USER:
            cut -= 1
        return cut
