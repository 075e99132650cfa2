"""The agent that a tool works for."""

from __future__ import annotations

from agenthost import AgentView, Context, InvalidInput


def acting_agent(context: Context) -> AgentView:
    """Return the agent whose turn this is.

    Raises:
        InvalidInput: Nobody's: the tool was called outside a turn.
    """
    if context.agent is None:
        raise InvalidInput("", "only an agent can use this tool; none is calling")
    return context.agent
