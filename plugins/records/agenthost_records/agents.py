"""Agents as rows, each written together with its session."""

from __future__ import annotations

import json
from functools import partial

from agenthost import (
    Agent,
    AgentMode,
    AgentState,
    Conflict,
    Manifest,
    NotFound,
    Row,
    Session,
    Store,
)
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from .archive import put_away, take_up
from .codec import dump_json
from .memory import erase_namespace
from .session_rows import erase, erase_of_agent, open_session
from .tables import agents as table

_ALL = select(table).order_by(table.c.created_at, table.c.id)
_ADD = insert(table)
_SAME_NAME = select(table.c.id).where(func.lower(table.c.name) == bindparam("name"))


class AgentTable:
    """The agents of one daemon."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self) -> list[Agent]:
        """Read all, oldest first."""
        return [_agent(row) for row in await self._store.read(_ALL)]

    async def add(self, agent: Agent) -> None:
        """Add an agent with its session.

        Raises:
            Conflict: Its name is taken.
        """
        await self._store.write(partial(_add, agent=agent))

    async def save(self, agent: Agent) -> None:
        """Write how the agent stands now."""
        row = _row(agent)
        row.pop("id")
        statement = update(table).where(table.c.id == agent.id).values(**row)
        await self._store.write(
            lambda connection: connection.execute(statement).rowcount
        )

    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        """Give the agent the session it names; delete or archive its old one.

        Raises:
            NotFound: ``old`` is not its session now, it has been deleted, or the
                session is another's.
            Conflict: The session's key has another session by now.
        """
        write = partial(_switch_session, agent=agent, old=old, keep=keep)
        await self._store.write(write)

    async def delete(self, agent_id: str) -> None:
        """Remove an agent with its sessions and its memory; its usage stays."""
        await self._store.write(partial(_delete, agent_id=agent_id))


def _row(agent: Agent) -> dict[str, object]:
    return {
        "id": agent.id,
        "name": agent.name,
        "state": agent.state.value,
        "mode": agent.mode.value,
        "session_id": agent.session_id,
        "manifest": agent.manifest.model_json(),
        "pinned_model": dump_json(agent.pinned_model) if agent.pinned_model else None,
        "created_at": agent.created_at,
        "updated_at": agent.updated_at,
    }


def _agent(row: Row) -> Agent:
    pinned = json.loads(row["pinned_model"]) if row["pinned_model"] else None
    return Agent(
        id=row["id"],
        name=row["name"],
        state=AgentState(row["state"]),
        mode=AgentMode(row["mode"]),
        session_id=row["session_id"],
        manifest=Manifest.from_json(row["manifest"]),
        pinned_model=(pinned[0], pinned[1]) if pinned else None,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _add(connection: Connection, agent: Agent) -> None:
    # People take two names that differ in case alone for one.
    if connection.execute(_SAME_NAME, {"name": agent.name.lower()}).first():
        raise Conflict(f"an agent named {agent.name!r} exists already")
    connection.execute(_ADD, _row(agent))
    own = Session(agent.session_id, agent.id, agent.created_at)
    open_session(connection, own)


def _switch_session(
    connection: Connection, agent: Agent, old: str, *, keep: bool
) -> None:
    changed = connection.execute(
        update(table)
        .where(table.c.id == agent.id, table.c.session_id == old)
        .values(session_id=agent.session_id, updated_at=agent.updated_at)
    )
    if not changed.rowcount:
        raise NotFound("session", old)
    if keep:
        put_away(connection, old, agent.updated_at)
    else:
        erase(connection, old)
    take_up(connection, Session(agent.session_id, agent.id, agent.updated_at))


def _delete(connection: Connection, agent_id: str) -> None:
    erase_of_agent(connection, agent_id)
    erase_namespace(connection, agent_id)
    connection.execute(delete(table).where(table.c.id == agent_id))
