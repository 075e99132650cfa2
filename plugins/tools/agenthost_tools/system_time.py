"""Tell the time: the tool ``system_time``."""

from __future__ import annotations

from collections.abc import Iterable
from zoneinfo import ZoneInfo

from agenthost import Effect, InvalidInput, ToolContext, ToolResult, ToolSpec, hookimpl
from pydantic import BaseModel, Field


class SystemTime(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``system_time``."""

    timezone: str = Field("UTC", description="IANA name, such as Europe/Lisbon")


async def system_time(context: ToolContext, call: SystemTime) -> ToolResult:
    """Return the current time in the zone asked for.

    Raises:
        InvalidInput: The zone is not an IANA name.
    """
    try:
        # It reads a file, or looks for one in every folder of zones.
        zone = await context.host.workers.in_thread(ZoneInfo, call.timezone)
    except (LookupError, ValueError, OSError) as error:
        raise InvalidInput(
            "timezone", f"unknown zone {call.timezone!r}; try Europe/Lisbon"
        ) from error
    return ToolResult(context.clock.now(zone).isoformat(timespec="seconds"))


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``system_time``."""
    yield ToolSpec(
        "system_time",
        "Tell the current date and time.",
        SystemTime,
        Effect.READ,
        system_time,
        idempotent=True,
    )
