"""What one daemon has of this area, and the order in which it comes up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenthost import Host, ServiceSpec, Unavailable

if TYPE_CHECKING:
    from .schedules.occasions import Occasions
    from .schedules.schedules import Schedules
    from .schedules.service import ScheduleService


class Orchestration:
    """The background work, workflows, triggers and schedules of one daemon."""

    background: Occasions | None = None
    _schedules: ScheduleService | None = None

    @classmethod
    def served(cls) -> OrchestrationService:
        """Make one, with the service that starts and stops it."""
        made = cls()
        return OrchestrationService(
            "orchestration", made.start, made.stop, orchestration=made
        )

    async def start(self, host: Host) -> None:
        """Take up what was left, and begin to listen and to keep time."""
        if self.background is not None:
            from .schedules.service import ScheduleService

            self._schedules = ScheduleService(host, self.background, self._conditions)
            await self._schedules.start()

    async def stop(self, host: Host) -> None:
        """Listen no more; what is due is done after the next start."""
        del host
        if self._schedules is not None:
            await self._schedules.stop()

    @property
    def schedules(self) -> Schedules:
        """The schedules.

        Raises:
            Unavailable: They are not kept yet.
        """
        if self._schedules is None:
            raise Unavailable("schedules are not kept: nothing does what is due")
        return self._schedules.schedules

    async def _conditions(self, agent_id: str, conditions: Sequence[str]) -> None:
        """Have an agent told when one of its manifest's conditions is met."""


@dataclass(frozen=True, slots=True)
class OrchestrationService(ServiceSpec):
    """The service of this area, by which its routes and tools find what it runs."""

    orchestration: Orchestration = field(kw_only=True)


def orchestration_of(host: Host) -> Orchestration:
    """Find the orchestration of a daemon.

    Raises:
        Unavailable: Its plugin has failed.
    """
    for _, service in host.registry.offered(ServiceSpec):
        if isinstance(service, OrchestrationService):
            return service.orchestration
    raise Unavailable("orchestration is not served: its plugin has failed")
