"""What one daemon has of schedules: them, their timer, and what manifests say."""

from __future__ import annotations

from agenthost import Host

from .following import Conditions, Following
from .occasions import Occasions
from .schedules import Schedules
from .telling import Telling
from .timekeeper import Due, Timekeeper


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
        self._timekeeper = Timekeeper(host, self._deciding, self._following.follow)
        self._host = host
        self._occasions = occasions

    def _deciding(self) -> Due:
        # A daemon without schedules need not know of zones.
        from .deciding import Deciding

        return Deciding(self._host, self._occasions, self.schedules.pause)

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
