"""What gives the rows of an earlier release their index of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .words import spaced

if TYPE_CHECKING:
    from alembic.operations import Operations

    from .word_index import WordIndex

_KEPT = "namespace, key, value, version, digest, updated_at, owner, labels, words"
_FILL = f"INSERT INTO kv_new ({_KEPT}) SELECT {_KEPT} FROM kv ORDER BY updated_at"  # nosec B608 # noqa: S608 - constant
_WORDS = "SELECT id, words FROM kv"
_SPACED = "UPDATE kv SET spaced = :spaced WHERE id = :id"
_TEXTS = "SELECT id, text FROM message_texts"
_SPACED_TEXT = "UPDATE message_texts SET spaced = :spaced WHERE id = :id"


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
            for name in ("owner", "labels", "words", "spaced")
        ),
    )
    op.execute(_FILL)
    op.drop_table("kv")
    op.rename_table("kv_new", "kv")
    op.create_index("kv_by_key", "kv", ["namespace", "key"], unique=True)
    _space(op, _WORDS, _SPACED)
    from .tables import KV_INDEX

    _index(op, KV_INDEX)


def index_texts(op: Operations) -> None:
    """Give the words of messages an index."""
    from sqlalchemy import Column, Text, text

    empty = text("''")
    op.add_column(
        "message_texts", Column("spaced", Text, nullable=False, server_default=empty)
    )
    _space(op, _TEXTS, _SPACED_TEXT)
    from .texts import TEXT_INDEX

    _index(op, TEXT_INDEX)


def _space(op: Operations, rows: str, write: str) -> None:
    from sqlalchemy import text

    connection = op.get_bind()
    found = (
        (number, spaced(words)) for number, words in connection.execute(text(rows))
    )
    apart = [{"id": number, "spaced": words} for number, words in found if words]
    if apart:
        connection.execute(text(write), apart)


def _index(op: Operations, index: WordIndex) -> None:
    from sqlalchemy import Column, Integer

    op.create_table(index.mark.name, Column("due", Integer, nullable=False))
    if op.get_bind().dialect.name == "sqlite":
        for each in index.made():
            op.execute(each)
