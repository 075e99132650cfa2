"""What is kept back where several hear an answer: they are told, whatever it says.

Tools that keep something back say so in what they give; an answer may pass over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agenthost import Entry, ToolOutput

NOTICE = (
    "_I keep something back here that I was told elsewhere. "
    "Ask me in a direct conversation._"
)


def notice_of(turn: Iterable[Entry]) -> str:
    """Say what a room is told behind an answer; "" where nothing was kept from it.

    Args:
        turn: What was said in it, with the results of its tools.
    """
    parts = (part for entry in turn for part in entry.message.parts)
    return NOTICE if any(map(_keeps_back, parts)) else ""


def _keeps_back(part: object) -> bool:
    if not isinstance(part, ToolOutput) or not isinstance(part.structured, Mapping):
        return False
    return part.structured.get("withheld") is True
