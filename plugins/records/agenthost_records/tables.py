"""The tables: agents, sessions, messages, the journal of turns, usage, memory."""

from __future__ import annotations

from sqlalchemy import (
    REAL,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    literal_column,
    text,
)

from .word_index import WordIndex

metadata = MetaData()


def _cause() -> tuple[Column[str], ...]:
    """Who caused a row (``kind:name``), and where what it holds came from."""
    return (
        Column("owner", Text, nullable=False, server_default=text("''")),
        Column("labels", Text, nullable=False, server_default=text("''")),
    )


def _writer() -> tuple[Column[str], Column[int]]:
    """Which daemon a row belongs to, and from which epoch of it on."""
    return (
        Column("node", Text, nullable=False, server_default=text("''")),
        Column("epoch", Integer, nullable=False, server_default=text("0")),
    )


nodes = Table(
    "nodes",
    metadata,
    Column("node", Text, primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("seen", REAL, nullable=False),
)

# Who waits for a session stands in line by ``place``, the holder first. One daemon
# alone lines nobody up.
session_holders = Table(
    "session_holders",
    metadata,
    Column("place", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("session_id", Text, nullable=False, index=True),
    Column("work_id", Text, nullable=False),
    Column("asked_by", Text, nullable=False),
    *_writer(),
)

agents = Table(
    "agents",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("pinned_model", Text),
    Column("created_at", REAL, nullable=False),
    Column("updated_at", REAL, nullable=False),
    Column("parent", Text, nullable=False, server_default=text("''")),
    Column("reason", Text, nullable=False, server_default=text("''")),
    Column("crashes", Text, nullable=False, server_default=text("''")),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent_id", Text, nullable=False, index=True),
    Column("ephemeral", Integer, nullable=False),
    Column("thinking", Integer, nullable=False),
    Column("message_count", Integer, nullable=False),
    Column("first_seq", Integer, nullable=False),
    Column("next_seq", Integer, nullable=False),
    Column("summary", Text),
    Column("created_at", REAL, nullable=False),
    Column("updated_at", REAL, nullable=False),
    Column("key", Text),
    Column("title", Text, nullable=False, server_default=text("''")),
    Column("title_folded", Text, nullable=False, server_default=text("''")),
    Column("archived_at", REAL),
    Column("parent_id", Text),
    Column("at_message", Integer),
    Column("root_id", Text),
    *_cause(),
    *_writer(),
    Column("undone_at", Integer, nullable=False, server_default=text("0")),
)
_HOLDS_KEY = sessions.c.key.is_not(None) & sessions.c.archived_at.is_(None)
Index(
    "sessions_by_key",
    sessions.c.agent_id,
    sessions.c.key,
    unique=True,
    sqlite_where=_HOLDS_KEY,
    postgresql_where=_HOLDS_KEY,
)
# Forks and what they began with hold turns in common.
_FORKED = sessions.c.root_id.is_not(None)
Index(
    "sessions_by_root",
    sessions.c.root_id,
    sqlite_where=_FORKED,
    postgresql_where=_FORKED,
)

# Rows of all sessions stand in order of arrival: one placed among its own session's
# would move its neighbours at every turn.
messages = Table(
    "messages",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("turn_id", Text),
    Column("role", Text, nullable=False),
    Column("parts", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("partial", Integer, nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("behind", Integer),
    *_cause(),
)
Index("messages_by_session", messages.c.session_id, messages.c.seq, unique=True)

pins = Table(
    "pins",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("seq", Integer, primary_key=True),
)

# What a session began with before each of its summaries, the latest last.
views = Table(
    "views",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("session_id", Text, nullable=False, index=True),
    Column("first_seq", Integer, nullable=False),
    Column("summary", Text),
    *_cause(),
)

LABELLED = messages.c.labels != literal_column("''")
"""What has no labels, which is the rule, is in no index."""
Index(
    "messages_labelled",
    messages.c.session_id,
    messages.c.labels,
    sqlite_where=LABELLED,
    postgresql_where=LABELLED,
)

# A session's turns and tool calls are found by its messages.
turns = Table(
    "turns",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("response", Text),
    Column("error", Text),
    Column("error_code", Text),
    Column("iterations", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cost_micro_usd", Integer, nullable=False),
    Column("started_at", REAL, nullable=False),
    Column("ended_at", REAL),
    Column("digest", Text),
    Column("model", Text),
    *_cause(),
    *_writer(),
    Column("finish", Text),
    Column("settings", Text),
    Column("citations", Text),
)

RUNNING = turns.c.state == literal_column("'running'")
"""The state is written out: SQLite uses no partial index for a parameter."""
Index("turns_running", turns.c.state, sqlite_where=RUNNING, postgresql_where=RUNNING)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("turn_id", Text, primary_key=True),
    Column("call_id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_at", REAL, nullable=False),
    Column("ended_at", REAL),
    Column("output", Text),
    *_cause(),
)

usage = Table(
    "usage",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", REAL, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("turn_id", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("cached_tokens", Integer, nullable=False),
    Column("cache_write_tokens", Integer, nullable=False),
    Column("reasoning_tokens", Integer, nullable=False),
    Column("cost_micro_usd", Integer, nullable=False),
    Column("principal", Text, nullable=False, server_default=text("''")),
    Column("person", Text, nullable=False, server_default=text("''")),
)

Index("usage_by_time", usage.c.at)
Index("usage_by_agent", usage.c.agent_id, usage.c.at)

memory = MetaData()

kv = Table(
    "kv",
    memory,
    Column("id", Integer, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("updated_at", Float, nullable=False),
    *_cause(),
    Column("words", Text, nullable=False, server_default=text("''")),
    Column("spaced", Text, nullable=False, server_default=text("''")),
    Column("who", Text, nullable=False, server_default=text("''")),
)
Index("kv_by_key", kv.c.namespace, kv.c.key, unique=True)
Index("kv_by_who", kv.c.who)
KV_INDEX = WordIndex(kv, "words")
KV_INDEX.listen()
