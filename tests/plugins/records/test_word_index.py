"""The index of words: every script is found, the best first, and nothing stays."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agenthost import OPERATOR, Context, Principal, SchemaSpec, SystemClock
from agenthost.testing import ManualClock
from agenthost_records.memory import KeyValues, erase_namespace
from agenthost_records.retention import Retention
from agenthost_records.schemas import KERNEL, MEMORY, RETENTION, SEARCH
from agenthost_records.session_rows import erase
from agenthost_records.tables import messages, sessions
from agenthost_records.texts import MessageTexts
from agenthost_storage.sqlite import SqliteStore
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, insert, text

from tests.plugins.storage.sqlite.upgrades import shape

BY = Context(OPERATOR)
ME = BY.owner
SCHEMAS = [KERNEL, MEMORY, RETENTION, SEARCH]
FOUND = {
    "Chinese": ("我们在上海的办公室明天开会", ["上海", "办公室", "会", "上海 开会"]),
    "Japanese": ("東京タワーで会いましょう", ["東京", "タワー", "会い"]),
    "Thai": ("เราจะพบกันที่กรุงเทพ", ["กรุงเทพ", "พบกัน"]),
    "Korean": ("내일 서울에서 만나요", ["서울", "만나요"]),
    "Arabic": ("قرأت كِتَابًا عن التاريخ", ["كتاب", "التاريخ", "كِتَاب", "تاريخ"]),
    "Hebrew": ("שָׁלוֹם לכולם", ["שלום", "שָׁלוֹם"]),
    "German": (
        "Müller fährt über die Straße zur Autobahnauffahrt",
        ["müller", "MÜLLER", "muller", "u\u0308ber", "strasse", "STRAẞE", "auffahrt"],
    ),
    "Russian": ("Встреча в Москве, ёлка", ["москве", "МОСКВЕ", "ёлка"]),
    "Greek": ("Ο ΟΔΥΣΣΕΎΣ ταξιδεύει", ["οδυσσεύς", "ταξιδεύει"]),
    "Hindi": ("हिन्दी में लिखा", ["हिन्दी", "लिखा"]),
    "signs": (
        "write to max@example.org, C++ or #42",
        ["max@example.org", "c++", "#42"],
    ),
}


def by(owner: str) -> Context:
    return Context(Principal("api_key", owner))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agenthost.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, SCHEMAS)
    yield store
    await store.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def kv(store: SqliteStore, clock: ManualClock) -> KeyValues:
    return KeyValues(store, clock)


async def keys(
    kv: KeyValues, query: str, owner: str = ME, agent: str = "a"
) -> list[str]:
    return [each["key"] for each in await kv.search(owner, agent, query)]


def indexed(path: Path, index: str = "kv_index") -> list[tuple[int, str]]:
    """Read which rows and words an index has: what SQLite itself finds in it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            f"create virtual table temp.v using fts5vocab(main, {index}, instance)"
        )
        found = "select distinct doc, term from temp.v where col = 'words'"
        return sorted(connection.execute(found))


@pytest.mark.parametrize("language", FOUND)
async def test_words_of_every_script_are_found(kv: KeyValues, language: str) -> None:
    said, queries = FOUND[language]
    await kv.set(BY, "a", "k", said)
    await kv.set(BY, "a", "other", "nothing of the kind")
    for query in queries:
        assert await keys(kv, query) == ["k"], query


async def test_words_apart_are_not_taken_for_one(kv: KeyValues) -> None:
    await kv.set(BY, "a", "k", "海上有风")
    assert await keys(kv, "上海") == []
    await kv.set(BY, "a", "c", "C is no C++")
    await kv.set(BY, "a", "d", "C is C")
    assert await keys(kv, "c++") == ["c"]


async def test_the_best_comes_first_however_old(
    kv: KeyValues, clock: ManualClock
) -> None:
    await kv.set(BY, "a", "best", "heron, heron and heron")
    for number in range(30):
        await clock.advance(60)
        await kv.set(BY, "a", f"k{number}", "a heron " + "among other birds " * 20)
    found = await keys(kv, "heron")
    assert found[:2] == ["best", "k29"]
    assert len(found) == 20


async def test_what_words_begin_comes_before_what_they_are_within(
    kv: KeyValues,
) -> None:
    await kv.set(BY, "a", "within", "Autobahn")
    assert await keys(kv, "bahn") == ["within"]
    await kv.set(BY, "a", "begun", "Bahnhof")
    assert await keys(kv, "bahn") == ["begun"]


async def test_a_change_that_fails_leaves_the_index_as_it_was(
    kv: KeyValues, path: Path
) -> None:
    await kv.set(BY, "a", "k", "heron")
    before = indexed(path)

    def fails(_: Connection) -> None:
        raise RuntimeError("as it writes")

    for change in (kv.set(BY, "a", "k", "owl", fails), kv.delete(BY, "a", "k", fails)):
        with pytest.raises(RuntimeError):
            await change
    assert indexed(path) == before == [(1, "heron"), (1, "k")]
    assert await keys(kv, "heron") == ["k"]


async def test_what_is_erased_leaves_the_index_in_the_same_commit(
    store: SqliteStore, kv: KeyValues, path: Path
) -> None:
    await kv.set(BY, "a", "k", "heron")
    await kv.set(BY, "b", "k", "owl")
    await store.write(lambda connection: erase_namespace(connection, "a"))
    assert indexed(path) == [(2, "k"), (2, "owl")]
    await kv.delete(BY, "b", "k")
    assert indexed(path) == []


async def say(store: SqliteStore, session: str, *said: str) -> None:
    row = {"id": session, "agent_id": "a", "ephemeral": 0, "thinking": 0}
    numbers = dict.fromkeys(("message_count", "first_seq", "next_seq"), 0)
    times = {"created_at": 0.0, "updated_at": 0.0}
    rows = [
        {
            "session_id": session,
            "seq": seq,
            "role": "user",
            "parts": f'[{{"type": "text", "text": "{each}"}}]',
            "digest": "",
            "partial": 0,
            "created_at": 0.0,
            "owner": ME,
        }
        for seq, each in enumerate(said)
    ]

    def write(connection: Connection) -> None:
        connection.execute(insert(sessions).values(**row, **numbers, **times))
        connection.execute(insert(messages), rows)

    await store.write(write)


async def test_an_erased_session_leaves_the_index_in_the_same_commit(
    store: SqliteStore, kv: KeyValues, path: Path
) -> None:
    await say(store, "s", "a heron", "上海")
    await say(store, "t", "an owl")
    await MessageTexts(store).catch_up()
    assert len({doc for doc, _ in indexed(path, "message_texts_index")}) == 3
    await store.write(lambda connection: erase(connection, "s"))
    left = indexed(path, "message_texts_index")
    assert left == [(3, "an"), (3, "owl")]
    assert [each["text"] for each in await kv.search(ME, "a", "owl")] == ["an owl"]
    assert await kv.search(ME, "a", "heron") == []


async def test_what_was_deleted_is_soon_gone_from_the_file(
    store: SqliteStore, kv: KeyValues, path: Path
) -> None:
    for number in range(50):
        await kv.set(BY, "a", f"k{number}", f"heron owl{number}")
    await kv.set(BY, "a", "canary", "canaryword")
    await kv.set(BY, "a", "last", "finch")
    await kv.delete(BY, "a", "canary")
    await Retention(store, HurriedClock()).once()
    with closing(sqlite3.connect(path)) as connection:
        blocks = b"".join(
            b for (b,) in connection.execute("select block from kv_index_data")
        )
        due = connection.execute("select due from kv_index_mark").fetchone()
    assert b"heron" in blocks
    assert b"canaryword" not in blocks
    assert due == (0,)
    assert await keys(kv, "owl17") == ["k17"]


class HurriedClock(ManualClock):
    """Nobody waits: whoever sleeps moves the time."""

    async def sleep(self, seconds: float) -> None:
        await self.advance(seconds)


WORDS = ["heron", "owl", "上海", "über", "c++"]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["x", "y"]),
        st.sampled_from(["a", "b", "shared"]),
        st.sampled_from(["k", "l"]),
        st.lists(st.sampled_from(WORDS), max_size=3),
    ),
    max_size=12,
)


@settings(max_examples=8, deadline=None)
@given(changes=CHANGES)
async def test_an_owner_finds_all_of_its_own_and_nothing_of_others(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("index") / "a.db"
    store = await SqliteStore.open(path, SCHEMAS)
    kv = KeyValues(store, SystemClock())
    kept: dict[tuple[str, str], tuple[str, list[str]]] = {}
    try:
        for owner, agent, key, words in changes:
            if words:
                await kv.set(by(owner), agent, key, " ".join(words))
                kept[agent, key] = owner, words
            elif kept.pop((agent, key), None):
                await kv.delete(by(owner), agent, key)
        for owner in ("x", "y"):
            for agent in ("a", "b"):
                for word in WORDS:
                    found = await keys(kv, word, by(owner).owner, agent)
                    assert sorted(found) == sorted(
                        key
                        for (where, key), (whose, words) in kept.items()
                        if where in (agent, "shared")
                        and whose == owner
                        and word in words
                    )
        assert len({doc for doc, _ in indexed(path)}) == len(kept)
    finally:
        await store.close()


def test_the_step_of_messages_makes_what_a_new_home_has() -> None:
    before = earlier()
    for table in KERNEL.metadata.tables.values():
        table.to_metadata(before)
    upgraded, made = shape(before, SEARCH), shape(SEARCH.metadata)
    assert {name: upgraded[name] for name in made} == made
    assert upgraded.keys() - made.keys() == set(KERNEL.metadata.tables)


async def test_what_an_earlier_home_has_said_is_indexed_once(path: Path) -> None:
    before = SchemaSpec("search", earlier())
    store = await SqliteStore.open(path, [KERNEL, MEMORY, before])
    await say(store, "s", "the heron", "我在上海")

    def keep(connection: Connection) -> None:
        row = text("insert into message_texts values (:id, 's', :said)")
        for number, said in ((1, "the heron"), (2, "我在上海")):
            connection.execute(row, {"id": number, "said": said})
        connection.execute(text("insert into message_texts_mark values (2)"))

    await store.write(keep)
    await store.close()
    store = await SqliteStore.open(path, [KERNEL, MEMORY, SEARCH])
    try:
        words = {term for _, term in indexed(path, "message_texts_index")}
        assert words == {"the", "heron", "我", "在", "上", "海"}
        found = await KeyValues(store, SystemClock()).search(ME, "a", "上海")
        assert [each["text"] for each in found] == ["我在上海"]
    finally:
        await store.close()


def earlier() -> MetaData:
    """The tables of texts before there was an index."""
    metadata = MetaData()
    Table(
        "message_texts",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("session_id", Text, nullable=False, index=True),
        Column("text", Text, nullable=False),
    )
    Table("message_texts_mark", metadata, Column("reached", Integer, nullable=False))
    return metadata
