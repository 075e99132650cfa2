"""Workflows, triggers and schedules: what agents do without a person who waits."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
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


def _runs() -> MetaData:
    from .workflows.run_tables import metadata

    return metadata


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read the limits of workflows."""
    from .workflows.settings import WorkflowsSection

    yield ConfigSection("workflows", WorkflowsSection)


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables of the runs of workflows."""
    return (SchemaSpec("workflow_runs", _runs),)


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer the runs of workflows."""
    from .workflows import run_routes

    yield run_routes.routes


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost workflow``."""
    from .workflows.commands import workflow

    yield CommandSpec(workflow)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    warm_up = partial(import_module, ".workflows.run_tables", __package__)
    yield Orchestration.served(warm_up)
