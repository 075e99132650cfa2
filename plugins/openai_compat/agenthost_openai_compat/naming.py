"""Which agent a ``model`` names."""

from __future__ import annotations

from uuid import UUID

from agenthost import Agent, AgentView, Host, NotFound

from .errors import ModelNotFound

PREFIX = "service:"


def named(host: Host, model: str) -> Agent:
    """Find the agent of a request; a name that nobody has is the first agent's.

    Raises:
        ModelNotFound: ``service:`` or an id names nobody, or there is no agent.
    """
    reference = model.removeprefix(PREFIX)
    try:
        if reference is not model:
            return _by_name(host, reference)
        return host.agents.find(model)
    except NotFound:
        agents = host.agents.list()
        if reference is not model or _is_id(model) or not agents:
            raise ModelNotFound(model) from None
        return agents[0]


def model_id(agent: Agent | AgentView) -> str:
    """The name under which an agent is listed as a model."""
    return PREFIX + agent.name


def _by_name(host: Host, name: str) -> Agent:
    agent = host.agents.find(name)
    # Another may be called like this one's id.
    if agent.name != name:
        raise ModelNotFound(PREFIX + name)
    return agent


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
