"""Agents: who exists, in which state, with which manifest; the rows are the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID, uuid4

from .clock import Clock
from .context import Principal
from .errors import Conflict, NotFound
from .manifest import Manifest
from .plugins.guards import Guard, Guards, SpawnCase
from .record_port import AgentRows


class AgentState(StrEnum):
    """Where an agent stands."""

    CREATED = "Created"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    CRASHED = "Crashed"
    TERMINATED = "Terminated"


class AgentMode(StrEnum):
    """STABLE pins the model the agent has at that moment."""

    NORMAL = "Normal"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as it stands; a change makes a new one."""

    id: str
    name: str
    state: AgentState
    mode: AgentMode
    session_id: str
    manifest: Manifest
    pinned_model: tuple[str, str] | None
    created_at: float
    updated_at: float

    def check_accepts_messages(self) -> None:
        """Refuse a message to an agent that is not there to answer.

        Raises:
            Conflict: It is suspended or terminated.
        """
        if self.state in {AgentState.SUSPENDED, AgentState.TERMINATED}:
            raise Conflict(f"agent {self.name!r} is {self.state}; it takes no messages")


class Agents:
    """The agents of one daemon; ``exist`` is set from the first one on."""

    def __init__(self, rows: AgentRows, clock: Clock, guards: Guards) -> None:
        self._rows = rows
        self._clock = clock
        self._guards = guards
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

    async def create(self, principal: Principal, manifest: Manifest) -> Agent:
        """Bring an agent into being: its row and its session, or nothing at all.

        Raises:
            Conflict: The name is taken.
            Denied: A guard refuses it, or it asks for more than its creator has.
        """
        case = SpawnCase(principal, manifest.name, manifest.grants())
        self._guards.check(Guard.SPAWN, case)
        now = self._clock.time()
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
        return agent

    async def change(self, principal: Principal, agent: Agent) -> Agent:
        """Keep an agent with another manifest; its id and name are what they were.

        Raises:
            Denied: A guard refuses it.
        """
        case = SpawnCase(principal, agent.name, agent.manifest.grants())
        self._guards.check(Guard.SPAWN, case)
        return await self._save(agent)

    async def set_mode(
        self, agent: Agent, mode: AgentMode, current_model: tuple[str, str]
    ) -> Agent:
        """Pin the model the agent has now (STABLE), or let go of it (NORMAL)."""
        pinned = current_model if mode is AgentMode.STABLE else None
        return await self._save(replace(agent, mode=mode, pinned_model=pinned))

    async def new_session(self, agent: Agent) -> Agent:
        """Give the agent an empty session and delete its old one.

        Raises:
            NotFound: It has another session by now, or has been deleted.
        """
        fresh = replace(agent, session_id=str(uuid4()), updated_at=self._clock.time())
        await self._rows.switch_session(fresh, agent.session_id)
        # What else was changed meanwhile stays changed.
        fresh = replace(self.get(agent.id), session_id=fresh.session_id)
        self._keep(fresh)
        return fresh

    @contextmanager
    def retired(self, agent: Agent) -> Iterator[None]:
        """Let the agent take no messages while it is deleted."""
        self._keep(replace(self.get(agent.id), state=AgentState.TERMINATED))
        try:
            yield
        except BaseException:
            # It was not deleted after all.
            with suppress(NotFound):
                self._keep(replace(self.get(agent.id), state=agent.state))
            raise

    async def delete(self, agent: Agent) -> None:
        """Remove the agent with its sessions and its memory; its usage stays."""
        await self._rows.delete(agent.id)
        self._by_id.pop(agent.id, None)
        self._by_name.pop(agent.name, None)

    async def _save(self, agent: Agent) -> Agent:
        agent = replace(agent, updated_at=self._clock.time())
        await self._rows.save(agent)
        self._keep(agent)
        return agent

    def _keep(self, agent: Agent) -> None:
        self.exist.set()
        self._by_id[agent.id] = agent
        self._by_name[agent.name] = agent
