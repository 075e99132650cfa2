"""Workflows, triggers and schedules: what agents do without a person who waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agenthost import (
    CommandSpec,
    ConfigSection,
    ManifestTable,
    RouteGroup,
    SchemaSpec,
    ServiceSpec,
    ToolSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read the limits of background work, its sources and runs of workflows."""
    from .background.settings import BackgroundSection
    from .schedules.settings import SchedulesSection
    from .triggers.settings import TriggersSection
    from .workflows.settings import WorkflowsSection

    yield ConfigSection("background", BackgroundSection)
    yield ConfigSection("schedules", SchedulesSection)
    yield ConfigSection("triggers", TriggersSection)
    yield ConfigSection("workflows", WorkflowsSection)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read when an agent works by itself."""
    from .schedules.manifest import AUTONOMOUS, SCHEDULE

    yield SCHEDULE
    yield AUTONOMOUS


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables of this area, each folder's with a version of its own."""
    return (
        SchemaSpec("occasions", _occasions),
        SchemaSpec("schedules", _schedules),
        SchemaSpec("triggers", _triggers),
        SchemaSpec("workflow_runs", _runs),
        SchemaSpec("workflows", _workflows),
    )


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served()


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer what people see of this area, and change."""
    from .background.routes import routes as occasions
    from .schedules.routes import routes as schedules
    from .triggers.routes import routes as triggers
    from .workflows.routes import routes as workflows
    from .workflows.run_routes import routes as runs

    yield occasions
    yield schedules
    yield triggers
    yield workflows
    yield runs


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``event_publish`` and the tools of schedules."""
    from .schedules.tools import schedule_tools
    from .triggers.tool import tools

    yield from tools()
    yield from schedule_tools()


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost occasions``, ``schedule``, ``trigger`` and ``workflow``."""
    from .background.commands import occasions
    from .schedules.commands import schedule
    from .triggers.commands import trigger
    from .workflows.commands import workflow
    from .workflows.run_commands import RUN_COMMANDS

    for command in RUN_COMMANDS:
        workflow.add_command(command)
    yield CommandSpec(occasions)
    yield CommandSpec(schedule)
    yield CommandSpec(trigger)
    yield CommandSpec(workflow)


def _occasions() -> MetaData:
    from .background.tables import metadata

    return metadata


def _schedules() -> MetaData:
    from .schedules.tables import metadata

    return metadata


def _triggers() -> MetaData:
    from .triggers.tables import metadata

    return metadata


def _workflows() -> MetaData:
    from .workflows.tables import metadata

    return metadata


def _runs() -> MetaData:
    from .workflows.run_tables import metadata

    return metadata
