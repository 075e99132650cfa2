"""Sessions: the rows of a conversation, read back and written in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from uuid import uuid4

from agenthost import (
    ALL_SESSIONS,
    Clock,
    Conflict,
    Conversation,
    Entry,
    InvalidInput,
    Message,
    NotFound,
    Row,
    Session,
    SessionFilter,
    Spent,
    Store,
    TurnRecord,
)
from sqlalchemy import Connection, bindparam, select, update

from .archive import archive, refuse_own, take_out
from .codec import dump_parts
from .forks import fork
from .labels import labels_behind
from .listing import listing
from .rows import entry, turn_record
from .seat import Seat
from .session_cache import SESSIONS, SessionCache
from .session_rows import BY_ID, BY_KEY, SUPERSEDED, erase, find_or_open, session_of
from .tables import agents, messages, sessions, turns
from .texts import MessageTexts
from .usage import record
from .views import PINNED, pin, place, restore, see, unpin
from .words import TITLE_LIMIT, folded, one_line

KEY_LIMIT = 256
TURNS = "turn:"
"""Keys that begin so are those of turns with sessions of their own."""
MANY = 500
"""Rows whose reading would hold up the event loop."""

_OF_AGENT = (
    select(sessions)
    .join(agents, agents.c.session_id == sessions.c.id)
    .where(agents.c.id == bindparam("agent"))
)
_ENTRIES = (
    select(messages)
    .where(
        messages.c.session_id == bindparam("id"),
        messages.c.seq >= bindparam("first_seq"),
        place >= bindparam("first_seq"),
        messages.c.partial != SUPERSEDED,
    )
    .order_by(messages.c.seq)
)
_TURNS = select(turns).where(
    turns.c.id.in_(
        select(messages.c.turn_id).where(messages.c.session_id == bindparam("id"))
    )
)


# Inside the class ``list`` is a method.
Entries = list[Entry]


class SessionTable:
    """Reads of sessions, and the writes that concern one as a whole.

    ``take``, ``give_back`` and ``forget`` are those of what is kept in memory.
    """

    def __init__(self, store: Store, clock: Clock, seat: Seat) -> None:
        self._store = store
        self._clock = clock
        self._seat = seat
        self._texts = MessageTexts(store)
        # Another daemon may add to a session: then each turn reads it.
        cache = SessionCache(SESSIONS if store.signals is None else 0)
        self.take = cache.take
        self.give_back = cache.give_back
        self.forget = cache.forget

    async def open(
        self, agent_id: str, key: str | None = None, *, ephemeral: bool = False
    ) -> Session:
        """Give the agent's session with this key, a new one when there is none.

        Raises:
            NotFound: There is no such agent.
            InvalidInput: The key is empty, too long or kept for turns.
            Conflict: One session is ephemeral, the other is not.
        """
        found = None if key is None else await self._by_key(agent_id, key)
        if found is None:
            now, id_ = self._clock.time(), str(uuid4())
            fresh = Session(
                id_, agent_id, now, key=key, ephemeral=ephemeral, updated_at=now
            )
            opening = partial(find_or_open, session=fresh, writer=self._seat.writer)
            found = await self._store.write(opening)
        if found.ephemeral is not ephemeral:
            raise Conflict("the key has a session that ends otherwise; use another key")
        return found

    async def _by_key(self, agent_id: str, key: str) -> Session | None:
        if not 1 <= len(key) <= KEY_LIMIT:
            raise InvalidInput("key", f"must have 1 to {KEY_LIMIT} characters")
        if key.startswith(TURNS):
            raise InvalidInput("key", f"must not begin with {TURNS}")
        row = await self._store.first(BY_KEY, {"agent": agent_id, "key": key})
        return session_of(row) if row is not None else None

    async def get(self, session_id: str, agent_id: str = "") -> Session:
        """Read a session's row.

        Raises:
            NotFound: There is none, or it is not the agent's.
        """
        row = await self._store.first(BY_ID, {"id": session_id})
        if row is None or agent_id not in {"", row["agent_id"]}:
            raise NotFound("session", session_id)
        return session_of(row)

    async def of_agent(self, agent_id: str) -> Session:
        """Read the row of an agent's own session, whichever it is now.

        Raises:
            NotFound: There is no such agent.
        """
        row = await self._store.first(_OF_AGENT, {"agent": agent_id})
        if row is None:
            raise NotFound("agent", agent_id)
        return session_of(row)

    async def entries(self, session: Session) -> list[Entry]:
        """Read what is not summarised, as it stands: each turn in its own place."""
        rows = await self._store.read(
            _ENTRIES, {"id": session.id, "first_seq": session.first_seq}
        )
        if len(rows) > MANY:
            return await asyncio.to_thread(_in_place, rows)
        return _in_place(rows)

    async def history(self, session: Session) -> Conversation:
        """Read it as a model sees it: the summary, what is pinned, the rest."""
        entries = await self.entries(session)
        said = [entry.message for entry in entries]
        labels = {label for entry in entries for label in entry.labels}
        if session.summary is not None:
            there = {entry.seq for entry in entries}
            whole = await self.pinned(session.id)
            pinned = (each.message for each in whole if each.seq not in there)
            said = [session.summary, *pinned, *said]
            labels |= await labels_behind(self._store, session.id)
        known = Conversation(session, said)
        known.labels = frozenset(labels)
        return known

    async def pinned(self, session_id: str) -> Entries:
        """Read the messages of a session that no summary leaves out, in their order."""
        return _in_place(await self._store.read(PINNED, {"id": session_id}))

    async def pin(self, session_id: str, seq: int, *, on: bool = True) -> None:
        """Keep a message whole before summaries, or no longer; a call with its result.

        Raises:
            NotFound: There is no such message.
            Conflict: Its call has no result yet, or too much is kept already.
        """
        do = partial(pin if on else unpin, session_id=session_id, seq=seq)
        await self._store.write(do)
        self.forget(session_id)

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
        self.forget(session_id)

    async def list(self, wanted: SessionFilter = ALL_SESSIONS) -> Sequence[Session]:
        """Read the rows of sessions that are not ephemeral, without their summary."""
        asked = listing(wanted)
        if asked is None:
            return ()
        if wanted.text:
            await self._texts.catch_up()
        return [session_of(row) for row in await self._store.read(*asked)]

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title.

        Raises:
            InvalidInput: It has no visible character.
            NotFound: There is no such session.
        """
        line = one_line(title, TITLE_LIMIT)
        if not line:
            raise InvalidInput("title", "must not be empty")
        await self._change(session_id, title=line, title_folded=folded(line))

    async def archive(self, session_id: str, *, on: bool = True) -> None:
        """Put a session into the archive, or take it out.

        Raises:
            NotFound: There is no such session.
            Conflict: It is an agent's own, or its key has another session by now.
        """
        moved = (
            partial(archive, session_id=session_id, now=self._clock.time())
            if on
            else partial(take_out, session_id=session_id)
        )
        await self._store.write(moved)
        self.forget(session_id)

    async def fork(self, session: Session, before: int | None = None) -> Session:
        """Make a session that begins with what stands before a message, or with all.

        Raises:
            NotFound: There is no such message.
            Conflict: The session was changed or deleted meanwhile.
        """
        writer = self._seat.writer
        return await fork(self._store, writer, session, before, self._clock.time())

    async def set_thinking(self, session_id: str, *, on: bool) -> None:
        """Switch extended thinking for the session."""
        await self._change(session_id, thinking=int(on))

    async def compact(
        self, session: Session, first_seq: int, summary: Message, spent: Spent | None
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

    async def restore(self, session: Session) -> bool:
        """Take the latest summary back; tell whether there was one.

        Raises:
            Conflict: The session has been compacted or deleted since it was read.
        """
        done = await self._store.write(partial(restore, session=session))
        self.forget(session.id)
        return done

    async def _change(self, session_id: str, **values: str | int) -> None:
        changed = update(sessions).where(sessions.c.id == session_id).values(**values)
        count = self._store.write(lambda each: each.execute(changed).rowcount)
        if not await count:
            raise NotFound("session", session_id)
        self.forget(session_id)


def _in_place(rows: Sequence[Row]) -> Entries:
    # Rows come in order of writing; few turns, if any, went on in their place.
    return sorted(map(entry, rows), key=lambda each: (each.place, each.seq))


def _erase_unowned(connection: Connection, session_id: str) -> None:
    refuse_own(connection, session_id)
    erase(connection, session_id)


def _compact(
    connection: Connection,
    session: Session,
    row: dict[str, str | float],
    spent: Spent | None,
) -> bool:
    # The call was paid for, whatever became of the session meanwhile.
    if spent is not None:
        record(connection, spent)
    return see(connection, session, row)
