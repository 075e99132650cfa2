"""Agents: who exists, and the one place where they come into being, change and end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID, uuid4

from agenthost import (
    Agent,
    AgentHostError,
    AgentMode,
    AgentRows,
    AgentSpawned,
    AgentState,
    AgentTerminated,
    AgentUpdated,
    Choice,
    Guard,
    Host,
    LifecycleEvent,
    Manifest,
    ManifestCase,
    ManifestTable,
    NotFound,
    Principal,
    SpawnCase,
    Target,
    ToolSpec,
)

from .manifests import parse_manifest
from .rights import granted


class KeptAgents:
    """The agents of one daemon, on every path: checks first, writes once, tells after.

    ``exist`` is set from the first agent on. The rows are the truth.

    Args:
        host: The daemon they live in.
        rows: Where they are kept.
        end_turns: Stops all that runs or waits for an agent; told why.
    """

    def __init__(
        self,
        host: Host,
        rows: AgentRows,
        end_turns: Callable[[str, str], Awaitable[object]],
    ) -> None:
        self._host = host
        self._rows = rows
        self._end_turns = end_turns
        self.exist = asyncio.Event()
        self._by_id: dict[str, Agent] = {}
        self._by_name: dict[str, Agent] = {}

    async def load(self) -> None:
        """Read all agents, oldest first."""
        for agent in await self._rows.load():
            self._keep(agent)

    def list(self) -> list[Agent]:
        """All agents, oldest first."""
        return list(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, agent_id: str) -> Agent:
        """Find by id.

        Raises:
            NotFound: There is none.
        """
        agent = self._by_id.get(agent_id)
        if agent is None:
            raise NotFound("agent", agent_id)
        return agent

    def find(self, reference: str) -> Agent:
        """Find by id in any form, or by exact name.

        Raises:
            NotFound: There is none.
        """
        agent = self._by_name.get(reference)
        # An id goes first, so that no agent can take another's by its name.
        with suppress(ValueError):
            agent = self._by_id.get(str(UUID(reference))) or agent
        if agent is None:
            raise NotFound("agent", reference)
        return agent

    async def spawn(
        self, principal: Principal, manifest_toml: str
    ) -> tuple[Agent, Sequence[str]]:
        """Bring an agent into being: its row and its session, or nothing at all.

        Returns:
            The agent, and warnings about what in the manifest has no effect.

        Raises:
            InvalidInput: The manifest is malformed, or its provider is unknown.
            Conflict: The name is taken.
            Denied: A guard refuses it, or it asks for more than its creator has.
        """
        host = self._host
        tables = [table for _, table in host.registry.offered(ManifestTable)]
        parsed = parse_manifest(manifest_toml, tables)
        manifest = parsed.manifest
        warnings = [*parsed.warnings, *self._unknown_tools(manifest)]
        named = manifest.model
        choice = await host.models.choose(named.provider, named.model)
        warnings += [f"model: {notice}" for notice in choice.notices]
        try:
            host.models.check(choice.target)
        except AgentHostError as error:
            warnings.append(f"model: {error.message}")
        if host.guards.filled(Guard.MANIFEST):
            case = ManifestCase(principal, manifest_toml, manifest.name)
            await asyncio.to_thread(host.guards.check, Guard.MANIFEST, case)
        self._check(principal, manifest)
        now = host.clock.time()
        agent = Agent(
            id=str(uuid4()),
            name=manifest.name,
            state=AgentState.RUNNING,
            mode=AgentMode.NORMAL,
            session_id=str(uuid4()),
            manifest=manifest,
            pinned_model=None,
            created_at=now,
            updated_at=now,
        )
        await self._rows.add(agent)
        self._keep(agent)
        self._tell(AgentSpawned, agent)
        return agent, warnings

    async def change(
        self, principal: Principal, agent: Agent, changes: Mapping[str, object]
    ) -> Agent:
        """Keep an agent with these keys of its manifest changed; the rest stays.

        Raises:
            Denied: A guard refuses it.
        """
        manifest = agent.manifest.model_copy(update=changes)
        self._check(principal, manifest)
        changed = await self._save(replace(agent, manifest=manifest))
        self._tell(AgentUpdated, changed)
        return changed

    async def set_model(
        self, principal: Principal, agent: Agent, provider: str | None, model: str
    ) -> Choice:
        """Give the agent another model, as its provider or another names it.

        Raises:
            InvalidInput: The provider is unknown.
        """
        own, _ = self.model_of(agent)
        choice = await self._host.models.choose(provider, model, own)
        # Somebody may have changed or deleted the agent while local servers were asked.
        agent = self.get(agent.id)
        named = choice.target.names
        update = dict(zip(("provider", "model"), named, strict=True))
        changes = {"model": agent.manifest.model.model_copy(update=update)}
        if agent.pinned_model is not None:
            agent = replace(agent, pinned_model=named)
        await self.change(principal, agent, changes)
        return choice

    async def set_mode(self, agent: Agent, mode: AgentMode) -> Agent:
        """Pin the model the agent has now (STABLE), or let go of it (NORMAL)."""
        pinned = self.model_of(agent) if mode is AgentMode.STABLE else None
        return await self._save(replace(agent, mode=mode, pinned_model=pinned))

    async def new_session(self, agent: Agent) -> Agent:
        """Give the agent an empty session and delete its old one.

        Raises:
            NotFound: It has another session by now, or has been deleted.
        """
        now = self._host.clock.time()
        fresh = replace(agent, session_id=str(uuid4()), updated_at=now)
        await self._rows.switch_session(fresh, agent.session_id)
        # What else was changed meanwhile stays changed.
        fresh = replace(self.get(agent.id), session_id=fresh.session_id)
        self._keep(fresh)
        return fresh

    async def delete(self, agent: Agent) -> None:
        """Stop the agent's turns; remove it, its sessions, its memory, its workspace.

        Its usage stays.
        """
        host = self._host
        # It takes no messages from now on.
        self._keep(replace(self.get(agent.id), state=AgentState.TERMINATED))
        try:
            await self._end_turns(agent.id, "the agent was deleted")
            await self._rows.delete(agent.id)
        except BaseException:
            # It was not deleted after all.
            with suppress(NotFound):
                self._keep(replace(self.get(agent.id), state=agent.state))
            raise
        self._by_id.pop(agent.id, None)
        self._by_name.pop(agent.name, None)
        await asyncio.to_thread(host.files.workspace(agent.id).remove)
        self._tell(AgentTerminated, agent)

    def target_of(self, agent: Agent) -> Target:
        """The model an agent uses now: pinned, its manifest's, or the default."""
        choice = agent.manifest.model
        named = agent.pinned_model or (choice.provider, choice.model)
        return self._host.models.resolve(*named)

    def model_of(self, agent: Agent) -> tuple[str, str]:
        """The provider's slug and model id an agent uses now.

        A provider that has gone is shown as the manifest names it.
        """
        try:
            return self.target_of(agent).names
        except AgentHostError:
            choice = agent.manifest.model
            return choice.provider or "", choice.model or ""

    def grants_of(
        self, manifest: Manifest, tools: Iterable[str] | None = None
    ) -> Mapping[str, tuple[str, ...]]:
        """The rights that a manifest asks for, by action."""
        return granted(manifest, tools)

    def _check(self, principal: Principal, manifest: Manifest) -> None:
        case = SpawnCase(principal, manifest.name, granted(manifest))
        self._host.guards.check(Guard.SPAWN, case)

    def _unknown_tools(self, manifest: Manifest) -> Sequence[str]:
        offered = self._host.registry.offered(ToolSpec)
        known = {name for _, tool in offered for name in tool.names}
        return [
            f"capabilities.tools: there is no tool {name!r} now"
            for name in manifest.capabilities.tools
            if name not in known and not set(name) & set("*?[")
        ]

    async def _save(self, agent: Agent) -> Agent:
        agent = replace(agent, updated_at=self._host.clock.time())
        await self._rows.save(agent)
        self._keep(agent)
        return agent

    def _keep(self, agent: Agent) -> None:
        self.exist.set()
        self._by_id[agent.id] = agent
        self._by_name[agent.name] = agent

    def _tell(self, kind: type[LifecycleEvent], agent: Agent) -> None:
        events, now = self._host.events, self._host.clock.time()
        if events.wants(kind):
            events.publish(kind(agent.id, now, agent.name))
