"""Tool calls of a turn, told apart."""

from __future__ import annotations

from dataclasses import replace

from agenthost_chat.chat import Message, ToolUse


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
