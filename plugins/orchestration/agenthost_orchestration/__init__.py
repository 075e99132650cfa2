"""Workflows, triggers and schedules: what agents do without a person who waits."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agenthost import (
    CommandSpec,
    ConfigSection,
    LateRoutes,
    ManifestTable,
    RouteGroup,
    SchemaSpec,
    ServiceSpec,
    ToolSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from alembic.operations import Operations
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
        SchemaSpec("tasks", _tasks),
        SchemaSpec("triggers", _triggers),
        SchemaSpec("workflow_runs", _runs, (ask_about_runs,)),
        SchemaSpec("workflows", _workflows),
    )


def ask_about_runs(op: Operations) -> None:
    """Let a run say what a person may be asked when it has spent what it may."""
    from sqlalchemy import Column, Text

    asks = Column("asks", Text, nullable=False, server_default="")
    op.add_column("workflow_runs", asks)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served()


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer what people see of this area, and change."""
    triggers = ("/api/triggers", "/api/events")
    for name, paths, module in (
        ("occasions", ("/api/occasions",), ".background.routes"),
        ("orchestration.schedules", ("/api/schedules",), ".schedules.routes"),
        ("orchestration.triggers", triggers, ".triggers.routes"),
        ("workflows", ("/api/workflows",), ".workflows.routes"),
        ("workflow_runs", ("/api/workflows",), ".workflows.run_routes"),
    ):
        yield LateRoutes(name, paths, partial(_routes, module))


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``event_publish`` and the tools of schedules and of tasks."""
    from .schedules.tools import schedule_tools
    from .tasks.tools import task_tools
    from .triggers.tool import tools

    yield from tools()
    yield from schedule_tools()
    yield from task_tools()


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


def _routes(module: str) -> RouteGroup:
    routes: RouteGroup = import_module(module, __package__).routes
    return routes


def _occasions() -> MetaData:
    from .background.tables import metadata

    return metadata


def _schedules() -> MetaData:
    from .schedules.tables import metadata

    return metadata


def _tasks() -> MetaData:
    from .tasks.tables import metadata

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
