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
def register_config() -> Iterable[ConfigSection]:
    """Read the limits of background work."""
    from .background.settings import BackgroundSection

    yield ConfigSection("background", BackgroundSection)


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables, one schema for each kind of thing."""
    return (
        SchemaSpec("workflows", _workflow_tables),
        SchemaSpec("occasions", _occasion_tables),
    )


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served()


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer ``/api/workflows`` and ``/api/occasions``."""
    from .background import routes as occasions
    from .workflows import routes as workflows

    yield workflows.routes
    yield occasions.routes


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost workflow`` and ``agenthost occasions``."""
    from .background.commands import occasions
    from .workflows.commands import workflow

    yield CommandSpec(workflow)
    yield CommandSpec(occasions)


def _workflow_tables() -> MetaData:
    from .workflows.tables import metadata

    return metadata


def _occasion_tables() -> MetaData:
    from .background.tables import metadata

    return metadata
