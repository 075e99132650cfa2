"""Tool calls of a turn: told apart, and counted."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from agenthost_chat.chat import Message, ToolUse

MINUTE = 60.0


def unlike(known: set[str], message: Message) -> Message:
    """Give each call of a message an id that no other call of the turn has.

    Some servers number the calls of every answer anew; the journal and the results
    need to tell them apart.

    Args:
        known: The ids of the turn so far; those of the message are added.
        message: What a model said; it comes back as it is when its ids are fine.
    """
    parts = tuple(
        _free(part, known) if isinstance(part, ToolUse) else part
        for part in message.parts
    )
    return message if parts == message.parts else replace(message, parts=parts)


def _free(call: ToolUse, known: set[str]) -> ToolUse:
    wanted = free = call.id or "call"
    number = 2
    while free in known:
        free = f"{wanted}_{number}"
        number += 1
    known.add(free)
    return call if free == call.id else replace(call, id=free)


class Pace:
    """How many calls each agent began within the last minute."""

    def __init__(self) -> None:
        self._begun: dict[str, deque[float]] = {}

    def wait(self, agent_id: str, limit: int, now: float) -> float:
        """Count a call that begins now.

        Args:
            agent_id: Whose call it is.
            limit: Calls a minute; 0 is no limit.
            now: A monotonic time in seconds.

        Returns:
            0 when it may begin, else the seconds until one may; it is not counted.
        """
        if limit <= 0:
            return 0.0
        begun = self._begun.setdefault(agent_id, deque())
        while begun and begun[0] <= now - MINUTE:
            begun.popleft()
        if len(begun) >= limit:
            return begun[0] + MINUTE - now
        begun.append(now)
        return 0.0

    def forget(self, agent_id: str) -> None:
        """Forget a deleted agent."""
        self._begun.pop(agent_id, None)
