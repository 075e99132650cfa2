"""Look for other agents by what they do: ``agent_find``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenthost import Effect, ToolContext, ToolResult, ToolSpec, hookimpl
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from agenthost import Agent

MOST_FOUND = 50
ABOUT_CHARACTERS = 500


class AgentFind(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``agent_find``."""

    query: str = Field(
        description="Words of its name, description, tags or tools; all must occur",
        min_length=1,
        max_length=1_000,
    )


async def agent_find(context: ToolContext, call: AgentFind) -> ToolResult:
    """Return the agents that have every word of the query, as JSON."""
    words = call.query.casefold().split()
    agents = context.host.agents.list()
    found = [each for each in agents if _has(each, words)][:MOST_FOUND]
    return ToolResult(json.dumps([_row(each) for each in found], ensure_ascii=False))


def _has(agent: Agent, words: list[str]) -> bool:
    said = agent.manifest
    about = (agent.name, said.description, *said.tags, *said.capabilities.tools)
    text = "\n".join(about).casefold()
    return all(word in text for word in words)


def _row(agent: Agent) -> dict[str, object]:
    return {
        "id": agent.id,
        "name": agent.name,
        "state": agent.state,
        "description": agent.manifest.description[:ABOUT_CHARACTERS],
    }


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``agent_find``."""
    yield ToolSpec(
        "agent_find",
        "Find agents by words of their name, description, tags or tools.",
        AgentFind,
        Effect.READ,
        agent_find,
        idempotent=True,
    )
