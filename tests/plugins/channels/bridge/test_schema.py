"""A home of an earlier release gets the tables that a new one has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agenthost import SchemaSpec
from agenthost_channels.bridge.schema import SCHEMA
from agenthost_channels.bridge.tables import OPEN_IN
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import Connection, Index, MetaData, insert

from tests.plugins.storage.sqlite.upgrades import shape

LATER = {"files_in", "files_out", "drafts", "switched_off"}


def earlier() -> MetaData:
    """The tables before files: with other indexes of what is open."""
    known = MetaData()
    for name, table in SCHEMA.metadata.tables.items():
        if name.removeprefix("channel_") not in LATER:
            table.to_metadata(known)
    for box in ("channel_inbox", "channel_outbox"):
        table = known.tables[box]
        [now] = [each for each in table.indexes if each.name == f"{box}_open"]
        table.indexes.remove(now)
        Index(f"{box}_open", table.c.channel, table.c.state, table.c.seq)
    return known


def test_the_step_makes_what_a_new_home_has() -> None:
    assert shape(earlier(), SCHEMA) == shape(SCHEMA.metadata)


async def test_what_waited_in_an_earlier_home_is_still_there(tmp_path: Path) -> None:
    path, before = tmp_path / "db", SchemaSpec("channels", earlier())
    store = await SqliteStore.open(path, [before])

    def keep(connection: Connection) -> None:
        row: dict[str, Any] = dict.fromkeys(
            (each.name for each in earlier().tables["channel_inbox"].c), ""
        )
        row |= {"key": "k", "seq": 1, "channel": "pager", "state": "new"}
        row |= {"received_at": 1.0}
        connection.execute(insert(earlier().tables["channel_inbox"]).values(row))

    await store.write(keep)
    await store.close()
    store = await SqliteStore.open(path, [SCHEMA])
    try:
        [found] = await store.read(OPEN_IN, {"channel": "pager"})
        assert (found["key"], found["has_files"]) == ("k", 0)
        assert not await store.read("SELECT 1 FROM channel_files_out")
    finally:
        await store.close()
