"""Tool calls of a turn, told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agenthost import CallState, Journal, Outcome, Toolbox
from agenthost_chat.chat import Message, ToolOutput, ToolUse
from agenthost_chat.history import UNKNOWN


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


async def outcomes_of(
    turn_id: str, calls: Sequence[ToolUse], journal: Journal, toolbox: Toolbox
) -> Mapping[str, Outcome]:
    """Give what is known of calls that a cut off turn left open.

    One that was only intended is to run, and so is one that may run twice; the rest is
    told as it was written down, or as unknown.
    """
    written = await journal.calls(turn_id)
    known: dict[str, Outcome] = {}
    for call in calls:
        state, outcome = written.get(call.id, (CallState.UNKNOWN, None))
        begun = state is not CallState.INTENDED
        if outcome is not None:
            known[call.id] = outcome
        elif begun and not toolbox.repeatable(call.name):
            lost = ToolOutput(call.id, call.name, UNKNOWN, is_error=True)
            known[call.id] = Outcome(lost, known=False)
    return known


def _free(call: ToolUse, known: set[str]) -> ToolUse:
    wanted = free = call.id or "call"
    number = 2
    while free in known:
        free = f"{wanted}_{number}"
        number += 1
    known.add(free)
    return call if free == call.id else replace(call, id=free)
