"""The tool ``event_publish``: an agent tells of something, and triggers fire at it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agenthost import Effect, ToolContext, ToolResult, ToolSpec
from pydantic import BaseModel, Field

from .publishing import publish


class EventPublish(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``event_publish``."""

    type: str = Field(description="A word for what happened, such as order.received")
    data: dict[str, Any] = Field(
        default_factory=dict, description="What there is to know of it, as JSON"
    )


async def event_publish(context: ToolContext, call: EventPublish) -> ToolResult:
    """Publish a custom event."""
    event = await publish(context.host, context, call.type, call.data)
    return ToolResult(f"published {event.type} as event {event.id}")


def tools() -> Iterable[ToolSpec]:
    """Offer to publish events."""
    yield ToolSpec(
        "event_publish",
        "Publish an event that other agents' triggers may be waiting for.",
        EventPublish,
        Effect.WRITE,
        event_publish,
    )
