"""Sessions: the rows of a conversation, read back and written in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from .chat import Message, Role
from .clock import Clock
from .codec import digest_of, dump_parts, load_message, load_parts
from .errors import NotFound
from .ports import Store
from .tables import agents, messages, sessions, tool_calls, turns

_BY_ID = select(sessions).where(sessions.c.id == bindparam("id"))
_HISTORY = (
    select(messages.c.seq, messages.c.role, messages.c.parts, messages.c.digest)
    .where(
        messages.c.session_id == bindparam("id"),
        messages.c.seq >= bindparam("first_seq"),
    )
    .order_by(messages.c.seq)
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


@dataclass(frozen=True, slots=True)
class Session:
    """A session's own row.

    ``next_seq`` numbers the next message; messages before ``first_seq`` are
    represented by ``summary``.
    """

    id: str
    agent_id: str
    thinking: bool
    first_seq: int
    next_seq: int
    summary: Message | None
    created_at: float


@dataclass(frozen=True, slots=True)
class SessionItem:
    """A session in a list."""

    id: str
    agent_id: str
    agent_name: str
    message_count: int
    created_at: float


def new_row(
    session_id: str, agent_id: str, now: float, *, ephemeral: bool
) -> dict[str, object]:
    """The row of a fresh session."""
    return {
        "id": session_id,
        "agent_id": agent_id,
        "ephemeral": int(ephemeral),
        "thinking": 0,
        "message_count": 0,
        "first_seq": 0,
        "next_seq": 0,
        "created_at": now,
        "updated_at": now,
    }


@dataclass(frozen=True, slots=True)
class Entry:
    """A message on its way into the store."""

    message: Message
    turn_id: str | None = None
    partial: bool = False


def append(
    connection: Connection,
    session_id: str,
    first_seq: int,
    entries: Sequence[Entry],
    now: float,
) -> None:
    """Add messages from ``first_seq`` on and count the visible ones.

    Two writers of one session collide on the sequence number, so neither overwrites
    the other.

    Raises:
        NotFound: The session has been deleted.
    """
    visible = sum(entry.message.role is not Role.TOOL for entry in entries)
    changed = connection.execute(
        _APPEND,
        {
            "session": session_id,
            "visible": visible,
            "next": first_seq + len(entries),
            "now": now,
        },
    )
    if not changed.rowcount:
        raise NotFound("session", session_id)
    connection.execute(
        _INSERT,
        [
            _message_row(session_id, first_seq + offset, entry, now)
            for offset, entry in enumerate(entries)
        ],
    )


def _message_row(
    session_id: str, seq: int, entry: Entry, now: float
) -> dict[str, object]:
    parts = dump_parts(entry.message)
    return {
        "session_id": session_id,
        "seq": seq,
        "turn_id": entry.turn_id,
        "role": entry.message.role.value,
        "parts": parts,
        "digest": digest_of(parts),
        "partial": int(entry.partial),
        "created_at": now,
    }


def erase(connection: Connection, session_id: str) -> None:
    """Delete a session, its messages and its journal."""
    for table in (messages, tool_calls, turns):
        connection.execute(delete(table).where(table.c.session_id == session_id))
    connection.execute(delete(sessions).where(sessions.c.id == session_id))


def compact(
    connection: Connection,
    session_id: str,
    first_seq: int,
    summary: Message,
    now: float,
) -> None:
    """Let the summary stand for everything before ``first_seq``; nothing is deleted."""
    kept = connection.execute(
        select(func.count()).where(
            messages.c.session_id == session_id,
            messages.c.seq >= first_seq,
            messages.c.role != Role.TOOL.value,
        )
    ).scalar_one()
    connection.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(
            summary=dump_parts(summary),
            first_seq=first_seq,
            message_count=kept + 1,
            updated_at=now,
        )
    )


class Sessions:
    """Reads of sessions, and the writes that concern one as a whole."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def get(self, session_id: str) -> Session:
        """Read a session's row.

        Raises:
            NotFound: There is none.
        """
        row = await self._store.first(_BY_ID, {"id": session_id})
        if row is None:
            raise NotFound("session", session_id)
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

    async def numbered(self, session: Session) -> list[tuple[int, Message]]:
        """Read the messages after the summary with their sequence numbers."""
        rows = await self._store.read(
            _HISTORY, {"id": session.id, "first_seq": session.first_seq}
        )
        return [
            (row["seq"], load_message(row["role"], row["parts"], row["digest"]))
            for row in rows
        ]

    async def history(self, session: Session) -> list[Message]:
        """Read the conversation as a model sees it, the summary first."""
        said = [message for _, message in await self.numbered(session)]
        return [session.summary, *said] if session.summary else said

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
        await self._store.write(
            lambda connection: (
                connection.execute(
                    update(sessions)
                    .where(sessions.c.id == session_id)
                    .values(thinking=int(on))
                ).rowcount
            )
        )
