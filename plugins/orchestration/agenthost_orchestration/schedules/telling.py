"""Changes of schedules: what others keep of one is in its commit, then it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from agenthost import Caused, Context, Host

from .schedule import Schedule

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .events import ScheduleEvent

T = TypeVar("T")
NOBODY: Caused = {"by": "", "source": "", "depth": 0}


class Telling:
    """Writes changes and tells of them.

    Args:
        host: The daemon.
        wake: Called after each change.
    """

    def __init__(self, host: Host, wake: Callable[[], object]) -> None:
        self._host = host
        self._wake = wake

    async def write(
        self, write: Callable[[Connection], T], event: ScheduleEvent | None
    ) -> T:
        """Write a change with what others keep of it, and tell of it then."""
        keep = None if event is None else self._host.events.keeping(event)
        also = () if keep is None else (keep,)
        written = await self._host.store.write(write, *also)
        if event is not None:
            self._host.events.publish(event)
        self._wake()
        return written

    def event(
        self,
        kind: type[ScheduleEvent],
        schedule: Schedule,
        context: Context | None = None,
        **said: str,
    ) -> ScheduleEvent | None:
        """Make what is told of a schedule, unless nobody listens."""
        if not self._host.events.wants(kind):
            return None
        now, agent_id = self._host.clock.time(), schedule.errand.agent_id
        caused = NOBODY if context is None else context.caused
        return kind(schedule.id, now, schedule.name, agent_id, **said, **caused)
