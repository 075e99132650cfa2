"""The hooks that furnish a daemon at its boot, offered by plugins made on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from agenthost import Host, SchemaSpec, ServiceSpec, Store, StoreBackend
from agenthost.testing import Daemons
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import Column, Integer, MetaData, Table, insert, select

from .entries import module

METADATA = MetaData()
GREETINGS = Table("greetings", METADATA, Column("id", Integer, primary_key=True))


@pytest.mark.setting("storage.url")
async def test_register_backend_serves_the_scheme_of_the_storage_url(
    daemons: Daemons, tmp_path: Path
) -> None:
    asked: list[str] = []

    async def open_elsewhere(url: str, schemas: Sequence[SchemaSpec]) -> Store:
        asked.append(url)
        return await SqliteStore.open(tmp_path / "elsewhere.db", schemas)

    spec = StoreBackend("elsewhere", open_elsewhere)
    running = await daemons.start(
        plugins=[module(register_backend=lambda: [spec])],
        config='[storage]\nurl = "elsewhere://there"\n',
    )
    await running.agent("ada")
    assert asked == ["elsewhere://there"]
    assert (tmp_path / "elsewhere.db").exists()
    assert not (running.daemon.data_dir / "agenthost.db").exists()


async def test_register_schema_makes_tables_that_outlive_their_plugin(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    plugin = module(register_schema=lambda: SchemaSpec("greetings", METADATA))
    first = await daemons.start(home=home, plugins=[plugin])
    await first.daemon.store.write(lambda c: c.execute(insert(GREETINGS).values(id=7)))
    await first.daemon.stop()
    second = await daemons.start(home=home)
    [row] = await second.daemon.store.read(select(GREETINGS.c.id))
    assert row["id"] == 7


async def test_register_service_runs_one_while_the_store_is_open(
    daemons: Daemons,
) -> None:
    told: list[tuple[str, bool]] = []

    async def start(daemon: Host) -> None:
        told.append(("start", await daemon.store.probe()))

    async def stop(daemon: Host) -> None:
        told.append(("stop", await daemon.store.probe()))

    service = ServiceSpec("watcher", start, stop)
    running = await daemons.start(plugins=[module(register_service=lambda: [service])])
    assert told == [("start", True)]
    await running.daemon.stop()
    assert told == [("start", True), ("stop", True)]


async def test_a_service_that_does_not_start_fails_its_plugin_alone(
    daemons: Daemons,
) -> None:
    async def start(daemon: Host) -> None:
        raise RuntimeError("no battery")

    async def stop(daemon: Host) -> None:
        raise AssertionError("it never started")

    service = ServiceSpec("watcher", start, stop)
    running = await daemons.start(plugins=[module(register_service=lambda: [service])])
    assert not running.daemon.plugins.healthy("plugin:made_on_the_spot")
    assert (await running.http.get("/api/health")).json()["status"] == "degraded"
