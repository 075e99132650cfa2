"""What one daemon has of schedules: them, their timer, and what manifests say."""

from __future__ import annotations

from agenthost import Host

from .deciding import Deciding
from .following import Conditions, Following
from .occasions import Occasions
from .schedules import Schedules
from .telling import Telling
from .timekeeper import Timekeeper


class ScheduleService:
    """Starts and stops all that keeps time.

    Args:
        host: The daemon.
        occasions: Where what is due is written, and by whom it is done.
        conditions: Told of agents whose manifests are proactive.
    """

    def __init__(
        self, host: Host, occasions: Occasions, conditions: Conditions
    ) -> None:
        telling = Telling(host, self._wake)
        self.schedules = Schedules(host, occasions, telling)
        self._following = Following(host, telling, self._wake, conditions)
        deciding = Deciding(host, occasions, self.schedules.pause)
        self._timekeeper = Timekeeper(host, deciding, self._following.follow)

    def _wake(self) -> None:
        self._timekeeper.wake()

    async def start(self) -> None:
        """Begin with what the last process left."""
        await self._following.start()
        self._timekeeper.start()

    async def stop(self) -> None:
        """End; what becomes due is looked at by the next start."""
        self._following.stop()
        await self._timekeeper.stop()
