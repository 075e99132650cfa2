"""A turn's events as the WebSocket's frames."""

from __future__ import annotations

from typing import Any

from agenthost import (
    Done,
    Failed,
    Missed,
    TextDelta,
    Thinking,
    Thought,
    ToolEnd,
    ToolProgress,
    ToolStart,
    TurnEvent,
    Waiting,
)

from .messages import result_body
from .tool_frames import progress_of, structured_of


def turn_frame(event: TurnEvent, turn_id: str, message_id: str) -> dict[str, Any]:
    """Write a turn's event with the turn's id, and the id its client gave it.

    A tool's frames keep ``id`` for the call.
    """
    frame = {**frame_of(event), "turn_id": turn_id}
    if message_id:
        frame.setdefault("id", message_id)
    return frame


def frame_of(event: TurnEvent) -> dict[str, Any]:
    """Write a turn's event as a frame."""
    match event:
        case Done(result):
            totals: dict[str, Any] = dict(result_body(result))
            return {"type": "response", "content": totals.pop("response"), **totals}
        case Failed(error):
            kind = "waiting" if isinstance(error, Waiting) else "error"
            frame = {"type": kind, "content": error.message, "code": error.code}
            return {**frame, **error.facts}
        case Missed(count):
            return {"type": "missed", "events": count}
        case ToolStart() | ToolProgress() | ToolEnd():
            return _tool_frame(event)
        case Thinking() | Thought() | TextDelta():
            return _words_frame(event)


def _words_frame(event: Thinking | Thought | TextDelta) -> dict[str, Any]:
    match event:
        case Thinking():
            return {"type": "thinking"}
        case Thought(text):
            return {"type": "thinking", "content": text}
        case TextDelta(text, offset):
            return {"type": "text_delta", "content": text, "offset": offset}


def _tool_frame(event: ToolStart | ToolProgress | ToolEnd) -> dict[str, Any]:
    if isinstance(event, ToolProgress):
        return {"type": "tool_progress", **progress_of(event)}
    frame = {"tool": event.tool, "id": event.id}
    if isinstance(event, ToolStart):
        return {"type": "tool_start", **frame, "input": dict(event.input)}
    return {
        "type": "tool_end",
        **frame,
        "result": event.output,
        "is_error": event.is_error,
        **structured_of(event),
    }
