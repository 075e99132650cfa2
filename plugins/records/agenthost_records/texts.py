"""The words of messages, kept to be searched: written at a search, never by a turn."""

from __future__ import annotations

from typing import Any

from agenthost import Role, Store
from sqlalchemy import (
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    RowMapping,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy import text as literal_text

from .tables import messages, sessions
from .word_index import WordIndex, who
from .words import folded, spaced, text_of

BATCH = 100
"""Messages whose words are written at once: others wait no longer than for these."""

metadata = MetaData()

# A copy without JSON, folded. A look through 100,000 of them takes some 60 ms: that is
# for words which none begins with. An index of three-letter parts is three times as
# large as they are, and slower than a look where the parts are in many.
texts = Table(
    "message_texts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("session_id", Text, nullable=False, index=True),
    Column("text", Text, nullable=False),
    Column("spaced", Text, nullable=False, server_default=literal_text("''")),
    Column("who", Text, nullable=False, server_default=literal_text("''")),
)
Index("message_texts_by_who", texts.c.who)
TEXT_INDEX = WordIndex(texts, "text")
TEXT_INDEX.listen()
marks = Table(
    "message_texts_mark", metadata, Column("reached", Integer, nullable=False)
)


_REACHED = select(func.coalesce(func.max(marks.c.reached), 0))
_BEHIND = select(func.max(messages.c.id) > _REACHED.scalar_subquery())
_NEXT = (
    select(
        messages.c.id,
        messages.c.session_id,
        messages.c.role,
        messages.c.parts,
        messages.c.owner,
        func.coalesce(sessions.c.agent_id, "").label("agent_id"),
    )
    .outerjoin(sessions, sessions.c.id == messages.c.session_id)
    .where(messages.c.id > bindparam("reached"))
    .order_by(messages.c.id)
    .limit(BATCH)
)
# A value of its own has the statement made once for good.
_LEFT = select(
    func.coalesce(func.max(messages.c.id), bindparam("none", type_=Integer))
).scalar_subquery()
_BACK = update(marks).where(marks.c.reached > _LEFT).values(reached=_LEFT)


class MessageTexts:
    """Brings the words up to date before a search."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._indexed: bool | None = None

    async def indexed(self) -> bool:
        """Tell whether the store has an index of words; it is asked once."""
        if self._indexed is None:
            self._indexed = await self._store.first(TEXT_INDEX.due) is not None
        return self._indexed

    async def catch_up(self) -> None:
        """Write down what was said since the last search, a part at a time."""
        row = await self._store.first(_BEHIND)
        while row is not None and row[0]:
            if not await self._store.write(_write_next):
                return


def _write_next(connection: Connection) -> bool:
    """Write the words of some messages; tell whether there may be more."""
    # Read here, in the transaction: numbers of deleted messages are given again.
    reached = connection.execute(_REACHED).scalar_one()
    rows = connection.execute(_NEXT, {"reached": reached}).mappings().all()
    if not rows:
        return False
    words = [_text(row) for row in rows if row["role"] != Role.TOOL.value]
    if words:
        connection.execute(insert(texts), words)
    connection.execute(delete(marks))
    connection.execute(insert(marks).values(reached=rows[-1]["id"]))
    return len(rows) == BATCH


def _text(row: RowMapping) -> dict[str, Any]:
    text = folded(text_of(row["parts"]))
    return {
        "id": row["id"],
        "session_id": row["session_id"],
        "text": text,
        "spaced": spaced(text),
        "who": who(row["agent_id"], row["owner"]),
    }


def forget_newest(connection: Connection) -> None:
    """Note that messages have just been deleted.

    The numbers of the newest are free again: what gets them is new.
    """
    connection.execute(_BACK, {"none": 0})
