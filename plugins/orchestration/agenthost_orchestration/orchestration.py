"""What one daemon has of this area, and the order in which it comes up."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module

from agenthost import OPERATOR, Context, Host, ServiceSpec, Unavailable

from .workflows.files import WorkflowFiles
from .workflows.workflows import Workflows


class Orchestration:
    """The background work, workflows, triggers and schedules of one daemon.

    What it has is there from its start on.
    """

    workflows: Workflows
    workflow_files: WorkflowFiles

    @classmethod
    def served(cls) -> OrchestrationService:
        """Make one, with the service that starts and stops it."""
        made = cls()
        return OrchestrationService(
            "orchestration", made.start, made.stop, _warm_up, orchestration=made
        )

    async def start(self, host: Host) -> None:
        """Take up what was left, and begin to listen and to keep time."""
        self.workflows = Workflows(host)
        self.workflow_files = WorkflowFiles(host, self.workflows)
        await self.workflow_files.load(Context(OPERATOR))

    async def stop(self, host: Host) -> None:
        """Listen no more; what is due is done after the next start."""
        del host


def _warm_up() -> None:
    """Import what the first requests need."""
    for module in ("reading", "rows", "tables"):
        import_module(f".workflows.{module}", __package__)


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
