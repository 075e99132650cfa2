"""The agents as resources, and what they are told as prompts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial

from agenthost import Agent, NotFound

from .named import Item, NamedSource


class Agents(NamedSource):
    """The agents of this daemon."""

    name = "agents"
    label = "agent"
    about = "An agent by its name"
    mime_type = "application/json"

    def items(self) -> Iterable[Item]:
        """Every agent."""
        return map(self._item, self._host.agents.list())

    def item(self, name: str) -> Item | None:
        """Find an agent."""
        try:
            return self._item(self._host.agents.find(name))
        except NotFound:
            return None

    def _item(self, agent: Agent) -> Item:
        manifest = agent.manifest
        return Item(
            agent.name,
            manifest.description,
            manifest.model.system_prompt,
            partial(self._shown, agent),
            f"{agent.updated_at} {agent.state}",
        )

    def _shown(self, agent: Agent) -> str:
        provider, model = self._host.agents.model_of(agent)
        shown = {
            "id": agent.id,
            "name": agent.name,
            "description": agent.manifest.description,
            "state": agent.state,
            "mode": agent.mode,
            "model": f"{provider}/{model}",
            "tools": [*agent.manifest.capabilities.tools],
            "tags": [*agent.manifest.tags],
        }
        return json.dumps(shown)
