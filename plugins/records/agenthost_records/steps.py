"""What brings the tables of an earlier release up to date.

Each step imports SQLAlchemy itself: a start that runs none does without.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .words import folded, title_of

if TYPE_CHECKING:
    from alembic.operations import Operations

_FIRST = (
    "SELECT session_id, parts FROM messages AS first WHERE role = 'user' AND seq = "
    "(SELECT min(seq) FROM messages WHERE session_id = first.session_id "
    "AND role = 'user')"
)
_TITLE = "UPDATE sessions SET title = :title, title_folded = :folded WHERE id = :id"

_WORDS = "UPDATE kv SET words = :words WHERE namespace = :namespace AND key = :key"

_MESSAGE = "session_id, seq, turn_id, role, parts, digest, partial, created_at"


def write_less(op: Operations) -> None:
    """Keep messages in order of arrival, and index what is looked for alone."""
    from sqlalchemy import REAL, Column, Integer, Text, text

    op.rename_table("messages", "messages_before")
    op.create_table(
        "messages",
        Column("id", Integer, primary_key=True),
        Column("session_id", Text, nullable=False),
        Column("seq", Integer, nullable=False),
        Column("turn_id", Text),
        Column("role", Text, nullable=False),
        Column("parts", Text, nullable=False),
        Column("digest", Text, nullable=False),
        Column("partial", Integer, nullable=False),
        Column("created_at", REAL, nullable=False),
    )
    op.execute(
        f"INSERT INTO messages ({_MESSAGE}) SELECT {_MESSAGE} FROM messages_before "  # nosec B608 # noqa: S608 - constant
        "ORDER BY created_at, session_id, seq"
    )
    op.drop_table("messages_before")
    columns = ["session_id", "seq"]
    op.create_index("messages_by_session", "messages", columns, unique=True)
    op.drop_index("ix_turns_session_id", "turns")
    op.drop_index("ix_tool_calls_session_id", "tool_calls")
    op.drop_index("ix_turns_state", "turns")
    running = text("state = 'running'")
    op.create_index("turns_running", "turns", ["state"], sqlite_where=running)


def go_on_in_place(op: Operations) -> None:
    """Let a turn go on in its own place, and keep what its effects answered."""
    from sqlalchemy import Column, Integer, Text

    op.add_column("messages", Column("behind", Integer))
    op.add_column("turns", Column("digest", Text))
    op.add_column("turns", Column("model", Text))
    op.add_column("tool_calls", Column("output", Text))


def owners_and_labels(op: Operations) -> None:
    """Say of each row who caused it, and where what it holds came from."""
    from sqlalchemy import text

    for table in ("messages", "turns", "tool_calls"):
        _add_texts(op, table, "owner", "labels")
    _add_texts(op, "usage", "principal", "person")
    labelled = text("labels != ''")
    columns = ["session_id", "labels"]
    op.create_index("messages_labelled", "messages", columns, sqlite_where=labelled)


def tell_why_it_stopped(op: Operations) -> None:
    """Say of each turn why its model stopped."""
    from sqlalchemy import Column, Text

    op.add_column("turns", Column("finish", Text))


def tell_what_was_asked(op: Operations) -> None:
    """Say of each turn what was asked of its answers."""
    from sqlalchemy import Column, Text

    op.add_column("turns", Column("settings", Text))


def tell_who_remembers(op: Operations) -> None:
    """Say of each value who put it there, and where it came from."""
    _add_texts(op, "kv", "owner", "labels")


def find_by_words(op: Operations) -> None:
    """Keep of each value the words by which it is found."""
    from sqlalchemy import text

    _add_texts(op, "kv", "words")
    connection = op.get_bind()
    rows = connection.execute(text("SELECT namespace, key, value FROM kv")).mappings()
    for row in rows.all():
        found = folded(f"{row['key']} {_plain(row['value'])}")
        connection.execute(text(_WORDS), {**row, "words": found})


def _plain(written: str) -> str:
    value = json.loads(written)
    return value if isinstance(value, str) else written


def tell_who_writes(op: Operations) -> None:
    """Say which daemon runs a turn, or made a session, and since which start of it."""
    from sqlalchemy import REAL, Column, Integer, Text, text

    op.create_table(
        "nodes",
        Column("node", Text, primary_key=True),
        Column("epoch", Integer, nullable=False),
        Column("seen", REAL, nullable=False),
    )
    for table in ("sessions", "turns"):
        _add_texts(op, table, "node")
        zero = text("0")
        column = Column("epoch", Integer, nullable=False, server_default=zero)
        op.add_column(table, column)


def tell_what_it_rests_on(op: Operations) -> None:
    """Say of each answer which pages it rests on."""
    from sqlalchemy import Column, Text

    op.add_column("turns", Column("citations", Text))


def line_up(op: Operations) -> None:
    """Let daemons that share a database stand in one line for a session."""
    from sqlalchemy import Column, Integer, Text, text

    op.create_table(
        "session_holders",
        Column("place", Integer, primary_key=True),
        Column("id", Text, nullable=False, unique=True),
        Column("session_id", Text, nullable=False, index=True),
        Column("work_id", Text, nullable=False),
        Column("asked_by", Text, nullable=False),
        Column("node", Text, nullable=False, server_default=text("''")),
        Column("epoch", Integer, nullable=False, server_default=text("0")),
    )


def see_it_otherwise(op: Operations) -> None:
    """Keep messages whole in front of summaries, and what was before a summary."""
    from sqlalchemy import Column, Integer, Text, text

    op.create_table(
        "pins",
        Column("session_id", Text, primary_key=True),
        Column("seq", Integer, primary_key=True),
    )
    op.create_table(
        "views",
        Column("id", Integer, primary_key=True),
        Column("session_id", Text, nullable=False, index=True),
        Column("first_seq", Integer, nullable=False),
        Column("summary", Text),
        Column("owner", Text, nullable=False, server_default=text("''")),
        Column("labels", Text, nullable=False, server_default=text("''")),
    )
    zero = text("0")
    undone = Column("undone_at", Integer, nullable=False, server_default=zero)
    op.add_column("sessions", undone)


def _add_texts(op: Operations, table: str, *names: str) -> None:
    from sqlalchemy import Column, Text, text

    for name in names:
        empty = text("''")
        op.add_column(table, Column(name, Text, nullable=False, server_default=empty))


def name_sessions(op: Operations) -> None:
    """Give sessions a title, a key, an archive and a past in another session."""
    from sqlalchemy import REAL, Column, Integer, Text, text

    for name in ("key", "parent_id", "root_id"):
        op.add_column("sessions", Column(name, Text))
    op.add_column("sessions", Column("archived_at", REAL))
    op.add_column("sessions", Column("at_message", Integer))
    for name in ("title", "title_folded", "owner", "labels"):
        empty = text("''")
        column = Column(name, Text, nullable=False, server_default=empty)
        op.add_column("sessions", column)
    unique = text('"key" IS NOT NULL AND archived_at IS NULL')
    columns = ["agent_id", "key"]
    op.create_index(
        "sessions_by_key", "sessions", columns, unique=True, sqlite_where=unique
    )
    forked = text("root_id IS NOT NULL")
    op.create_index("sessions_by_root", "sessions", ["root_id"], sqlite_where=forked)
    connection = op.get_bind()
    for session_id, parts in connection.execute(text(_FIRST)).all():
        title = title_of(parts)
        row = {"id": session_id, "title": title, "folded": folded(title)}
        connection.execute(text(_TITLE), row)


def tell_of_their_lives(op: Operations) -> None:
    """Say who has spawned an agent, why it stands still, and when it crashed."""
    _add_texts(op, "agents", "parent", "reason", "crashes")
