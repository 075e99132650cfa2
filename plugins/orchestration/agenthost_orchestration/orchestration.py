"""What one daemon has of this area, and the order in which it comes up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenthost import Host, ServiceSpec, Unavailable

if TYPE_CHECKING:
    from .workflows.definition import Workflows
    from .workflows.runs import Runs


class Orchestration:
    """The background work, workflows, triggers and schedules of one daemon."""

    runs: Runs
    workflows: Workflows

    @classmethod
    def served(cls, warm_up: Callable[[], object]) -> OrchestrationService:
        """Make one, with the service that starts and stops it."""
        made = cls()
        return OrchestrationService(
            "orchestration", made.start, made.stop, warm_up, orchestration=made
        )

    async def start(self, host: Host) -> None:
        """Take up what was left, and begin to listen and to keep time."""
        from .workflows.runs import Runs

        self.runs = Runs(host)
        await self.runs.open()

    async def stop(self, host: Host) -> None:
        """Listen no more; what is due is done after the next start."""
        del host
        await self.runs.close()


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
