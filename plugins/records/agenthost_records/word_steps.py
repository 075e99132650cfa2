"""What gives the rows of an earlier release their index of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .words import spaced

if TYPE_CHECKING:
    from alembic.operations import Operations

    from .word_index import WordIndex

_KEPT = "namespace, key, value, version, digest, updated_at, owner, labels, words"
_FILL = f"INSERT INTO kv_new ({_KEPT}) SELECT {_KEPT} FROM kv ORDER BY updated_at"  # nosec B608 # noqa: S608 - constant
_WORDS = "SELECT id, words, namespace, owner FROM kv"
_WORDED = "UPDATE kv SET spaced = :spaced, who = :who WHERE id = :id"
_TEXTS = (
    "SELECT message_texts.id, text, agent_id, messages.owner FROM message_texts "
    "JOIN messages ON messages.id = message_texts.id "
    "JOIN sessions ON sessions.id = messages.session_id"
)
_TEXT = "UPDATE message_texts SET spaced = :spaced, who = :who WHERE id = :id"
ROWS = 1_000
"""Rows that are held in memory at once."""


def number_values(op: Operations) -> None:
    """Give values a number, and their words an index."""
    from sqlalchemy import Column, Float, Integer, Text, text

    empty = text("''")
    op.create_table(
        "kv_new",
        Column("id", Integer, primary_key=True),
        Column("namespace", Text, nullable=False),
        Column("key", Text, nullable=False),
        Column("value", Text, nullable=False),
        Column("version", Integer, nullable=False),
        Column("digest", Text, nullable=False),
        Column("updated_at", Float, nullable=False),
        *(
            Column(name, Text, nullable=False, server_default=empty)
            for name in ("owner", "labels", "words", "spaced", "who")
        ),
    )
    op.execute(_FILL)
    op.drop_table("kv")
    op.rename_table("kv_new", "kv")
    op.create_index("kv_by_key", "kv", ["namespace", "key"], unique=True)
    _say_whose(op, _WORDS, _WORDED)
    op.create_index("kv_by_who", "kv", ["who"])
    from .tables import KV_INDEX

    _index(op, KV_INDEX)


def index_texts(op: Operations) -> None:
    """Give the words of messages an index."""
    from sqlalchemy import Column, Text, text

    for name in ("spaced", "who"):
        empty = text("''")
        column = Column(name, Text, nullable=False, server_default=empty)
        op.add_column("message_texts", column)
    _say_whose(op, _TEXTS, _TEXT)
    op.create_index("message_texts_by_who", "message_texts", ["who"])
    from .texts import TEXT_INDEX

    _index(op, TEXT_INDEX)


def _say_whose(op: Operations, rows: str, write: str) -> None:
    from sqlalchemy import text

    from .word_index import who

    connection = op.get_bind()
    for some in connection.execute(text(rows)).partitions(ROWS):
        told = [
            {"id": number, "spaced": spaced(words), "who": who(agent_id, owner)}
            for number, words, agent_id, owner in some
        ]
        connection.execute(text(write), told)


def _index(op: Operations, index: WordIndex) -> None:
    from sqlalchemy import Column, Integer

    op.create_table(index.mark.name, Column("due", Integer, nullable=False))
    if op.get_bind().dialect.name == "sqlite":
        for each in index.made():
            op.execute(each)
