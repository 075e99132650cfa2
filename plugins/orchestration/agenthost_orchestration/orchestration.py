"""What one daemon has of this area, and the order in which it comes up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from agenthost import OPERATOR, Context, Host, ServiceSpec, Unavailable

from .background.background import Background
from .triggers.triggers import Triggers
from .workflows.files import WorkflowFiles
from .workflows.runs import Runs
from .workflows.workflows import Workflows

if TYPE_CHECKING:
    from .background.gauges import Gauge
    from .schedules.schedules import Schedules
    from .schedules.service import ScheduleService

AT_FIRST = (
    "background.worker",
    "background.tables",
    "schedules.tables",
    "triggers.writes",
    "workflows.reading",
    "workflows.rows",
    "workflows.run_tables",
    "workflows.tables",
)
"""What the first requests and occasions need, and a start does not."""


class Orchestration:
    """The background work, workflows, triggers and schedules of one daemon.

    What it has is there from its start on.
    """

    workflows: Workflows
    workflow_files: WorkflowFiles
    runs: Runs
    triggers: Triggers
    schedules: Schedules
    _keeping: ScheduleService

    def __init__(self) -> None:
        self.background = Background()

    @classmethod
    def served(cls) -> OrchestrationService:
        """Make one, with the service that starts and stops it."""
        made = cls()
        return OrchestrationService(
            "orchestration", made.start, made.stop, _warm_up, orchestration=made
        )

    async def start(self, host: Host) -> None:
        """Take up what was left, and begin to listen and to keep time."""
        from .schedules.service import ScheduleService

        self.workflows = Workflows(host)
        self.workflow_files = WorkflowFiles(host, self.workflows)
        await self.workflow_files.load(Context(OPERATOR))
        self.runs = Runs(host)
        await self.runs.open()
        self.background.workflows = self.workflows
        self.background.runs = self.runs
        self.triggers = Triggers(host, self.background)
        self.background.source(self.triggers)
        await self.triggers.start()
        conditions = partial(self._conditions, host)
        self._keeping = ScheduleService(host, self.background, conditions)
        self.schedules = self._keeping.schedules
        self.background.source(self.schedules)
        # What is due may need all that stands above.
        await self.background.start(host)
        await self._keeping.start()

    async def stop(self, host: Host) -> None:
        """Listen no more; what is due is done after the next start."""
        del host
        await self._keeping.stop()
        await self.triggers.stop()
        await self.background.stop()
        await self.runs.close()

    async def _conditions(
        self, host: Host, agent_id: str, conditions: Sequence[str]
    ) -> None:
        """Have triggers hear what an agent's manifest is proactive about."""
        from .triggers.proactive import follow

        await follow(self.triggers, host, host.agents.get(agent_id), conditions)


def _warm_up() -> None:
    for module in AT_FIRST:
        import_module(f".{module}", __package__)


@dataclass(frozen=True, slots=True)
class OrchestrationService(ServiceSpec):
    """The service of this area, by which its routes and tools find what it runs."""

    orchestration: Orchestration = field(kw_only=True)

    async def gauges(self, host: Host) -> Sequence[Gauge]:
        """Tell a monitor how the background work stands."""
        from .background.gauges import gauges

        return await gauges(host)


def orchestration_of(host: Host) -> Orchestration:
    """Find the orchestration of a daemon.

    Raises:
        Unavailable: Its plugin has failed.
    """
    for _, service in host.registry.offered(ServiceSpec):
        if isinstance(service, OrchestrationService):
            return service.orchestration
    raise Unavailable("orchestration is not served: its plugin has failed")
