"""Workflows, triggers and schedules: what agents do without a person who waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import CommandSpec, RouteGroup, SchemaSpec, ServiceSpec, hookimpl

if TYPE_CHECKING:
    from sqlalchemy import MetaData


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served()


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables, one schema for each kind of thing."""
    return (SchemaSpec("workflows", _workflow_tables),)


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer ``/api/workflows``."""
    from .workflows import routes as workflows

    yield workflows.routes


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost workflow``."""
    from .workflows.commands import workflow

    yield CommandSpec(workflow)


def _workflow_tables() -> MetaData:
    from .workflows.tables import metadata

    return metadata
