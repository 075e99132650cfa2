"""Which conversation the turn of an errand speaks in, and how one is kept short."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agenthost import (
    Agent,
    Entry,
    Host,
    Message,
    Role,
    Text,
    TurnState,
)

from .errands import Errand, Occasion, SessionMode

LEFT_OUT = Message(
    Role.USER, (Text("[What was said here before is not shown any more.]"),)
)
UNFINISHED = frozenset({TurnState.RUNNING, TurnState.WAITING, TurnState.INTERRUPTED})


async def session_for(
    host: Host, occasion: Occasion, errand: Errand, agent: Agent
) -> str:
    """Open the session that the turn speaks in; "" is the agent's own."""
    match errand.session:
        case SessionMode.OWN:
            return ""
        case SessionMode.NEW:
            # By its key it outlives the process, and a job that runs again finds it.
            key = f"occasion:{occasion.id}"
            made = await host.sessions.open(agent.id, key, ephemeral=True)
        case _:
            key = f"{occasion.source}:{occasion.source_id}"
            made = await host.sessions.open(agent.id, key)
    return made.id


async def shorten(host: Host, agent: Agent, session_id: str, keep: int) -> None:
    """Keep a session to its last messages, where no turn speaks in it meanwhile."""

    async def within(session_id: str) -> None:
        session = await host.sessions.get(session_id, agent.id)
        entries = await host.sessions.entries(session)
        turns = await host.sessions.turns(session_id)
        unfinished = {each for each in turns if turns[each].state in UNFINISHED}
        cut = cut_at(entries, keep, unfinished)
        if cut:
            await host.sessions.compact(session, entries[cut].seq, LEFT_OUT, None)

    await host.turns.apart(agent, within, session_id)


def cut_at(entries: Sequence[Entry], keep: int, unfinished: Collection[str]) -> int:
    """Give the index from which messages stay: at most ``keep``, from a question on.

    A call is never parted from its result, nor an answer from its question: the cut is
    at a user's message. Of an exchange that is longer than ``keep`` all of it stays,
    and so does whatever a turn that has not ended was told.
    """
    questions = [
        index
        for index, each in enumerate(entries)
        if each.message.role is Role.USER and _is_apart(entries, index)
    ]
    wanted = max(len(entries) - keep, 0)
    cut = next((each for each in questions if each >= wanted), None)
    if cut is None:
        cut = questions[-1] if questions else 0
    held = (i for i, each in enumerate(entries) if each.turn_id in unfinished)
    first = next(held, len(entries))
    if first >= cut:
        return cut
    return max((each for each in questions if each <= first), default=0)


def _is_apart(entries: Sequence[Entry], index: int) -> bool:
    """Whether nothing before it is still to be answered by what follows."""
    if index == 0:
        return True
    return not entries[index - 1].message.tool_uses
