"""The one place where agents come into being, change and end, on every path."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .agents import Agent
from .errors import AgentHostError
from .manifest import Manifest, parse_manifest
from .model_port import Choice, Target
from .plugins.guards import Guard, ManifestCase
from .plugins.specs import Event

if TYPE_CHECKING:
    from .context import Principal
    from .daemon import Daemon


class Supervisor:
    """Spawns, changes and deletes agents; checks first, writes once, tells after."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def spawn(
        self, principal: Principal, manifest_toml: str
    ) -> tuple[Agent, list[str]]:
        """Create an agent from its manifest.

        Returns:
            The agent, and warnings about what in the manifest has no effect.

        Raises:
            InvalidInput: The manifest is malformed, or its provider is unknown.
            Conflict: The name is taken.
            Denied: A guard refuses it.
        """
        daemon = self._daemon
        parsed = parse_manifest(manifest_toml)
        manifest = parsed.manifest
        warnings = [*parsed.warnings, *self._unknown_tools(manifest)]
        named = manifest.model
        choice = await daemon.models.choose(named.provider, named.model)
        warnings += [f"model: {notice}" for notice in choice.notices]
        try:
            daemon.models.check(choice.target)
        except AgentHostError as error:
            warnings.append(f"model: {error.message}")
        if daemon.guards.filled(Guard.MANIFEST):
            case = ManifestCase(principal, manifest_toml, manifest.name)
            await asyncio.to_thread(daemon.guards.check, Guard.MANIFEST, case)
        agent = await daemon.agents.create(principal, manifest)
        self._tell("agent_spawned", agent)
        return agent, warnings

    async def update(
        self,
        principal: Principal,
        agent: Agent,
        *,
        description: str | None = None,
        system_prompt: str | None = None,
        tags: list[str] | None = None,
    ) -> Agent:
        """Change what is given; the rest stays."""
        changes: dict[str, object] = {}
        if description is not None:
            changes["description"] = description
        if tags is not None:
            changes["tags"] = tuple(tags)
        if system_prompt is not None:
            model = {"system_prompt": system_prompt}
            changes["model"] = agent.manifest.model.model_copy(update=model)
        return await self._change(principal, agent, changes)

    async def set_model(
        self, principal: Principal, agent: Agent, provider: str | None, model: str
    ) -> Choice:
        """Give the agent another model, as its provider or another names it.

        Raises:
            InvalidInput: The provider is unknown.
        """
        own, _ = self.model_of(agent)
        choice = await self._daemon.models.choose(provider, model, own)
        # Somebody may have changed or deleted the agent while local servers were asked.
        agent = self._daemon.agents.get(agent.id)
        named = choice.target.names
        update = dict(zip(("provider", "model"), named, strict=True))
        changes = {"model": agent.manifest.model.model_copy(update=update)}
        if agent.pinned_model is not None:
            agent = replace(agent, pinned_model=named)
        await self._change(principal, agent, changes)
        return choice

    async def reset_session(self, agent: Agent) -> Agent:
        """Stop what runs or waits and give the agent an empty session."""
        return await self._daemon.turns.reset(agent)

    async def delete(self, agent: Agent) -> None:
        """Stop the agent's turns and remove it, its memory and its workspace."""
        daemon = self._daemon
        with daemon.agents.retired(agent):
            await daemon.turns.stop_all(agent.id, "the agent was deleted")
            await daemon.agents.delete(agent)
        daemon.toolbox.forget(agent.id)
        await asyncio.to_thread(daemon.files.workspace(agent.id).remove)
        self._tell("agent_terminated", agent)

    def target_of(self, agent: Agent) -> Target:
        """The model an agent uses now: pinned, its manifest's, or the default."""
        choice = agent.manifest.model
        named = agent.pinned_model or (choice.provider, choice.model)
        return self._daemon.models.resolve(*named)

    def model_of(self, agent: Agent) -> tuple[str, str]:
        """The provider's slug and model id an agent uses now.

        A provider that has gone is shown as the manifest names it.
        """
        try:
            return self.target_of(agent).names
        except AgentHostError:
            choice = agent.manifest.model
            return choice.provider or "", choice.model or ""

    async def _change(
        self, principal: Principal, agent: Agent, changes: Mapping[str, object]
    ) -> Agent:
        manifest = agent.manifest.model_copy(update=changes)
        changed = replace(agent, manifest=manifest)
        changed = await self._daemon.agents.change(principal, changed)
        self._tell("agent_updated", changed)
        return changed

    def _unknown_tools(self, manifest: Manifest) -> list[str]:
        tools = self._daemon.registry.tools.values()
        known = {name for tool in tools for name in tool.names}
        return [
            f"capabilities.tools: there is no tool {name!r} now"
            for name in manifest.capabilities.tools
            if name not in known and not set(name) & set("*?[")
        ]

    def _tell(self, kind: str, agent: Agent) -> None:
        now = self._daemon.clock.time()
        self._daemon.events.publish(Event(kind, agent.id, now, {"name": agent.name}))
