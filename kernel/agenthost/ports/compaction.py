"""The port COMPACTION: what condenses long conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agenthost_values.value_class import value_class

from ..context import Context

if TYPE_CHECKING:
    from ..agent import Agent
    from .models import Target
    from .sessions import Conversation, Session


@value_class
class Condensed:
    """What a compaction did: how many messages it summarised and kept."""

    summarised: int
    kept: int


class Compaction(Protocol):
    """What keeps a conversation within its model's window, inside its mailbox."""

    async def before_turn(
        self, conversation: Conversation, target: Target, context: Context
    ) -> bool:
        """Condense what is too long; tell whether the session is to be read anew."""

    async def make_room(
        self, session: Session, target: Target, context: Context
    ) -> bool:
        """Condense all that was said before the turn of the context, however short.

        The provider found the conversation too long. It tells whether there is more
        room now; nothing is raised.
        """

    async def of_agent(self, agent: Agent, session_id: str = "") -> Condensed:
        """Condense a session, by default the agent's own, when it is long enough.

        It takes its turn in the session's mailbox; Cancelled when it was stopped.
        """
