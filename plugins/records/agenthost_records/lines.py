"""Lines for sessions: what daemons of one database ask of a session, in one order.

Whoever stands first holds the session. Writes of all daemons stand behind one another,
so the order of the rows is that of their commits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from agenthost import AgentHostError, Conflict, Store, Superseded, Writer
from sqlalchemy import Connection, bindparam, delete, or_, select, text

from .tables import session_holders as line
from .writers import check_current

TOPIC = "sessions"
LOOK = 0.5
"""Seconds between two looks of who waits: a word that it is its turn may be lost."""
AGAIN = 1.0
"""Seconds until a store that took no row is asked again."""
LAST = 1.0
"""Seconds that the end waits for what is let go of."""

_LINE = (
    select(line.c.id, line.c.node, line.c.work_id)
    .where(line.c.session_id == bindparam("session"))
    .order_by(line.c.place)
)
_JOIN = text(
    "INSERT INTO session_holders (id, session_id, work_id, asked_by, node, epoch) "
    "SELECT :id, :session_id, :work_id, :asked_by, :node, :epoch WHERE NOT EXISTS "
    "(SELECT 1 FROM nodes WHERE nodes.node = :node AND nodes.epoch > :epoch) "
    "RETURNING NOT EXISTS (SELECT 1 FROM session_holders AS before "
    "WHERE before.session_id = :session_id AND before.id <> :id)"
)
"""One statement: every turn lines up."""
_THERE = select(line.c.work_id, line.c.session_id, line.c.place).where(
    line.c.session_id == bindparam("session")
)
_WAITED_FOR = select(line.c.work_id, line.c.session_id, line.c.place).where(
    or_(
        (line.c.session_id == bindparam("session"))
        & (line.c.place < bindparam("place")),
        line.c.asked_by == bindparam("work"),
    )
)

log = logging.getLogger(__name__)


class Lines:
    """The lines of one database, as one of its daemons stands in them.

    Args:
        store: When it has signals, each place that is let go of is told.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._left: dict[str, str] = {}
        self._leaving: asyncio.Task[None] | None = None
        if store.signals is not None:
            store.signals.listen(TOPIC, self._moved)

    def up(
        self, session_id: str, work_id: str, writer: Writer, asked_by: str = ""
    ) -> Place:
        """Take the last place for a session; it starts at once."""
        id_ = str(uuid4())
        row = {
            "id": id_,
            "session_id": session_id,
            "work_id": work_id,
            "asked_by": asked_by,
            "node": writer.node,
            "epoch": writer.epoch,
        }
        joined = self._store.write(partial(join, row=row))
        # Whoever is stopped before it asks leaves all the same, and hears of nothing.
        joined.add_done_callback(lambda each: each.cancelled() or each.exception())
        return Place(self, id_, session_id, joined)

    async def first(self, session_id: str) -> tuple[str, str] | None:
        """Tell who has the first place for a session: its node, and what waits."""
        row = await self._store.first(_LINE, {"session": session_id})
        return None if row is None else (row["node"], row["work_id"])

    async def reach(self, place: str, session_id: str) -> None:
        """Wait until a place is the first.

        Raises:
            Superseded: It is gone.
        """
        moved = asyncio.Event()
        waiting = self._waiting.setdefault(session_id, set())
        waiting.add(moved)
        try:
            while not await self._is_first(place, session_id):
                try:
                    async with asyncio.timeout(LOOK):
                        await moved.wait()
                except TimeoutError:
                    pass
                moved.clear()
        finally:
            waiting.discard(moved)
            if not waiting:
                self._waiting.pop(session_id, None)

    def leave(self, place: str, session_id: str) -> None:
        """Give a place up, now or as soon as the store takes it."""
        self._left[place] = session_id
        if self._leaving is None or self._leaving.done():
            self._leaving = asyncio.create_task(self._leave(), name="leave sessions")

    async def stop(self) -> None:
        """Let go of what can be: the next start of the node sees to the rest."""
        if self._leaving is not None:
            await asyncio.wait([self._leaving], timeout=LAST)
            self._leaving.cancel()
            await asyncio.gather(self._leaving, return_exceptions=True)

    async def _is_first(self, place: str, session_id: str) -> bool:
        rows = await self._store.read(_LINE, {"session": session_id})
        there = [row["id"] for row in rows]
        if place not in there:
            raise Superseded(
                "this daemon stood still for too long and has lost its place in the "
                "session; ask again"
            )
        return bool(there[0] == place)

    async def _leave(self) -> None:
        while left := dict(self._left):
            try:
                waited_for = await self._store.write(partial(remove, places=left))
            except AgentHostError as error:
                log.warning("%d sessions are still held: %s", len(left), error.message)
                await asyncio.sleep(AGAIN)
                continue
            for place in left:
                del self._left[place]
            for session_id in waited_for:
                self._moved(session_id)
                if self._store.signals is not None:
                    self._store.signals.tell(TOPIC, session_id)

    def _moved(self, session_id: str) -> None:
        """Have those look who wait for a session; all when it is not said which."""
        named = [session_id] if session_id else [*self._waiting]
        for each in named:
            for moved in self._waiting.get(each, ()):
                moved.set()


class Place:
    """A place in the line for a session."""

    def __init__(
        self, lines: Lines, id_: str, session_id: str, joined: asyncio.Future[bool]
    ) -> None:
        self._lines = lines
        self._id = id_
        self._session_id = session_id
        self._joined = joined

    async def reached(self) -> None:
        """Wait until all before it are gone; the session is its own from then on.

        Raises:
            Superseded: Its node has started again, or was taken for dead.
            Conflict: It would wait for itself.
        """
        # A stop must not cancel the write: it may commit all the same.
        if not await asyncio.shield(self._joined):
            await self._lines.reach(self._id, self._session_id)

    def leave(self) -> None:
        """Let go of it; what has failed may have been written."""
        refused = self._joined.done() and isinstance(
            self._joined.exception(), Superseded | Conflict
        )
        if not refused:
            self._lines.leave(self._id, self._session_id)


def join(connection: Connection, row: dict[str, Any]) -> bool:
    """Stand last in a line; tell whether that is first.

    Raises:
        Superseded: The writer's node has started again.
        Conflict: Whoever waits for this would wait for itself.
    """
    if row["asked_by"] and _leads_back(connection, row["session_id"], row["asked_by"]):
        raise Conflict(
            "the agent waits for this call, over several daemons; it cannot call itself"
        )
    first = connection.execute(_JOIN, row).scalar_one_or_none()
    if first is None:
        check_current(connection, Writer(row["node"], row["epoch"]))
    return bool(first)


def remove(connection: Connection, places: Mapping[str, str]) -> Sequence[str]:
    """Take places out of the lines of their sessions; name those not empty by then."""
    connection.execute(delete(line).where(line.c.id.in_([*places])))
    left = select(line.c.session_id).where(
        line.c.session_id.in_({*places.values()}),
    )
    return connection.execute(left.distinct()).scalars().all()


def _leads_back(connection: Connection, session_id: str, caller: str) -> bool:
    """Tell whether what waits in a session waits for the caller.

    Each waits for those before it in its line, and for the turns that it has asked.
    """
    left = [*connection.execute(_THERE, {"session": session_id})]
    seen: set[str] = set()
    while left:
        place = left.pop()
        if place.work_id == caller:
            return True
        if place.work_id not in seen:
            seen.add(place.work_id)
            at = {"session": place.session_id, "place": place.place}
            left += connection.execute(_WAITED_FOR, {**at, "work": place.work_id})
    return False
