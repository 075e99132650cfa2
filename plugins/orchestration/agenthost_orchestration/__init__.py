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
    ToolSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read the limits of background work, and how often triggers fire."""
    from .background.settings import BackgroundSection
    from .triggers.settings import TriggersSection

    yield ConfigSection("background", BackgroundSection)
    yield ConfigSection("triggers", TriggersSection)


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables of this area, each folder's with a version of its own."""
    return (
        SchemaSpec("occasions", _occasions),
        SchemaSpec("triggers", _triggers),
    )


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served(partial(import_module, ".triggers.writes", __package__))


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer what people see of this area, and change."""
    from .background.routes import routes as occasions
    from .triggers.routes import routes as triggers

    yield occasions
    yield triggers


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``event_publish``."""
    from .triggers.tool import tools

    yield from tools()


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost occasions`` and ``agenthost trigger``."""
    from .background.commands import occasions
    from .triggers.commands import trigger

    yield CommandSpec(occasions)
    yield CommandSpec(trigger)


def _occasions() -> MetaData:
    from .background.tables import metadata

    return metadata


def _triggers() -> MetaData:
    from .triggers.tables import metadata

    return metadata
