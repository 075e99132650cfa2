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
    """Offer the tables of this area, each folder's with a version of its own."""
    return (SchemaSpec("occasions", _occasions),)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served()


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer what people see of this area, and change."""
    from .background.routes import routes as occasions

    yield occasions


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost occasions``."""
    from .background.commands import occasions

    yield CommandSpec(occasions)


def _occasions() -> MetaData:
    from .background.tables import metadata

    return metadata
