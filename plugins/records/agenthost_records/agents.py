"""Agents as rows, each written together with its session."""

from __future__ import annotations

from functools import partial

from agenthost import (
    Agent,
    Conflict,
    Keep,
    NotFound,
    Session,
    Store,
)
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from .agent_rows import row_of
from .archive import put_away, take_up
from .memory import erase_namespace
from .session_rows import erase, erase_of_agent, open_session
from .tables import agents as table
from .tables import usage
from .uploads import erase_uploads

_ADD = insert(table)
_PARENT = select(table.c.parent).where(table.c.id == bindparam("id"))
_SAME_NAME = select(table.c.id).where(func.lower(table.c.name) == bindparam("name"))


class AgentTable:
    """What is written of the agents of one daemon."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, agent: Agent, also: Keep | None = None) -> None:
        """Add an agent with its session.

        Raises:
            Conflict: Its name is taken.
        """
        await self._store.write(partial(_add, agent=agent, also=also))

    async def save(self, agent: Agent, also: Keep | None = None) -> None:
        """Write how the agent stands now."""
        await self._store.write(partial(_save, agent=agent, also=also))

    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        """Give the agent the session it names; delete or archive its old one.

        Raises:
            NotFound: ``old`` is not its session now, it has been deleted, or the
                session is another's.
            Conflict: The session's key has another session by now.
        """
        write = partial(_switch_session, agent=agent, old=old, keep=keep)
        await self._store.write(write)

    async def delete(self, agent_id: str, also: Keep | None = None) -> None:
        """Remove an agent with all that is its own.

        Its usage stays; that of one that an agent has spawned is that agent's now.
        """
        await self._store.write(partial(_delete, agent_id=agent_id, also=also))


def _add(connection: Connection, agent: Agent, also: Keep | None) -> None:
    # People take two names that differ in case alone for one.
    if connection.execute(_SAME_NAME, {"name": agent.name.lower()}).first():
        raise Conflict(f"an agent named {agent.name!r} exists already")
    connection.execute(_ADD, row_of(agent))
    own = Session(agent.session_id, agent.id, agent.created_at)
    open_session(connection, own)
    if also is not None:
        also(connection)


def _save(connection: Connection, agent: Agent, also: Keep | None) -> None:
    row = row_of(agent)
    row.pop("id")
    connection.execute(update(table).where(table.c.id == agent.id).values(**row))
    if also is not None:
        also(connection)


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


def _delete(connection: Connection, agent_id: str, also: Keep | None) -> None:
    # Whose budget it was: else one could spend it anew, with another child.
    if parent := connection.scalar(_PARENT, {"id": agent_id}):
        spent = update(usage).where(usage.c.agent_id == agent_id)
        connection.execute(spent.values(agent_id=parent))
    erase_of_agent(connection, agent_id)
    erase_namespace(connection, agent_id)
    erase_uploads(connection, agent_id)
    connection.execute(delete(table).where(table.c.id == agent_id))
    if also is not None:
        also(connection)
