"""Forks: a session that begins with what stands in another before a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from agenthost import (
    Conflict,
    NotFound,
    Role,
    Row,
    Session,
    Store,
    TurnState,
    Writer,
)
from sqlalchemy import (
    Connection,
    Integer,
    Text,
    bindparam,
    insert,
    select,
    update,
)

from .labels import inherit, labels_behind
from .session_rows import BY_ID, SUPERSEDED, erase, open_session
from .tables import messages, pins, sessions, turns
from .views import IS_PINNED, place

BATCH = 250
"""Messages that one write copies: others wait no longer than for these."""
SETTLED = {TurnState.DONE.value, TurnState.CANCELLED.value}
"""Turns that never change and never go on: a fork shows them as its own."""

_PLACES = (
    select(
        messages.c.id,
        messages.c.seq,
        messages.c.role,
        place.label("place"),
        messages.c.turn_id,
        turns.c.state,
        IS_PINNED.label("pinned"),
    )
    .outerjoin(turns, turns.c.id == messages.c.turn_id)
    .where(
        messages.c.session_id == bindparam("session"),
        messages.c.partial != SUPERSEDED,
    )
)
_OWN = {"id", "session_id", "seq", "turn_id", "behind"}
_SAME = [column for column in messages.c if column.name not in _OWN]
_COPY = (
    insert(messages)
    .from_select(
        ["session_id", "seq", "turn_id", *(column.name for column in _SAME)],
        select(
            bindparam("fork", type_=Text),
            bindparam("new_seq", type_=Integer),
            bindparam("turn", type_=Text),
            *_SAME,
        ).where(
            messages.c.id == bindparam("message"),
            messages.c.session_id == bindparam("source"),
        ),
    )
    # SQLAlchemy forgets how many rows an INSERT has made unless it is asked for.
    .execution_options(preserve_rowcount=True)
)
_Copies = Sequence[dict[str, Any]]
_Rows = Callable[[Connection], None]


async def fork(
    store: Store, writer: Writer, source: Session, before: int | None, now: float
) -> Session:
    """Copy what stands before a message into a new session.

    Rows are copied, so that either session can be cleared without the other; what a
    model is shown of a long conversation is short, so they are few.

    Raises:
        NotFound: There is no such message.
        Conflict: The session was changed or deleted meanwhile.
    """
    rows = await store.read(_PLACES, {"session": source.id})
    said = sorted(rows, key=lambda row: (row["place"], row["seq"]))
    if before is None or before >= source.first_seq:
        # The summary stands for what is before.
        first, summary = source.first_seq, source.summary
        said = [
            row
            for row in said
            if row["pinned"] or min(row["seq"], row["place"]) >= first
        ]
    else:
        summary = None
    said = said[: _place_of(said, before)]
    visible = sum(row["role"] != Role.TOOL.value for row in said)
    made = replace(
        source,
        id=str(uuid4()),
        created_at=now,
        updated_at=now,
        first_seq=0,
        next_seq=len(said),
        summary=summary,
        # What begins anew has its title from its own first message.
        title=source.title if said or summary else "",
        key=None,
        ephemeral=False,
        archived_at=None,
        parent_id=source.id,
        at_message=before,
        message_count=visible + (summary is not None),
        undone_at=0,
    )
    copies = [_copy_of(row, made, seq) for seq, row in enumerate(said)]
    behind = await labels_behind(store, source.id) if summary else frozenset()
    inheriting = partial(inherit, session_id=made.id, labels=behind)
    fleeting = replace(made, ephemeral=True)
    pinned = [seq for seq, row in enumerate(said) if row["pinned"]]
    opening = partial(_open, session=fleeting, writer=writer, pinned=pinned)
    await _write_all(store, made, copies, opening, inheriting)
    return made


def _open(
    connection: Connection, session: Session, writer: Writer, pinned: Sequence[int]
) -> None:
    open_session(connection, session, writer)
    if pinned:
        rows = [{"session_id": session.id, "seq": seq} for seq in pinned]
        connection.execute(insert(pins), rows)


def _place_of(said: Sequence[Row], before: int | None) -> int:
    if before is None:
        return len(said)
    for index, row in enumerate(said):
        if row["seq"] == before:
            return index
    raise NotFound("message", str(before))


def _copy_of(row: Row, made: Session, seq: int) -> dict[str, Any]:
    return {
        "source": made.parent_id,
        "message": row["id"],
        "fork": made.id,
        "new_seq": seq,
        "turn": row["turn_id"] if row["state"] in SETTLED else None,
    }


async def _write_all(
    store: Store,
    made: Session,
    copies: _Copies,
    opening: _Rows,
    inheriting: _Rows,
) -> None:
    parts = [copies[at : at + BATCH] for at in range(0, len(copies), BATCH)] or [()]
    try:
        for part in parts:
            first, last = opening if part is parts[0] else None, part is parts[-1]
            write = partial(_write, made=made, part=part, first=first, last=last)
            await store.write(write, inheriting)
    except BaseException:
        # Nobody waits for it: what is left of a fork is ephemeral, and gone with the
        # next start at the latest.
        left = store.write(partial(erase, session_id=made.id))
        left.add_done_callback(lambda each: each.cancelled() or each.exception())
        raise


def _write(
    connection: Connection,
    made: Session,
    part: _Copies,
    first: _Rows | None,
    *,
    last: bool,
) -> None:
    if first is not None:
        if connection.execute(BY_ID, {"id": made.parent_id}).first() is None:
            raise Conflict("the session was deleted while it was forked")
        first(connection)
    shown = update(sessions).where(sessions.c.id == made.id)
    if not connection.execute(shown.values(ephemeral=int(not last))).rowcount:
        raise NotFound("session", made.id)
    if part and connection.execute(_COPY, part).rowcount != len(part):
        raise Conflict("the session was changed while it was forked; try again")
