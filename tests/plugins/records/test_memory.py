"""Memory by key: limits, namespaces, damage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agenthost import InvalidInput, NotFound, SystemClock, TooLarge, Unavailable
from agenthost_records.memory import KeyValues
from agenthost_records.tables import MEMORY
from agenthost_records.tables import kv as table
from agenthost_storage.sqlite import SqliteStore
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select, update


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "agenthost.db", [MEMORY])
    yield store
    await store.close()


@pytest.fixture
def kv(store: SqliteStore) -> KeyValues:
    return KeyValues(store, SystemClock())


async def test_a_value_is_kept_and_replaced(kv: KeyValues, store: SqliteStore) -> None:
    await kv.set("a", "color", {"name": "blue"})
    assert await kv.get("a", "color") == {"name": "blue"}
    await kv.set("a", "color", None)
    assert await kv.get("a", "color") is None
    row = await store.first(select(table.c.version))
    assert row is not None
    assert row["version"] == 2


async def test_namespaces_do_not_see_each_other(kv: KeyValues) -> None:
    await kv.set("a", "x/y", 1)
    await kv.set("b", "x/y", 2)
    await kv.set("a", "b", 3)
    assert await kv.items("a") == [("b", 3), ("x/y", 1)]
    assert await kv.items("nobody") == []


async def test_a_key_without_a_value_is_named(kv: KeyValues) -> None:
    with pytest.raises(NotFound, match="key not found: lost"):
        await kv.get("a", "lost")
    with pytest.raises(NotFound, match="key not found: lost"):
        await kv.delete("a", "lost")
    await kv.set("a", "found", 1)
    await kv.delete("a", "found")
    with pytest.raises(NotFound):
        await kv.get("a", "found")


@pytest.mark.parametrize("key", ["", "x" * 257, "é" * 129, "\ud800"])
async def test_a_key_out_of_bounds_is_refused(kv: KeyValues, key: str) -> None:
    with pytest.raises(InvalidInput, match=r"^key: "):
        await kv.set("a", key, 1)
    with pytest.raises(InvalidInput, match=r"^key: "):
        await kv.get("a", key)
    with pytest.raises(InvalidInput, match=r"^key: "):
        await kv.delete("a", key)


async def test_the_longest_key_and_value_fit(kv: KeyValues) -> None:
    longest = "x" * (1024 * 1024 - 2)
    await kv.set("a", "é" * 128, longest)
    assert await kv.get("a", "é" * 128) == longest
    with pytest.raises(TooLarge, match="1048577 bytes"):
        await kv.set("a", "big", longest + "x")


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
        await kv.set("a", "key", value)


async def test_deep_values_up_to_the_limit_are_kept(kv: KeyValues) -> None:
    await kv.set("a", "deep", nested(99))
    assert await kv.get("a", "deep") == nested(99)


async def test_a_damaged_value_is_never_served(
    kv: KeyValues, store: SqliteStore
) -> None:
    await kv.set("a", "key", "good")
    await store.write(lambda c: c.execute(update(table).values(value='"evil"')))
    with pytest.raises(Unavailable, match="'key' is damaged"):
        await kv.get("a", "key")
    with pytest.raises(Unavailable, match="'key' is damaged"):
        await kv.items("a")
    await kv.set("a", "key", "mended")
    assert await kv.get("a", "key") == "mended"


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
            await asyncio.gather(*(kv.set("a", k, v) for k, v in written.items()))
            assert [await kv.get("a", key) for key in written] == [*written.values()]
            return await kv.items("a")

        @settings(max_examples=15, deadline=None)
        @given(written=st.dictionaries(KEYS, JSON, max_size=8))
        def holds(written: dict[str, Any]) -> None:
            found = runner.run(round_trip(written))
            assert found == sorted(written.items(), key=lambda pair: pair[0].encode())

        holds()
        runner.run(store.close())
