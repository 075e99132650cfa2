"""Agents in memory, each written together with its session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....agent import Agent
from ....errors import Conflict, NotFound
from ....ports.events import Keep
from ....ports.sessions import Session
from .rows import Rows


class MemoryAgents:
    """The agents there are."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def load(self) -> Sequence[Agent]:
        """Read all, oldest first."""
        agents = self._rows.agents.values()
        return sorted(agents, key=lambda each: (each.created_at, each.id))

    async def add(self, agent: Agent, also: Keep | None = None) -> None:
        """Add an agent with its session; Conflict when its name is taken."""
        await self._rows.write(self._add, agent, also)

    def _add(self, agent: Agent, also: Keep | None) -> None:
        names = {each.name.lower() for each in self._rows.agents.values()}
        if agent.name.lower() in names:
            raise Conflict(f"an agent named {agent.name!r} exists already")
        self._rows.agents[agent.id] = agent
        own = Session(agent.session_id, agent.id, agent.created_at)
        self._rows.open_session(own)
        self._rows.keep(also)

    async def save(self, agent: Agent, also: Keep | None = None) -> None:
        """Write how the agent stands now."""
        await self._rows.write(self._save, agent, also)

    def _save(self, agent: Agent, also: Keep | None) -> None:
        if agent.id in self._rows.agents:
            self._rows.agents[agent.id] = agent
        self._rows.keep(also)

    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        """Give the agent the session it names; delete or archive its old one."""
        await self._rows.write(self._switch_session, agent, old, keep)

    def _switch_session(self, agent: Agent, old: str, keep: object) -> None:
        rows = self._rows
        now = rows.agents.get(agent.id)
        if now is None or now.session_id != old:
            raise NotFound("session", old)
        rows.agents[agent.id] = replace(
            now, session_id=agent.session_id, updated_at=agent.updated_at
        )
        if keep and rows.session(old).next_seq:
            rows.change_session(old, archived_at=agent.updated_at)
        else:
            rows.erase_sessions([old])
        self._take_up(Session(agent.session_id, agent.id, agent.updated_at))

    def _take_up(self, session: Session) -> None:
        known = self._rows.sessions.get(session.id)
        if known is None:
            self._rows.open_session(session)
            return
        if known.agent_id != session.agent_id or known.ephemeral:
            raise NotFound("session", session.id)
        self._rows.take_out(session.id)

    async def delete(self, agent_id: str, also: Keep | None = None) -> None:
        """Remove an agent with all that is its own; its usage stays."""
        await self._rows.write(self._delete, agent_id, also)

    def _delete(self, agent_id: str, also: Keep | None) -> None:
        rows = self._rows
        sessions = rows.sessions.values()
        rows.erase_sessions([s.id for s in sessions if s.agent_id == agent_id])
        gone = rows.agents.pop(agent_id, None)
        if gone is not None and gone.parent:
            for number, spent in rows.spent.items():
                if spent.agent_id == agent_id:
                    rows.spent[number] = replace(spent, agent_id=gone.parent)
        for at in [each for each in rows.values if each[0] == agent_id]:
            del rows.values[at]
        for at in [each for each in rows.uploads if each[0] == agent_id]:
            del rows.uploads[at]
        rows.keep(also)
