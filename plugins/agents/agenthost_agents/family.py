"""Agents that agents make: how many, and how deep."""

from __future__ import annotations

from agenthost import Agents, AgentState, Conflict

MOST_CHILDREN = 32
DEEPEST = 4
"""Agents above one another, of which people have made the first."""


def check_room(agents: Agents, parent: str) -> None:
    """Refuse one child more than an agent may have.

    Raises:
        Conflict: It has as many, is too deep itself, or is being deleted.
        NotFound: It is gone.
    """
    above = agents.above(parent)
    name = above[0].name
    if any(each.state is AgentState.TERMINATED for each in above):
        raise Conflict(f"agent {name!r} is being deleted")
    if len(above) >= DEEPEST:
        raise Conflict(f"agents are nested {DEEPEST} deep; have {name!r} do it itself")
    if sum(each.parent == parent for each in agents.list()) >= MOST_CHILDREN:
        raise Conflict(f"agent {name!r} has {MOST_CHILDREN} children; kill one first")
