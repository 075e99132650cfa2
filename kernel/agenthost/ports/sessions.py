"""A session as it crosses the port RECORDS, and which ones a list has."""

from __future__ import annotations

from agenthost_chat.chat import Message
from agenthost_chat.history import estimate_tokens
from agenthost_values.value_class import value_class

from ..errors import Conflict, NotFound


@value_class
class Session:
    """A session's own row, as it stood when it was read.

    ``next_seq`` numbers the next message; messages before ``first_seq`` are
    represented by ``summary``. Numbers have no gaps. ``key`` is what its agent finds it
    by, ``title`` the beginning of its first message until it is renamed, ``parent_id``
    the session that it was forked from, before its message ``at_message``.
    ``message_count`` counts what is shown: the summary as one, no results of tools, and
    nothing that a turn has taken back. ``undone_at`` is the number of the message that
    came next when a summary was last taken back.
    """

    id: str
    agent_id: str
    created_at: float
    thinking: bool = False
    first_seq: int = 0
    next_seq: int = 0
    summary: Message | None = None
    key: str | None = None
    title: str = ""
    ephemeral: bool = False
    archived_at: float | None = None
    parent_id: str | None = None
    at_message: int | None = None
    message_count: int = 0
    updated_at: float = 0.0
    undone_at: int = 0

    def check_open_to(self, agent_id: str) -> None:
        """Refuse a turn that has no place here.

        Raises:
            NotFound: It is another agent's.
            Conflict: It is archived.
        """
        if self.agent_id != agent_id:
            raise NotFound("session", self.id)
        if self.archived_at is not None:
            raise Conflict("the session is archived; take it out or activate it first")


@value_class
class SessionFilter:
    """Which sessions a list has: all, oldest first, unless it says otherwise.

    Args:
        agent_id: Only this agent's.
        archived: Only archived ones, or only others.
        text: Only those whose title, or one of whose messages, has all of its words.
        newest: Those that were spoken in last come first.
        limit: At most so many; 0 is no limit.
        after: Only those behind the session with this id.
    """

    agent_id: str = ""
    archived: bool | None = None
    text: str = ""
    newest: bool = False
    limit: int = 0
    after: str = ""


ALL_SESSIONS = SessionFilter()


class Conversation:
    """A session and what is said in it; ``tokens`` estimates its size."""

    __slots__ = ("labels", "messages", "session", "tokens")

    def __init__(self, session: Session, messages: list[Message]) -> None:
        self.session = session
        self.messages = messages
        self.labels: frozenset[str] = frozenset()
        self.tokens = estimate_tokens(messages)

    def add(self, message: Message) -> None:
        """Go on with a message, the session's next."""
        self.messages.append(message)
        self.tokens += estimate_tokens((message,))
