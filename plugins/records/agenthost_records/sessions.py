"""Sessions: the rows of a conversation, read back and written in one piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agenthost import (
    Clock,
    Conflict,
    Entry,
    Message,
    NotFound,
    Role,
    Row,
    Session,
    SessionItem,
    Spent,
    Step,
    Store,
    TurnRecord,
    TurnState,
)
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from .codec import digest_of, dump_parts, load_parts
from .rows import entry, turn_record
from .tables import agents, messages, sessions, tool_calls, turns
from .usage import record
from .warm import WarmSessions

_BY_ID = select(sessions).where(sessions.c.id == bindparam("id"))
SUPERSEDED = 2
"""``partial`` of what a turn was saying when it broke off, once it said it anew."""

_OF_AGENT = (
    select(sessions)
    .join(agents, agents.c.session_id == sessions.c.id)
    .where(agents.c.id == bindparam("agent"))
)
_place = func.coalesce(messages.c.behind, messages.c.seq)
_ENTRIES = (
    select(messages)
    .where(
        messages.c.session_id == bindparam("id"),
        messages.c.seq >= bindparam("first_seq"),
        _place >= bindparam("first_seq"),
        messages.c.partial != SUPERSEDED,
    )
    .order_by(messages.c.seq)
)
_TURNS = select(turns).where(
    turns.c.id.in_(
        select(messages.c.turn_id).where(messages.c.session_id == bindparam("id"))
    )
)
_LIST = (
    select(
        sessions.c.id,
        sessions.c.agent_id,
        agents.c.name.label("agent_name"),
        sessions.c.message_count,
        sessions.c.created_at,
    )
    .join(agents, agents.c.id == sessions.c.agent_id)
    .where(sessions.c.ephemeral == 0)
    .order_by(sessions.c.created_at)
)

_APPEND = (
    update(sessions)
    .where(sessions.c.id == bindparam("session"))
    .values(
        message_count=sessions.c.message_count + bindparam("visible"),
        next_seq=bindparam("next"),
        updated_at=bindparam("now"),
    )
)
_INSERT = insert(messages)
_OPEN = insert(sessions)


def open_session(
    connection: Connection, session_id: str, agent_id: str, now: float
) -> None:
    """Write a fresh session."""
    row = {
        "id": session_id,
        "agent_id": agent_id,
        "ephemeral": 0,
        "thinking": 0,
        "message_count": 0,
        "first_seq": 0,
        "next_seq": 0,
        "created_at": now,
        "updated_at": now,
    }
    connection.execute(_OPEN, row)


def append(connection: Connection, steps: Sequence[Step]) -> None:
    """Add the messages of a session's next steps, and count the visible ones.

    Raises:
        NotFound: The session has been deleted.
    """
    rows = [_row(step, step.message) for step in steps if step.message is not None]
    if not rows:
        return
    last = rows[-1]
    changed = connection.execute(
        _APPEND,
        {
            "session": last["session_id"],
            "visible": sum(row["role"] != Role.TOOL for row in rows),
            "next": last["seq"] + 1,
            "now": last["created_at"],
        },
    )
    if not changed.rowcount:
        raise NotFound("session", last["session_id"])
    connection.execute(_INSERT, rows)


def _row(step: Step, message: Message) -> dict[str, Any]:
    parts, closed = dump_parts(message), step.closed
    return {
        "session_id": step.session_id,
        "seq": step.seq,
        "turn_id": step.turn_id,
        "role": message.role.value,
        "parts": parts,
        "digest": digest_of(parts),
        "partial": int(closed is not None and closed.state is not TurnState.DONE),
        "created_at": step.at,
        "behind": step.behind,
    }


def supersede(connection: Connection, step: Step) -> None:
    """Take what a turn was saying when it broke off out of its session."""
    gone = connection.execute(
        update(messages)
        .where(
            messages.c.session_id == step.session_id,
            messages.c.turn_id == step.turn_id,
            messages.c.partial == 1,
        )
        .values(partial=SUPERSEDED)
        .returning(messages.c.role)
    )
    # Stand-ins for the results of tools were never counted.
    if counted := sum(role != Role.TOOL for role in gone.scalars()):
        connection.execute(
            update(sessions)
            .where(sessions.c.id == step.session_id)
            .values(message_count=sessions.c.message_count - counted)
        )


def erase(connection: Connection, session_id: str) -> None:
    """Delete a session, its messages and its journal."""
    mine = messages.c.session_id == session_id
    spoken = select(messages.c.turn_id).where(mine)
    for turn in (tool_calls.c.turn_id, turns.c.id):
        connection.execute(delete(turn.table).where(turn.in_(spoken)))
    connection.execute(delete(messages).where(mine))
    connection.execute(delete(sessions).where(sessions.c.id == session_id))


class SessionTable:
    """Reads of sessions, and the writes that concern one as a whole.

    ``take``, ``give_back`` and ``forget`` are those of what is kept in memory.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        warm = WarmSessions()
        self.take = warm.take
        self.give_back = warm.give_back
        self.forget = warm.forget

    async def get(self, session_id: str) -> Session:
        """Read a session's row.

        Raises:
            NotFound: There is none.
        """
        row = await self._store.first(_BY_ID, {"id": session_id})
        if row is None:
            raise NotFound("session", session_id)
        return _session(row)

    async def of_agent(self, agent_id: str) -> Session:
        """Read the row of an agent's own session, whichever it is now.

        Raises:
            NotFound: There is no such agent.
        """
        row = await self._store.first(_OF_AGENT, {"agent": agent_id})
        if row is None:
            raise NotFound("agent", agent_id)
        return _session(row)

    async def entries(self, session: Session) -> list[Entry]:
        """Read what is not summarised, as it stands: each turn in its own place."""
        rows = await self._store.read(
            _ENTRIES, {"id": session.id, "first_seq": session.first_seq}
        )
        # Rows come in order of writing; few turns, if any, went on in their place.
        return sorted(map(entry, rows), key=lambda each: (each.place, each.seq))

    async def history(self, session: Session) -> list[Message]:
        """Read the conversation as a model sees it, the summary first."""
        said = [entry.message for entry in await self.entries(session)]
        return [session.summary, *said] if session.summary else said

    async def turns(self, session_id: str) -> Mapping[str, TurnRecord]:
        """Read how the turns that spoke in a session stand, by id."""
        rows = await self._store.read(_TURNS, {"id": session_id})
        return {row["id"]: turn_record(row) for row in rows}

    async def erase(self, session_id: str) -> None:
        """Delete a session that is no agent's own, with its messages and turns.

        Raises:
            Conflict: It is an agent's own.
        """
        await self._store.write(partial(_erase_unowned, session_id=session_id))

    async def list(self) -> list[SessionItem]:
        """All sessions that agents own, oldest first."""
        return [
            SessionItem(
                row["id"],
                row["agent_id"],
                row["agent_name"],
                row["message_count"],
                row["created_at"],
            )
            for row in await self._store.read(_LIST)
        ]

    async def set_thinking(self, session_id: str, *, on: bool) -> None:
        """Switch extended thinking for the session."""
        switched = (
            update(sessions).where(sessions.c.id == session_id).values(thinking=int(on))
        )
        await self._store.write(
            lambda connection: connection.execute(switched).rowcount
        )
        self.forget(session_id)

    async def compact(
        self, session: Session, first_seq: int, summary: Message, spent: Spent
    ) -> None:
        """Let the summary stand for what is before ``first_seq``; nothing is lost.

        Raises:
            Conflict: The session has been compacted or deleted since it was read.
        """
        row: dict[str, str | float] = {
            "summary": dump_parts(summary),
            "first_seq": first_seq,
            "updated_at": self._clock.time(),
        }
        done = await self._store.write(
            partial(_compact, session=session, row=row, spent=spent)
        )
        if not done:
            raise Conflict("the session was changed while it was summarised")


def _session(row: Row) -> Session:
    summary = row["summary"]
    return Session(
        id=row["id"],
        agent_id=row["agent_id"],
        thinking=bool(row["thinking"]),
        first_seq=row["first_seq"],
        next_seq=row["next_seq"],
        summary=Message(Role.USER, load_parts(summary)) if summary else None,
        created_at=row["created_at"],
    )


def _erase_unowned(connection: Connection, session_id: str) -> None:
    owned = select(agents.c.id).where(agents.c.session_id == session_id)
    if connection.execute(owned).first() is not None:
        raise Conflict("the session is an agent's own; reset it instead")
    erase(connection, session_id)


def _compact(
    connection: Connection, session: Session, row: dict[str, str | float], spent: Spent
) -> bool:
    # The call was paid for, whatever became of the session meanwhile.
    record(connection, spent)
    kept = connection.execute(
        select(func.count()).where(
            messages.c.session_id == session.id,
            _place >= row["first_seq"],
            messages.c.seq >= row["first_seq"],
            messages.c.partial != SUPERSEDED,
            messages.c.role != Role.TOOL.value,
        )
    ).scalar_one()
    changed = connection.execute(
        update(sessions)
        .where(sessions.c.id == session.id, sessions.c.first_seq == session.first_seq)
        .values(message_count=kept + 1, **row)
    )
    return bool(changed.rowcount)
