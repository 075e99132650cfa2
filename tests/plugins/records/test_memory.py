"""Memory by key: limits, namespaces, damage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    OPERATOR,
    UNTRUSTED,
    Context,
    InvalidInput,
    NotFound,
    Principal,
    PrincipalKind,
    SystemClock,
    TooLarge,
    Unavailable,
)
from agenthost_records.memory import KeyValues
from agenthost_records.schemas import MEMORY
from agenthost_records.tables import kv as table
from agenthost_storage.sqlite import SqliteStore
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select, update

BY = Context(OPERATOR)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", [MEMORY])
    yield store
    await store.close()


@pytest.fixture
def kv(store: SqliteStore) -> KeyValues:
    return KeyValues(store, SystemClock())


async def test_a_value_is_kept_and_replaced(kv: KeyValues, store: SqliteStore) -> None:
    await kv.set(BY, "a", "color", {"name": "blue"})
    assert (await kv.get("a", "color"))[0] == {"name": "blue"}
    await kv.set(BY, "a", "color", None)
    assert (await kv.get("a", "color"))[0] is None
    row = await store.first(select(table.c.version))
    assert row is not None
    assert row["version"] == 2


async def test_a_value_keeps_who_put_it_there_and_its_labels(
    kv: KeyValues, store: SqliteStore
) -> None:
    agent = Principal(PrincipalKind.AGENT, "ada")
    caller = Principal(PrincipalKind.API_KEY, "ci")
    labels = UNTRUSTED | {'odd "one"\n', "é"}
    by = Context(agent, caller=caller, labels=labels)
    await kv.set(by, "a", "note", "read on the web")
    assert await kv.get("a", "note") == ("read on the web", labels)
    row = await store.first(select(table.c.owner, table.c.labels))
    assert row is not None
    assert tuple(row) == ("api_key:ci", '["odd \\"one\\"\\n","untrusted","é"]')
    await kv.set(BY, "a", "note", "written by hand")
    assert await kv.get("a", "note") == ("written by hand", frozenset())
    row = await store.first(select(table.c.owner, table.c.labels))
    assert row is not None
    assert tuple(row) == ("operator:operator", "")


async def test_namespaces_do_not_see_each_other(kv: KeyValues) -> None:
    await kv.set(BY, "a", "x/y", 1)
    await kv.set(BY, "b", "x/y", 2)
    await kv.set(BY, "a", "b", 3)
    assert await kv.items("a") == [("b", 3), ("x/y", 1)]
    assert await kv.items("nobody") == []


async def test_a_key_without_a_value_is_named(kv: KeyValues) -> None:
    with pytest.raises(NotFound, match="key not found: lost"):
        await kv.get("a", "lost")
    with pytest.raises(NotFound, match="key not found: lost"):
        await kv.delete(BY, "a", "lost")
    await kv.set(BY, "a", "found", 1)
    await kv.delete(BY, "a", "found")
    with pytest.raises(NotFound):
        await kv.get("a", "found")


@pytest.mark.parametrize("key", ["", "x" * 257, "é" * 129, "\ud800"])
async def test_a_key_out_of_bounds_is_refused(kv: KeyValues, key: str) -> None:
    with pytest.raises(InvalidInput, match=r"^key: "):
        await kv.set(BY, "a", key, 1)
    with pytest.raises(InvalidInput, match=r"^key: "):
        await kv.get("a", key)
    with pytest.raises(InvalidInput, match=r"^key: "):
        await kv.delete(BY, "a", key)


async def test_the_longest_key_and_value_fit(kv: KeyValues) -> None:
    longest = "x" * (1024 * 1024 - 2)
    await kv.set(BY, "a", "é" * 128, longest)
    assert (await kv.get("a", "é" * 128))[0] == longest
    with pytest.raises(TooLarge, match="1048577 bytes"):
        await kv.set(BY, "a", "big", longest + "x")


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1, 2}, b"x", "\ud800", nested(101), nested(5000)],
)
async def test_what_is_not_json_is_refused(kv: KeyValues, value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^value: "):
        await kv.set(BY, "a", "key", value)


async def test_deep_values_up_to_the_limit_are_kept(kv: KeyValues) -> None:
    await kv.set(BY, "a", "deep", nested(99))
    assert (await kv.get("a", "deep"))[0] == nested(99)


async def test_a_damaged_value_is_never_served(
    kv: KeyValues, store: SqliteStore
) -> None:
    await kv.set(BY, "a", "key", "good")
    await store.write(lambda c: c.execute(update(table).values(value='"evil"')))
    with pytest.raises(Unavailable, match="'key' is damaged"):
        await kv.get("a", "key")
    with pytest.raises(Unavailable, match="'key' is damaged"):
        await kv.items("a")
    await kv.set(BY, "a", "key", "mended")
    assert (await kv.get("a", "key"))[0] == "mended"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
KEYS = st.text(min_size=1, max_size=60)


def test_any_json_comes_back_as_it_went(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        store = runner.run(SqliteStore.open(tmp_path / "agenthost.db", [MEMORY]))
        kv = KeyValues(store, SystemClock())

        async def round_trip(written: dict[str, Any]) -> list[tuple[str, Any]]:
            await store.write(lambda connection: connection.execute(delete(table)))
            await asyncio.gather(*(kv.set(BY, "a", k, v) for k, v in written.items()))
            assert [(await kv.get("a", key))[0] for key in written] == [
                *written.values()
            ]
            return await kv.items("a")

        @settings(max_examples=15, deadline=None)
        @given(written=st.dictionaries(KEYS, JSON, max_size=8))
        def holds(written: dict[str, Any]) -> None:
            found = runner.run(round_trip(written))
            assert found == sorted(written.items(), key=lambda pair: pair[0].encode())

        holds()
        runner.run(store.close())
