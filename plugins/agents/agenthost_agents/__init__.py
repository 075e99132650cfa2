"""Agents: who exists, and the rules of their life."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from agenthost import AgentRows, Agents, AgentsBackend, Backend, Host, hookimpl


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
