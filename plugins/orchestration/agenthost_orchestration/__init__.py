"""Workflows, triggers and schedules: what agents do without a person who waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import (
    CommandSpec,
    ConfigSection,
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
    """Read the limits of background work and runs, and how often triggers fire."""
    from .background.settings import BackgroundSection
    from .triggers.settings import TriggersSection
    from .workflows.settings import WorkflowsSection

    yield ConfigSection("background", BackgroundSection)
    yield ConfigSection("triggers", TriggersSection)
    yield ConfigSection("workflows", WorkflowsSection)


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables, one schema for each kind of thing."""
    return (
        SchemaSpec("workflows", _workflow_tables),
        SchemaSpec("workflow_runs", _run_tables),
        SchemaSpec("occasions", _occasion_tables),
        SchemaSpec("triggers", _trigger_tables),
    )


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served()


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer workflows, occasions, triggers and events over the API."""
    from .background import routes as occasions
    from .triggers import routes as triggers
    from .workflows import routes as workflows
    from .workflows import run_routes as runs

    yield workflows.routes
    yield runs.routes
    yield occasions.routes
    yield triggers.routes


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``event_publish``."""
    from .triggers.tool import tools

    yield from tools()


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer the commands ``workflow``, ``occasions`` and ``trigger``."""
    from .background.commands import occasions
    from .triggers.commands import trigger
    from .workflows.commands import workflow
    from .workflows.run_commands import RUN_COMMANDS

    for command in RUN_COMMANDS:
        workflow.add_command(command)
    yield CommandSpec(workflow)
    yield CommandSpec(occasions)
    yield CommandSpec(trigger)


def _workflow_tables() -> MetaData:
    from .workflows.tables import metadata

    return metadata


def _occasion_tables() -> MetaData:
    from .background.tables import metadata

    return metadata


def _trigger_tables() -> MetaData:
    from .triggers.tables import metadata

    return metadata


def _run_tables() -> MetaData:
    from .workflows.run_tables import metadata

    return metadata
