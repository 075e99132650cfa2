"""A write function that holds up all others is named."""

from __future__ import annotations

from functools import partial

import pytest
from agenthost.testing import RunningDaemon
from agenthost_storage.sqlite import SqliteStore, slow
from sqlalchemy import Connection

from .rows import adding


@pytest.fixture(autouse=True)
def every_write_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "LONG", 0.0)


def fail(connection: Connection, name: str) -> None:
    raise ValueError(name)


async def test_a_slow_write_is_counted_and_named_with_its_plugin(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        await store.write(adding(name))
    [write] = store.slow
    assert write.name == "tests.plugins.storage.sqlite.rows.put"
    assert write.count == 2
    assert write.longest > 0
    assert "rows.put of the plugin tests took" in caplog.text


async def test_a_slow_write_that_fails_is_named_too(store: SqliteStore) -> None:
    with pytest.raises(ValueError, match="no"):
        await store.write(partial(partial(fail, name="no")))
    assert [write.name.rpartition(".")[2] for write in store.slow] == ["fail"]


async def test_quick_writes_are_not_named(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow, "LONG", 3_600.0)
    await store.write(adding("a"))
    assert store.slow == []


class Lasting:
    """A function that takes as long as it says, measured by a clock of the test."""

    now = 0.0

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, connection: Connection) -> None:
        Lasting.now += self.seconds


async def test_only_the_slowest_names_are_kept(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow, "MOST_NAMES", 2)
    monkeypatch.setattr(slow, "perf_counter", lambda: Lasting.now)
    for seconds in (0.5, 2.0, 1.0):
        kind = type(f"Lasting{seconds:g}", (Lasting,), {})
        await store.write(kind(seconds))
    assert [(write.longest, write.count) for write in store.slow] == [
        (2.0, 1),
        (1.0, 1),
    ]


async def test_health_names_the_slow_writes(daemon: RunningDaemon) -> None:
    await daemon.agent()
    detail = (await daemon.http.get("/api/health/detail")).json()
    names = {row["name"] for row in detail["slow_writes"]}
    assert "agenthost_records.agents._add" in names
    assert {"name", "count", "longest_ms"} == set(detail["slow_writes"][0])
