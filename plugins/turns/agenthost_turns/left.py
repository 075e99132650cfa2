"""What a turn leaves to who started it: calls of their tools, and its session."""

from __future__ import annotations

from collections.abc import Sequence

from agenthost import ToolUse, TurnOptions, TurnResult


def left_of(options: TurnOptions, calls: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """Choose the calls that are left to the caller; none that cannot be read."""
    names = {tool.name for tool in options.tools}
    return tuple([c for c in calls if c.name in names and not c.malformed])


def key_of(
    options: TurnOptions, turn_id: str, ended: TurnResult | None = None
) -> str | None:
    """What the session of a stateless turn is kept by, None when it is not.

    Args:
        options: What the turn was started with.
        turn_id: The turn.
        ended: How it has ended, if it has.
    """
    if options.turn_id:
        return f"turn:{turn_id}"
    left = bool(options.tools) if ended is None else bool(ended.calls)
    return f"turn:left:{turn_id}" if left else None
