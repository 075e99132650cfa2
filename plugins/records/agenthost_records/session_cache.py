"""Conversations kept in memory between turns, so that a turn need not read them.

A read costs two thread switches; ``make bench`` shows what is saved on a message. The
session's mailbox makes it safe: only the turn that holds it adds to the session.
"""

from __future__ import annotations

from collections import OrderedDict

from agenthost import Conversation

SESSIONS = 256
TOKENS_PER_SESSION = 50_000


class SessionCache:
    """The most recently used conversations, bounded in number and size.

    Args:
        most: How many are kept at most.
    """

    def __init__(self, most: int = SESSIONS) -> None:
        self._most = most
        self._kept: OrderedDict[str, Conversation] = OrderedDict()
        self._taken: dict[str, bool] = {}

    def take(self, session_id: str) -> Conversation | None:
        """Hand a conversation to the turn that holds its mailbox."""
        self._taken[session_id] = True
        return self._kept.pop(session_id, None)

    def give_back(self, session_id: str, known: Conversation | None) -> None:
        """Keep it as the turn left it; None when the turn cannot tell."""
        fresh = self._taken.pop(session_id, False)
        if known is None or not fresh or known.tokens > TOKENS_PER_SESSION:
            return
        self._kept[session_id] = known
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def forget(self, session_id: str) -> None:
        """Something else changed the session: read it anew, also after this turn."""
        self._kept.pop(session_id, None)
        if session_id in self._taken:
            self._taken[session_id] = False
