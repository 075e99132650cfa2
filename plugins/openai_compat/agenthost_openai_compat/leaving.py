"""The end of a turn, and what becomes of it when its client leaves before."""

from __future__ import annotations

from dataclasses import replace

from agenthost import CutShort, Failed, Finish, Turn, TurnResult, Watcher

LEFT = "the client left"


async def ended(turn: Turn) -> TurnResult:
    """Wait for a turn's end; one that was cut off is told as far as it came.

    Raises:
        AgentHostError: It failed otherwise.
    """
    try:
        return await turn.result()
    except CutShort:
        async for event in turn.events():
            if isinstance(event, Failed):
                return replace(event.so_far, finish=Finish.LENGTH)
        raise
    finally:
        # It has ended, or its client has left.
        if turn.options.turn_id is None:
            turn.cancel(LEFT)


def leave(watcher: Watcher) -> None:
    """Watch no longer, and stop the turn unless it has a key."""
    # Whoever else reads the turn keeps it going.
    if watcher.leave() and watcher.turn.options.turn_id is None:
        watcher.turn.cancel(LEFT)
