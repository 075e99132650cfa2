"""Chat channels: what connects them to agents, and those that come with agenthost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import (
    CommandSpec,
    ConfigSection,
    DeliverySpec,
    LateRoutes,
    Mountable,
    SchemaSpec,
    ServiceSpec,
    ToolSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from agenthost import RouteGroup


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read which channels there are, who may speak there, and who answers."""
    from .bridge.settings import Channels

    yield ConfigSection("channels", Channels)


@hookimpl
def register_schema() -> tuple[SchemaSpec, ...]:
    """Offer the tables of what came in and what goes out."""
    from .bridge.schema import SCHEMA

    return (SCHEMA,)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what stands between channels and agents."""
    from .bridge.bridge import served

    yield served()


@hookimpl
def register_routes() -> Iterable[Mountable]:
    """Offer ``/api/channels``, and below ``/channels`` what services call."""
    from .bridge.doors import doors

    yield doors
    yield LateRoutes("channels", ("/api/channels",), _routes)
    yield LateRoutes("channels.pairings", ("/api/channels",), _pairing_routes)
    yield LateRoutes("channels.losses", ("/api/channels",), _loss_routes)
    yield LateRoutes("channels.care", ("/api/channels",), _care_routes)


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``channel_send``."""
    from .bridge.sending import tool

    yield tool()


@hookimpl
def register_delivery() -> Iterable[DeliverySpec]:
    """Offer the delivery ``channel``."""
    from .bridge.sending import delivery

    yield delivery()


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost channel`` and ``agenthost certify``."""
    from .bridge.commands import channel
    from .certify_command import certify

    yield CommandSpec(channel)
    yield CommandSpec(certify)


def _routes() -> RouteGroup:
    from .bridge.routes import routes

    return routes


def _care_routes() -> RouteGroup:
    from .bridge.care_routes import routes

    return routes


def _loss_routes() -> RouteGroup:
    from .bridge.losses import routes

    return routes


def _pairing_routes() -> RouteGroup:
    from .bridge.pairing_routes import routes

    return routes
