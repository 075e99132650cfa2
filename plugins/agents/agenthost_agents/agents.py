"""Agents: who exists, and the one place where they come into being, change and end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from agenthost import (
    Agent,
    AgentHostError,
    AgentMode,
    AgentResumed,
    AgentRows,
    AgentSpawned,
    AgentState,
    AgentSuspended,
    AgentTerminated,
    AgentUpdated,
    Choice,
    Context,
    Guard,
    Host,
    Keep,
    LifecycleEvent,
    Manifest,
    ManifestCase,
    ManifestTable,
    NotFound,
    Principal,
    SpawnCase,
    Target,
    telling,
)
from pydantic import BaseModel

from .manifests import parse_manifest
from .rights import granted

if TYPE_CHECKING:
    from .elsewhere import Elsewhere
    from .lives import Lives


class KeptAgents:
    """The agents of one daemon, on every path: checks first, writes once, tells after.

    ``exist`` is set from the first agent on, ``restarts`` counts those that were
    started again after a crash. The rows are the truth.

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
        self.restarts = 0
        # A row is written whole: two changes at once would undo each other.
        self._changing = asyncio.Lock()
        self._by_id: dict[str, Agent] = {}
        self._by_name: dict[str, Agent] = {}
        self._elsewhere: Elsewhere | None = None

    @cached_property
    def lives(self) -> Lives:
        """What becomes of those that crash; few do."""
        from .lives import Lives

        return Lives(self._host, self, self._end_turns)

    async def load(self) -> None:
        """Read all agents, oldest first."""
        signals = self._host.store.signals
        if signals is not None and self._elsewhere is None:
            from .elsewhere import Elsewhere

            self._elsewhere = Elsewhere(signals, self._reload)
        for agent in await self._rows.load():
            self._keep(agent)

    async def _reload(self) -> None:
        """Take the rows as others have left them; who is gone there ends here."""
        async with self._changing:
            # One that is made here meanwhile may be none of the rows that are read.
            before = [*self._by_id]
            rows = {agent.id: agent for agent in await self._rows.load()}
            gone = [each for each in before if each not in rows]
            for agent in rows.values():
                here = self._by_id.get(agent.id)
                if here is None or here.state is not AgentState.TERMINATED:
                    self._keep(agent)
            for agent_id in gone:
                self._forget(agent_id)
        for agent_id in gone:
            await self._end_turns(agent_id, "the agent was deleted")

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

    def above(self, agent_id: str) -> Sequence[Agent]:
        """The agent itself, who has spawned it, who has spawned that one, and so on."""
        line = [self.get(agent_id)]
        while parent := self._by_id.get(line[-1].parent):
            line.append(parent)
        return line

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
        self, context: Context, manifest_toml: str
    ) -> tuple[Agent, Sequence[str]]:
        """Bring an agent into being: its row and its session, or nothing at all.

        One that an agent makes in a turn is a child of that agent.

        Returns:
            The agent, and warnings about what in the manifest has no effect.

        Raises:
            InvalidInput: The manifest is malformed, or its provider is unknown.
            Conflict: The name is taken, or the agent has as many children as it may.
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
            case = ManifestCase(context.principal, manifest_toml, manifest.name)
            await asyncio.to_thread(host.guards.check, Guard.MANIFEST, case)
        self._check(context.principal, manifest)
        parent = context.agent.id if context.agent is not None else ""
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
            parent=parent,
        )
        if not parent:
            await self._add(context, agent)
        else:
            from .family import check_room

            # Of several at once none may be one too many, nor come after its parent.
            async with self._changing:
                check_room(self, parent)
                await self._add(context, agent)
        self._tell_others()
        return agent, warnings

    async def change(
        self, context: Context, agent: Agent, changes: Mapping[str, object]
    ) -> Agent:
        """Keep an agent with these keys of its manifest changed; the rest stays.

        A mapping changes these keys of a table, and the rest of the table stays.

        Raises:
            Denied: A guard refuses it.
        """

        def changed(now: Agent) -> Agent:
            manifest = _merged(now.manifest, changes)
            self._check(context.principal, manifest)
            return replace(now, manifest=manifest)

        return await self._save(context, agent.id, changed)

    async def set_model(
        self, context: Context, agent: Agent, provider: str | None, model: str
    ) -> Choice:
        """Give the agent another model, as its provider or another names it.

        Raises:
            InvalidInput: The provider is unknown.
        """
        own, _ = self.model_of(agent)
        choice = await self._host.models.choose(provider, model, own)
        named = choice.target.names
        update = dict(zip(("provider", "model"), named, strict=True))

        def changed(now: Agent) -> Agent:
            manifest = _merged(now.manifest, {"model": update})
            self._check(context.principal, manifest)
            pinned = now.pinned_model and named
            return replace(now, manifest=manifest, pinned_model=pinned)

        await self._save(context, agent.id, changed)
        return choice

    async def set_mode(self, context: Context, agent: Agent, mode: AgentMode) -> Agent:
        """Pin the model the agent has now (STABLE), or let go of it (NORMAL)."""

        def changed(now: Agent) -> Agent:
            pinned = self.model_of(now) if mode is AgentMode.STABLE else None
            return replace(now, mode=mode, pinned_model=pinned)

        return await self._save(context, agent.id, changed)

    async def suspend(self, context: Context, agent: Agent, reason: str) -> Agent:
        """Stop the agent's turns and refuse its messages until it is resumed.

        Raises:
            Conflict: It is being deleted.
        """
        from .lives import suspended

        self.lives.drop(agent.id)
        kept = await self._save(context, agent.id, suspended(reason), AgentSuspended)
        # It takes no messages by now, so none begins behind the last that ends.
        await self._end_turns(agent.id, "the agent was suspended")
        return kept

    async def resume(self, context: Context, agent: Agent) -> Agent:
        """Let a suspended or crashed agent take messages; its crashes are forgotten.

        Raises:
            Conflict: It is being deleted.
        """
        from .lives import resumed

        self.lives.drop(agent.id)
        return await self._save(context, agent.id, resumed, AgentResumed)

    def crash(self, agent_id: str, reason: str) -> None:
        """Take note that an agent's own work has broken; returns at once."""
        self.lives.crash(agent_id, reason)

    async def stand(
        self,
        agent_id: str,
        changed: Callable[[Agent], Agent],
        kind: type[LifecycleEvent],
    ) -> Agent:
        """Change by itself how an agent stands; nobody has asked for it."""
        from .lives import DAEMON

        return await self._save(DAEMON, agent_id, changed, kind)

    async def new_session(self, agent: Agent, into: str, *, keep: bool) -> Agent:
        """Give the agent another session, an empty one unless it is named.

        The old one is deleted, or archived when it is to be kept.

        Raises:
            NotFound: It has another session by now, or has been deleted.
        """
        now, session = self._host.clock.time(), into or str(uuid4())
        async with self._changing:
            fresh = replace(self.get(agent.id), session_id=session, updated_at=now)
            await self._rows.switch_session(fresh, agent.session_id, keep=keep)
            self._keep(fresh)
        self._tell_others()
        return fresh

    async def delete(self, context: Context, agent: Agent) -> None:
        """Stop the agent's turns; remove it, its sessions, its memory, its workspace.

        Its children go first. Its usage stays; that of a child becomes its parent's.
        """
        host = self._host
        self.lives.drop(agent.id)
        async with self._changing:
            # It takes no messages from now on.
            self._keep(replace(self.get(agent.id), state=AgentState.TERMINATED))
        try:
            # It can make no more of them by now.
            for child in [each for each in self.list() if each.parent == agent.id]:
                with suppress(NotFound):
                    await self.delete(context, child)
            # A turn may be at a change of its own agent: it is not waited for inside.
            await self._end_turns(agent.id, "the agent was deleted")
            await self._removed(context, agent)
        except BaseException:
            # It was not deleted after all.
            with suppress(NotFound):
                self._keep(replace(self.get(agent.id), state=agent.state))
            raise
        await asyncio.to_thread(host.files.workspace(agent.id).remove)

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
        known = self._host.toolbox.tools
        return [
            f"capabilities.tools: there is no tool {name!r} now"
            for name in manifest.capabilities.tools
            if name not in known and not set(name) & set("*?[")
        ]

    async def _add(self, context: Context, agent: Agent) -> None:
        with self._telling(AgentSpawned, context, agent) as also:
            await self._rows.add(agent, also)
            self._keep(agent)

    async def _save(
        self,
        context: Context,
        agent_id: str,
        changed: Callable[[Agent], Agent],
        kind: type[LifecycleEvent] = AgentUpdated,
    ) -> Agent:
        """Change an agent as it is now: whoever asked may have seen it before."""
        async with self._changing:
            now = self._host.clock.time()
            agent = replace(changed(self.get(agent_id)), updated_at=now)
            with self._telling(kind, context, agent) as also:
                await self._rows.save(agent, also)
                self._keep(agent)
        self._tell_others()
        return agent

    async def _removed(self, context: Context, agent: Agent) -> None:
        with self._telling(AgentTerminated, context, agent) as also:
            async with self._changing:
                await self._rows.delete(agent.id, also)
                self._forget(agent.id)
        self._tell_others()

    def _forget(self, agent_id: str) -> None:
        agent = self._by_id.pop(agent_id, None)
        # Another may have its name by now.
        if agent is not None and self._by_name.get(agent.name) is agent:
            del self._by_name[agent.name]

    def _tell_others(self) -> None:
        if self._elsewhere is not None:
            self._elsewhere.tell()

    def _keep(self, agent: Agent) -> None:
        self.exist.set()
        self._by_id[agent.id] = agent
        self._by_name[agent.name] = agent

    def _telling(
        self, kind: type[LifecycleEvent], context: Context, agent: Agent
    ) -> AbstractContextManager[Keep | None]:
        events, now = self._host.events, self._host.clock.time()
        return telling(events, kind, agent.id, now, agent.name, **context.caused)


def _merged(manifest: Manifest, changes: Mapping[str, object]) -> Manifest:
    update = dict(changes)
    for key, value in changes.items():
        table = getattr(manifest, key)
        if isinstance(value, Mapping) and isinstance(table, BaseModel):
            update[key] = table.model_copy(update=value)
    return manifest.model_copy(update=update)
