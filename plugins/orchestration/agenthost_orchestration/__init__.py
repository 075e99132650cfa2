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
    """Read how many schedules there may be, and what they may spend."""
    from .schedules.settings import SchedulesSection

    yield ConfigSection("schedules", SchedulesSection)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read when an agent works by itself."""
    from .schedules.manifest import AUTONOMOUS, SCHEDULE

    yield SCHEDULE
    yield AUTONOMOUS


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the table of schedules."""
    return (SchemaSpec("schedules", _schedules),)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served()


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer ``/api/schedules``."""
    from .schedules.routes import routes

    yield routes


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``schedule_create``, ``schedule_list`` and ``schedule_delete``."""
    from .schedules.tools import schedule_tools

    yield from schedule_tools()


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost schedule``."""
    from .schedules.commands import schedule

    yield CommandSpec(schedule)


def _schedules() -> MetaData:
    from .schedules.tables import metadata

    return metadata
