"""Agents: who exists, and the rules of their life."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from agenthost import (
    AgentRows,
    Agents,
    AgentsBackend,
    Backend,
    Host,
    LateRoutes,
    ManifestTable,
    ServiceSpec,
    hookimpl,
)

if TYPE_CHECKING:
    from agenthost import RouteGroup


def open_agents(
    host: Host, rows: AgentRows, end_turns: Callable[[str, str], Awaitable[object]]
) -> Agents:
    """Keep the agents of a daemon."""
    from .agents import KeptAgents

    return KeptAgents(host, rows, end_turns)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the agents' life cycle."""
    yield AgentsBackend("kept", open_agents)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read which commands an agent may run, and how often it is started again."""
    from .autonomous import RESTARTS
    from .commands import COMMANDS

    yield COMMANDS
    yield RESTARTS


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Start crashed agents again."""
    yield ServiceSpec("restarts", _begin, _end)


async def _begin(host: Host) -> None:
    from agenthost import AgentState

    from .agents import KeptAgents

    agents = host.agents
    crashed = any(each.state is AgentState.CRASHED for each in agents.list())
    # Another plugin may serve the port.
    if crashed and isinstance(agents, KeptAgents):
        agents.lives.begin()


async def _end(host: Host) -> None:
    from .agents import KeptAgents

    if isinstance(host.agents, KeptAgents):
        await host.agents.lives.end()


@hookimpl
def register_routes() -> Iterable[LateRoutes]:
    """Offer ``/api/profiles``."""
    yield LateRoutes("profiles", ("/api/profiles",), _profiles)


def _profiles() -> RouteGroup:
    from .profiles import routes

    return routes
