"""The tables of what came in and what goes out, and what is read of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    REAL,
    Column,
    ColumnElement,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    exists,
    func,
    or_,
    select,
)

metadata = MetaData()


def _place() -> list[Column[str]]:
    names = ("channel", "account", "peer", "thread", "room")
    return [Column(name, Text, nullable=False) for name in names]


inbox = Table(
    "channel_inbox",
    metadata,
    Column("key", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    *_place(),
    Column("message_id", Text, nullable=False),
    Column("sender", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("received_at", REAL, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
"""``state`` is ``new`` until what it is answered with is in the outbox: ``done``."""
Index(
    "channel_inbox_open",
    *(
        inbox.c[name]
        for name in ("channel", "state", "account", "peer", "thread", "seq")
    ),
)
Index("channel_inbox_seq", inbox.c.seq)

outbox = Table(
    "channel_outbox",
    metadata,
    Column("id", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    *_place(),
    Column("text", Text, nullable=False),
    Column("plain", Text, nullable=False),
    Column("reply_to", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due", REAL, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
"""``state``: waiting, sending, delivered, failed or unknown. ``due`` is 0 once the
agent was told that it is lost."""
Index(
    "channel_outbox_open",
    *(
        outbox.c[name]
        for name in ("channel", "state", "account", "peer", "thread", "seq")
    ),
)
Index("channel_outbox_seq", outbox.c.seq)

files_in = Table(
    "channel_files_in",
    metadata,
    Column("key", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("reference", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
"""The files of messages that are not answered yet, not fetched; ``key`` is the
message's, ``reference`` JSON for the adapter, ``size`` 0 where nobody told it."""

files_out = Table(
    "channel_files_out",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""The file of a message of the outbox, as long as that is to be sent."""

drafts = Table(
    "channel_drafts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("message_id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
"""The messages that show an answer as it is made, by the outbox's id of the answer."""

cursors = Table(
    "channel_cursors",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("account", Text, primary_key=True),
    Column("cursor", Text, nullable=False),
)

conversations = Table(
    "channel_conversations",
    metadata,
    *(
        Column(name, Text, primary_key=True)
        for name in ("channel", "account", "peer", "thread")
    ),
    Column("agent", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("said", Integer, nullable=False),
    Column("last_at", REAL, nullable=False),
    Column("last_key", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
"""``agent`` was chosen there, "" for none; ``epoch`` counts how often it began anew,
``said`` its messages since; ``last_key`` is the newest that was counted."""

switched_off = Table(
    "channel_switched_off",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("at", REAL, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
"""The channels that are off whatever the configuration says."""

pairings = Table(
    "channel_pairings",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("sender", Text, primary_key=True),
    Column("code", Text, nullable=False),
    Column("name", Text, nullable=False),
    *(Column(name, Text, nullable=False) for name in ("account", "peer", "thread")),
    Column("asked_at", REAL, nullable=False),
    Column("expires_at", REAL, nullable=False),
    Column("owner", Text, nullable=False),
    Column("labels", Text, nullable=False),
)
"""The codes that strangers were given and nobody has confirmed."""

_MOST = 1_000


def _heads(
    table: Table, also: Sequence[ColumnElement[Any]], *open_: ColumnElement[bool]
) -> Select[Any]:
    """Read the oldest open row of each conversation of a channel, oldest first.

    What waits behind one that cannot go on is not read: it would hide the others.
    """
    ours = (table.c.channel == bindparam("channel"), *open_)
    place = (table.c.account, table.c.peer, table.c.thread)
    first = select(func.min(table.c.seq)).where(*ours).group_by(*place)
    heads = select(table, *also).where(table.c.seq.in_(first))
    return heads.order_by(table.c.seq).limit(_MOST)


_HAS_FILES = exists().where(files_in.c.key == inbox.c.key).label("has_files")
OPEN_IN = _heads(inbox, (_HAS_FILES,), inbox.c.state == "new")
OPEN_OUT = _heads(
    outbox,
    (
        exists().where(files_out.c.id == outbox.c.id).label("has_files"),
        select(drafts.c.message_id)
        .where(drafts.c.id == outbox.c.id)
        .scalar_subquery()
        .label("draft"),
    ),
    or_(outbox.c.state == "waiting", outbox.c.state == "sending"),
)
FILES_IN = (
    select(files_in)
    .where(files_in.c.key == bindparam("key"))
    .order_by(files_in.c.number)
)
DRAFT = select(drafts.c.message_id).where(drafts.c.id == bindparam("id"))
FILE_OUT = select(files_out).where(files_out.c.id == bindparam("id"))
STOPS = (
    select(inbox, _HAS_FILES)
    .where(
        inbox.c.channel == bindparam("channel"),
        inbox.c.state == "new",
        func.lower(inbox.c.text).like("/stop%"),
    )
    .order_by(inbox.c.seq)
)
_IS_LOST = or_(outbox.c.state == "failed", outbox.c.state == "unknown")
LOST = (
    select(outbox)
    .where(outbox.c.channel == bindparam("channel"), _IS_LOST)
    .order_by(outbox.c.seq.desc())
    .limit(100)
)
LOST_HERE = (
    select(outbox.c.id, outbox.c.state)
    .where(
        *(
            outbox.c[name] == bindparam(name)
            for name in ("channel", "account", "peer", "thread")
        ),
        _IS_LOST,
        outbox.c.due > 0,
        outbox.c.owner.startswith("channel_user:", autoescape=True),
    )
    .limit(100)
)
"""Answers alone: whoever said something first was told what became of it."""
COUNTED_IN = (
    select(inbox.c.channel, func.count().label("number"))
    .where(inbox.c.state == "new")
    .group_by(inbox.c.channel)
)
COUNTED_OUT = (
    select(outbox.c.channel, outbox.c.state, func.count().label("number"))
    .where(outbox.c.created_at >= bindparam("since"))
    .group_by(outbox.c.channel, outbox.c.state)
)
SAID = select(outbox.c.state, outbox.c.message_id, outbox.c.reason).where(
    outbox.c.id == bindparam("id")
)
CONVERSATION = select(
    conversations.c.agent,
    conversations.c.epoch,
).where(
    *(
        conversations.c[name] == bindparam(name)
        for name in ("channel", "account", "peer", "thread")
    )
)
PENDING = (
    select(pairings)
    .where(
        pairings.c.channel == bindparam("channel"),
        pairings.c.expires_at > bindparam("now"),
    )
    .order_by(pairings.c.asked_at)
)
SWITCHED_OFF = select(switched_off.c.channel)
CURSOR = select(cursors.c.cursor).where(
    cursors.c.channel == bindparam("channel"),
    cursors.c.account == bindparam("account"),
)
