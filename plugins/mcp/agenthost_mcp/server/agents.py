"""The agents as resources, and what they are told as prompts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from agenthost import Agent, Host, JsonObject, NotFound, Refused, Text, authorize

from .admitting import may
from .challenges import AGENTS, KIND
from .source import (
    Contents,
    McpSource,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    Visit,
)

SCHEME = "agent://"
TEMPLATE = "agent://{name}"
READS = "agents:read"
PREFIX = "agent."
_TASK = PromptArgument("task", "What is to be done in the agent's manner")


class Agents(McpSource):
    """The agents of this daemon, for whoever may read them over the API."""

    name = "agents"

    def __init__(self, host: Host) -> None:
        self._host = host

    def resources(self, visit: Visit) -> Iterable[Resource]:
        """Every agent, and the template of their names."""
        if not _may_read(visit):
            return
        kind = "application/json"
        yield Resource(TEMPLATE, "agent", "An agent by its name", kind)
        for agent in self._host.agents.list():
            uri, about = f"{SCHEME}{agent.name}", agent.manifest.description
            yield Resource(uri, agent.name, about, kind)

    def prompts(self, visit: Visit) -> Iterable[Prompt]:
        """What each agent that has a system prompt is told."""
        if not _may_read(visit):
            return
        for agent in self._host.agents.list():
            if agent.manifest.model.system_prompt:
                about = agent.manifest.description
                yield Prompt(f"{PREFIX}{agent.name}", about, (_TASK,))

    def revision(self, uri: str) -> str:
        """When the agent was changed."""
        agent = self._agent(uri.removeprefix(SCHEME))
        return "" if agent is None else f"{agent.updated_at} {agent.state}"

    async def read(self, visit: Visit, uri: str) -> Sequence[Contents] | None:
        """Show an agent."""
        if not uri.startswith(SCHEME) or not _may_read(visit):
            return None
        agent = self._agent(uri.removeprefix(SCHEME))
        if agent is None:
            return None
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
        return [Contents(uri, "application/json", json.dumps(shown))]

    async def prompt(
        self, visit: Visit, name: str, arguments: Mapping[str, str]
    ) -> Sequence[PromptMessage] | None:
        """Give what the agent is told, and the task behind it."""
        if not name.startswith(PREFIX) or not _may_read(visit):
            return None
        agent = self._agent(name.removeprefix(PREFIX))
        if agent is None or not agent.manifest.model.system_prompt:
            return None
        words = [agent.manifest.model.system_prompt, arguments.get("task", "")]
        text = "\n\n".join(filter(None, words))
        return [PromptMessage("user", Text(text))]

    async def complete(
        self, visit: Visit, reference: JsonObject, argument: str, begun: str
    ) -> Sequence[str] | None:
        """Name agents."""
        if reference.get("uri") != TEMPLATE or argument != "name":
            return None
        if not _may_read(visit):
            return None
        names = sorted(agent.name for agent in self._host.agents.list())
        return [name for name in names if name.startswith(begun)]

    def _agent(self, name: str) -> Agent | None:
        try:
            return self._host.agents.find(name)
        except NotFound:
            return None


def _may_read(visit: Visit) -> bool:
    if visit.principal.kind == KIND:
        return may(visit.principal, AGENTS)
    try:
        authorize(visit.principal, "route", READS)
    except Refused:
        return False
    return True
