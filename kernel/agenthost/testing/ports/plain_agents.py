"""Agents over their rows, as few rules as the port allows, for tests of their users."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any
from uuid import UUID, uuid4

from agenthost_toml.parse import TomlSyntax, parse_toml
from agenthost_toml.problems import fields_of, problems, unknown_keys
from pydantic import BaseModel, ValidationError

from ...agent import Agent, AgentMode, AgentState
from ...context import Context, Principal
from ...errors import AgentHostError, Conflict, InvalidInput, NotFound
from ...events import (
    AgentResumed,
    AgentSpawned,
    AgentSuspended,
    AgentTerminated,
    AgentUpdated,
    LifecycleEvent,
)
from ...host import Host
from ...manifest_model import Manifest
from ...manifest_table import ManifestTable
from ...plugins.points import Guard, ManifestCase, SpawnCase
from ...ports.events import Keep, telling
from ...ports.models import Choice, Target
from ...ports.records import AgentRows

Change = Callable[[Agent], Agent]
RIGHTS = "network", "memory_read", "memory_write", "agent_message"


class PlainAgents:
    """The agents of one daemon; a manifest's ``profile`` grants nothing here.

    ``AgentsBackend("plain", PlainAgents)`` serves a daemon with it.

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
        self._agents: dict[str, Agent] = {}
        # A row is written whole: two changes at once would undo each other.
        self._changing = asyncio.Lock()
        self.exist = asyncio.Event()
        self.restarts = 0

    async def load(self) -> None:
        """Read all agents, oldest first."""
        for agent in await self._rows.load():
            self._keep(agent)

    def list(self) -> list[Agent]:
        """All agents, oldest first."""
        return [*self._agents.values()]

    def __len__(self) -> int:
        return len(self._agents)

    def get(self, agent_id: str) -> Agent:
        """Find by id, or raise NotFound."""
        if agent_id not in self._agents:
            raise NotFound("agent", agent_id)
        return self._agents[agent_id]

    def above(self, agent_id: str) -> Sequence[Agent]:
        """The agent itself, who has spawned it, and so on."""
        agent = self.get(agent_id)
        return [agent, *(self.above(agent.parent) if agent.parent else ())]

    def find(self, reference: str) -> Agent:
        """Find by id in any form, or by exact name; NotFound when there is none."""
        with suppress(ValueError):
            return self.get(str(UUID(reference)))
        for agent in self._agents.values():
            if agent.name == reference:
                return agent
        raise NotFound("agent", reference)

    async def spawn(
        self, context: Context, manifest_toml: str
    ) -> tuple[Agent, Sequence[str]]:
        """Bring an agent into being: its row and its session, or nothing at all."""
        host, now = self._host, self._host.clock.time()
        tables = [table for _, table in host.registry.offered(ManifestTable)]
        manifest, warnings = _parsed(manifest_toml, tables)
        known = host.toolbox.tools
        for name in manifest.capabilities.tools:
            if name not in known and not set(name) & set("*?["):
                warnings += [f"capabilities.tools: there is no tool {name!r}"]
        wanted = manifest.model
        choice = await host.models.choose(wanted.provider, wanted.model)
        warnings += choice.notices
        case = ManifestCase(context.principal, manifest_toml, manifest.name)
        await asyncio.to_thread(host.guards.check, Guard.MANIFEST, case)
        self._check(context.principal, manifest)
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
            parent=context.agent.id if context.agent else "",
        )
        with self._telling(AgentSpawned, context, agent) as also:
            await self._rows.add(agent, also)
            self._keep(agent)
        return agent, warnings

    async def change(
        self, context: Context, agent: Agent, changes: Mapping[str, object]
    ) -> Agent:
        """Keep an agent with these keys of its manifest changed; the rest stays."""

        def changed(now: Agent) -> Agent:
            manifest = _merged(now.manifest, changes)
            self._check(context.principal, manifest)
            return replace(now, manifest=manifest)

        return await self._save(context, agent, changed)

    async def set_model(
        self, context: Context, agent: Agent, provider: str | None, model: str
    ) -> Choice:
        """Give the agent another model, as its provider or another names it."""
        own, _ = self.model_of(agent)
        choice = await self._host.models.choose(provider, model, own)
        slug, id_ = choice.target.names

        def changed(now: Agent) -> Agent:
            update = {"model": {"provider": slug, "model": id_}}
            manifest = _merged(now.manifest, update)
            self._check(context.principal, manifest)
            pinned = now.pinned_model and (slug, id_)
            return replace(now, manifest=manifest, pinned_model=pinned)

        await self._save(context, agent, changed)
        return choice

    async def set_mode(self, context: Context, agent: Agent, mode: AgentMode) -> Agent:
        """Pin the model the agent has now (STABLE), or let go of it (NORMAL)."""

        def changed(now: Agent) -> Agent:
            pinned = self.model_of(now) if mode is AgentMode.STABLE else None
            return replace(now, mode=mode, pinned_model=pinned)

        return await self._save(context, agent, changed)

    async def suspend(self, context: Context, agent: Agent, reason: str) -> Agent:
        """Stop the agent's turns and refuse its messages until it is resumed."""
        told = _alive(state=AgentState.SUSPENDED, reason=reason)
        kept = await self._save(context, agent, told, AgentSuspended)
        await self._end_turns(agent.id, "the agent was suspended")
        return kept

    async def resume(self, context: Context, agent: Agent) -> Agent:
        """Let it take messages again; its crashes are forgotten."""
        told = _alive(state=AgentState.RUNNING, reason="", crashes=())
        return await self._save(context, agent, told, AgentResumed)

    def crash(self, agent_id: str, reason: str) -> None:
        """Start it again at once: here it is nothing but counted."""
        assert agent_id in self._agents, reason
        self.restarts += 1

    async def new_session(self, agent: Agent, into: str, *, keep: bool) -> Agent:
        """Give the agent another session, an empty one unless it is named."""
        now, session = self._host.clock.time(), into or str(uuid4())
        async with self._changing:
            fresh = replace(self.get(agent.id), session_id=session, updated_at=now)
            await self._rows.switch_session(fresh, agent.session_id, keep=keep)
            return self._keep(fresh)

    async def delete(self, context: Context, agent: Agent) -> None:
        """Stop the agent's turns; remove it and all it has but its usage."""
        for child in [each for each in self.list() if each.parent == agent.id]:
            await self.delete(context, child)
        now = self.get(agent.id)
        # It takes no messages from now on.
        self._keep(replace(now, state=AgentState.TERMINATED))
        try:
            # Not inside of the lock: a turn may be at a change of its own agent.
            await self._end_turns(agent.id, "the agent was deleted")
            with self._telling(AgentTerminated, context, agent) as also:
                async with self._changing:
                    self.get(agent.id)
                    await self._rows.delete(agent.id, also)
                    del self._agents[agent.id]
        except BaseException:
            if agent.id in self._agents:
                self._keep(now)
            raise
        await asyncio.to_thread(self._host.files.workspace(agent.id).remove)

    def grants_of(
        self, manifest: Manifest, tools: Iterable[str] | None = None
    ) -> Mapping[str, tuple[str, ...]]:
        """The rights that a manifest asks for, by action."""
        said = manifest.capabilities
        rights: dict[str, tuple[str, ...]] = {at: getattr(said, at) for at in RIGHTS}
        rights["agent_spawn"] = ("*",) if said.agent_spawn else ()
        rights["tool"] = said.tools
        only, never = manifest.tool_allowlist, manifest.tool_blocklist
        if tools is not None and (only or never):
            rights["tool"] = tuple(
                name
                for name in sorted(tools)
                if _matches(name, said.tools)
                and _matches(name, only or ("*",))
                and not _matches(name, never)
            )
        return rights

    def target_of(self, agent: Agent) -> Target:
        """The model an agent uses now: pinned, its manifest's, or the default."""
        wanted = agent.manifest.model
        named = agent.pinned_model or (wanted.provider, wanted.model)
        return self._host.models.resolve(*named)

    def model_of(self, agent: Agent) -> tuple[str, str]:
        """The provider's slug and model id an agent uses now."""
        try:
            return self.target_of(agent).names
        except AgentHostError:
            return agent.manifest.model.provider or "", agent.manifest.model.model or ""

    def _check(self, principal: Principal, manifest: Manifest) -> None:
        case = SpawnCase(principal, manifest.name, self.grants_of(manifest))
        self._host.guards.check(Guard.SPAWN, case)

    async def _save(
        self,
        context: Context,
        agent: Agent,
        changed: Change,
        kind: type[LifecycleEvent] = AgentUpdated,
    ) -> Agent:
        async with self._changing:
            now = self._host.clock.time()
            kept = replace(changed(self.get(agent.id)), updated_at=now)
            with self._telling(kind, context, kept) as also:
                await self._rows.save(kept, also)
                return self._keep(kept)

    def _keep(self, agent: Agent) -> Agent:
        self._agents[agent.id] = agent
        self.exist.set()
        return agent

    def _telling(
        self, kind: type[LifecycleEvent], context: Context, agent: Agent
    ) -> AbstractContextManager[Keep | None]:
        now, events = self._host.clock.time(), self._host.events
        return telling(events, kind, agent.id, now, agent.name, **context.caused)


def _alive(**standing: Any) -> Change:
    """Change how an agent stands that is not being deleted."""

    def changed(now: Agent) -> Agent:
        if now.state is AgentState.TERMINATED:
            raise Conflict(f"agent {now.name!r} is being deleted")
        return replace(now, **standing)

    return changed


def _parsed(
    text: str, tables: Sequence[ManifestTable[Any]]
) -> tuple[Manifest, list[str]]:
    """Read a manifest, and tell what of it has no effect."""
    try:
        document = parse_toml(text)
    except TomlSyntax as error:
        raise InvalidInput("manifest_toml", str(error)) from error
    try:
        # What runs now is what a restart reads: JSON has no dates, for one.
        said = Manifest.model_validate(document).model_json()
        manifest = Manifest.from_json(said)
    except ValidationError as error:
        first = problems(error, document)[0]
        raise InvalidInput(first.key, first.text) from None
    for table in tables:
        table.of(manifest)
    unread = unknown_keys(_shape(tables), document)
    warnings = [f"{problem.key}: {problem.text}" for problem in unread]
    if manifest.profile:
        warnings.append("profile: has no effect")
    return manifest, warnings


def _shape(tables: Iterable[ManifestTable[Any]]) -> dict[str, Any]:
    """The keys that a manifest may have."""
    shape: dict[str, Any] = dict(fields_of(Manifest))
    shape |= {name: fields_of(own) for name, own in Manifest.own_tables.items()}
    for table in tables:
        level = shape.setdefault(table.name, {}) if table.name else shape
        level.update(fields_of(table.model))
    return shape


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _merged(manifest: Manifest, changes: Mapping[str, object]) -> Manifest:
    update = dict(changes)
    for key, value in changes.items():
        table = getattr(manifest, key)
        if isinstance(value, Mapping) and isinstance(table, BaseModel):
            update[key] = table.model_copy(update=value)
    return manifest.model_copy(update=update)
