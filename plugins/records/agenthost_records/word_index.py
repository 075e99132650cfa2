"""An index of words, by SQLite's FTS5: kept by triggers, in the commit of the row.

It holds no texts, only where words are. Elsewhere there is none: its mark has no row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from typing import Any

from agenthost import Store
from sqlalchemy import (
    DDL,
    Column,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Table,
    bindparam,
    column,
    event,
    insert,
    literal_column,
    select,
    table,
    update,
)

BEST = 200
"""Rows that are looked at, of those whose words match."""
PAGES = 200
"""Pages of an index that are written anew in one write."""
LEAST = 2
"""Rows that a write changes which still had something to do."""
_MADE = """
CREATE VIRTUAL TABLE {index} USING fts5(
    words, who, content='', tokenize='unicode61 remove_diacritics 2'
)
"""
# Whose a row is says nothing of how good it is.
_RANKED = "INSERT INTO {index} ({index}, rank) VALUES ('rank', 'bm25(1.0, 0.0)')"
_FILLED = "INSERT INTO {index} (rowid, words, who) SELECT id, {words}, who FROM {table}"
_IN = "INSERT INTO {index} (rowid, words, who) VALUES (new.id, {new}, new.who)"
_OUT = (
    "INSERT INTO {index} ({index}, rowid, words, who) "
    "VALUES ('delete', old.id, {old}, old.who); "
    "UPDATE {index}_mark SET due = 1 WHERE due = 0"
)
_KEPT = (
    "CREATE TRIGGER {index}_in AFTER INSERT ON {table} BEGIN {into}; END",
    "CREATE TRIGGER {index}_out AFTER DELETE ON {table} BEGIN {out}; END",
    """
CREATE TRIGGER {index}_anew AFTER UPDATE OF {column}, spaced, who ON {table}
WHEN old.{column} <> new.{column} OR old.who <> new.who BEGIN {out}; {into}; END
""",
)


def who(agent_id: str, owner: str) -> str:
    """Write whose a row is as the words by which it is found: no two are alike."""
    return f"{belongs(agent_id)} {belongs(agent_id, owner)}"


def belongs(agent_id: str, owner: str = "") -> str:
    """Name an agent, or what it keeps on behalf of one owner."""
    return blake2b(f"{agent_id}\0{owner}".encode(), digest_size=8).hexdigest()


class WordIndex:
    """The words of a table's column, or of ``spaced`` where a row has that.

    Args:
        indexed: Has an ``id`` of whole numbers, and ``who`` it belongs to.
        words: Its column of words, as they are compared.
    """

    def __init__(self, indexed: Table, words: str) -> None:
        self._indexed, self._column, self._id = indexed.name, words, indexed.c.id
        self.name = f"{indexed.name}_index"
        self.table = table(
            self.name, *map(column, ("rowid", "words", "rank", self.name))
        )
        self.mark = Table(
            f"{self.name}_mark",
            indexed.metadata,
            Column("due", Integer, nullable=False),
        )
        self.due = select(self.mark.c.due)

    def listen(self) -> None:
        """Make the index with its tables, where they are SQLite's."""
        for each in self.made():
            event.listen(
                self.mark.metadata,
                "after_create",
                DDL(each).execute_if(dialect="sqlite"),  # type: ignore[no-untyped-call]
            )

    def joined(self, statement: Select[Any]) -> Select[Any]:
        """Keep the rows of a statement that match ``:match``, the best first."""
        mine = self.table.c
        hit: ColumnElement[bool] = mine[self.name].op("MATCH")(bindparam("match"))
        # By itself, so that what it finds is looked up, and not every row in it.
        best = select(mine.rowid, mine.rank).where(hit)
        best = best.order_by(mine.rank, mine.rowid.desc()).limit(BEST)
        hits = best.subquery()
        found = statement.join(hits, hits.c.rowid == self._id).order_by(None)
        return found.order_by(hits.c.rank, self._id.desc())

    def made(self) -> Iterator[str]:
        """Give what makes and fills the index of tables that are there."""
        names = {"index": self.name, "table": self._indexed, "column": self._column}
        plain, new, old = (self._words(of) for of in ("", "new.", "old."))
        into, out = _IN.format(new=new, **names), _OUT.format(old=old, **names)
        yield _MADE.format(**names)
        yield _RANKED.format(**names)
        yield _FILLED.format(words=plain, **names)
        for trigger in _KEPT:
            yield trigger.format(into=into, out=out, **names)
        yield f"INSERT INTO {self.name}_mark (due) VALUES (0)"  # nosec B608 # noqa: S608 - constant

    def _words(self, of: str) -> str:
        return f"CASE {of}spaced WHEN '' THEN {of}{self._column} ELSE {of}spaced END"


async def scrub(store: Store, index: WordIndex) -> bool:
    """Write some of an index anew; tell whether there may be more to write.

    What is deleted is found no more at once, but its words stay in the file until then.
    """
    due = await store.first(index.due)
    if due is None or not due[0]:
        return False
    return await store.write(partial(_merge, index=index))


def _merge(connection: Connection, index: WordIndex) -> bool:
    changes: Select[Any] = select(literal_column("total_changes()"))
    before = connection.execute(changes).scalar_one()
    merge = {index.name: "merge", "rank": -PAGES}
    connection.execute(insert(index.table).values(merge))
    if connection.execute(changes).scalar_one() - before >= LEAST:
        return True
    connection.execute(update(index.mark).values(due=0))
    return False
