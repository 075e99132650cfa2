"""What WebSocket frames and stream events say alike of tools."""

from __future__ import annotations

from typing import Any

from agenthost import ToolEnd, ToolProgress


def progress_of(event: ToolProgress) -> dict[str, Any]:
    """Write how far a tool is; of how much stands there where it knows."""
    frame = {"tool": event.tool, "id": event.id, "done": event.done}
    if event.total is not None:
        frame["total"] = event.total
    return {**frame, "text": event.text}


def structured_of(event: ToolEnd) -> dict[str, Any]:
    """Write the JSON value of a result, where it has one."""
    return {} if event.structured is None else {"structured": event.structured}
