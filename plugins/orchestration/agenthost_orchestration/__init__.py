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
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served()


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read the limits of workflows."""
    from .workflows.settings import WorkflowsSection

    yield ConfigSection("workflows", WorkflowsSection)


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables, one schema for each kind of thing."""
    return (
        SchemaSpec("workflows", _workflow_tables),
        SchemaSpec("workflow_runs", _run_tables),
    )


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer ``/api/workflows`` and the runs of them."""
    from .workflows import routes as workflows
    from .workflows import run_routes as runs

    yield workflows.routes
    yield runs.routes


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost workflow``."""
    from .workflows.commands import workflow
    from .workflows.run_commands import RUN_COMMANDS

    for command in RUN_COMMANDS:
        workflow.add_command(command)
    yield CommandSpec(workflow)


def _workflow_tables() -> MetaData:
    from .workflows.tables import metadata

    return metadata


def _run_tables() -> MetaData:
    from .workflows.run_tables import metadata

    return metadata
