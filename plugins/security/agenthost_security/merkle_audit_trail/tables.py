"""The rows: entries, which only ever follow one another, tiles and marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    case,
    delete,
    insert,
    literal_column,
    select,
)

from .canonical import FIRST, Entry

metadata = MetaData()

entries = Table(
    "audit_entries",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("node", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("timestamp", Text, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("prev_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("canonical", LargeBinary, nullable=False),
)
Index("audit_entries_by_number", entries.c.node, entries.c.number, unique=True)

tiles = Table(
    "audit_tiles",
    metadata,
    Column("node", Text, primary_key=True),
    Column("tile", Integer, primary_key=True),
    Column("hash", Text, nullable=False),
)
marks = Table(
    "audit_marks",
    metadata,
    Column("node", Text, primary_key=True),
    Column("heads", Integer, nullable=False),
    Column("digest", Text, nullable=False),
)

NAMES = tuple(entries.c.keys())
_NAMES_IN_SQLITE = tuple("as_hash" if name == "hash" else name for name in NAMES)
_FIRST = insert(entries)
# Which row is the last is looked at in the statement itself: what this process
# remembers may have been rolled back, or another node may have written meanwhile.
# As a text: SQLAlchemy's would bind a limit and an offset with every row.
_NEWEST = "(SELECT e.hash FROM audit_entries AS e ORDER BY e.id DESC LIMIT 1)"
_IS_LAST = literal_column(_NEWEST, Text) == bindparam("behind", type_=Text)
_FOLLOWS = (
    insert(entries)
    .from_select(
        NAMES,
        select(*(bindparam(c.name, type_=c.type) for c in entries.c)).where(_IS_LAST),
    )
    .execution_options(preserve_rowcount=True)
)
# SQLite would copy what it selects out of the table that it inserts into, at a third of
# the cost. So the row has no hash where it does not follow, and such a one is ignored.
_FOLLOWS_IN_SQLITE = (
    insert(entries)
    .prefix_with("OR IGNORE")
    .values(hash=case((_IS_LAST, bindparam("as_hash", type_=Text))))
    .execution_options(preserve_rowcount=True)
)
_LAST = select(entries.c.id, entries.c.hash).order_by(entries.c.id.desc()).limit(1)
_OWN = (
    select(entries.c.number, entries.c.hash)
    .where(entries.c.node == bindparam("of"))
    .order_by(entries.c.number.desc())
    .limit(1)
)

End = tuple[int, str, int, str]
"""Where a chain ends: last id and hash of all, last number and hash of the node's."""


def end_of(connection: Connection, node: str) -> End:
    """Read where the chain of a node ends, and where all do."""
    last = connection.execute(_LAST).first()
    own = connection.execute(_OWN, {"of": node}).first()
    number, hash_ = (0, FIRST) if own is None else own
    return (0, "", number, hash_) if last is None else (*last, number, hash_)


def put(connection: Connection, end: End, entries: Sequence[Entry]) -> bool:
    """Put entries behind the end of the chain; False when that is not the end."""
    sqlite = connection.dialect.name == "sqlite"
    names = _NAMES_IN_SQLITE if sqlite else NAMES
    rows: list[dict[str, Any]] = []
    behind = end[1]
    for entry in entries:
        rows.append(dict(zip(names, entry, strict=True), behind=behind))
        behind = entry[9]
    if end[0] == 0:
        connection.execute(_FIRST, dict(zip(NAMES, entries[0], strict=True)))
        del rows[0]
    if not rows:
        return True
    following = _FOLLOWS_IN_SQLITE if sqlite else _FOLLOWS
    return connection.execute(following, rows).rowcount == len(rows)


def keep_heads(
    connection: Connection,
    node: str,
    mark: tuple[int, str],
    new: list[tuple[int, str]],
) -> None:
    """Keep how many heads are signed, with the digest of the last, and full tiles."""
    connection.execute(delete(marks).where(marks.c.node == node))
    heads, digest = mark
    connection.execute(insert(marks), {"node": node, "heads": heads, "digest": digest})
    if new:
        numbers = [number for number, _ in new]
        connection.execute(
            delete(tiles).where(tiles.c.node == node, tiles.c.tile.in_(numbers))
        )
        rows = [{"node": node, "tile": n, "hash": hash_} for n, hash_ in new]
        connection.execute(insert(tiles), rows)
