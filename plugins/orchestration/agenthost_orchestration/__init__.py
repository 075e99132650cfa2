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
def register_service() -> Iterable[ServiceSpec]:
    """Offer what runs workflows, fires triggers and keeps schedules."""
    from .orchestration import Orchestration

    yield Orchestration.served(partial(import_module, ".triggers.writes", __package__))


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read how often triggers fire."""
    from .triggers.settings import TriggersSection

    yield ConfigSection("triggers", TriggersSection)


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables, one schema for each kind of thing."""
    return (SchemaSpec("triggers", _trigger_tables),)


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer ``/api/triggers`` and ``/api/events``."""
    from .triggers import routes as triggers

    yield triggers.routes


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``event_publish``."""
    from .triggers.tool import tools

    yield from tools()


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost trigger``."""
    from .triggers.commands import trigger

    yield CommandSpec(trigger)


def _trigger_tables() -> MetaData:
    from .triggers.tables import metadata

    return metadata
