"""A database that is deleted or replaced while it is open is not written to."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from agenthost import Unavailable
from agenthost.testing import RunningDaemon
from agenthost_storage.sqlite import SqliteStore, writer

from .rows import SCHEMA, adding, names
from .test_faults import FailingDisk


@pytest.fixture(autouse=True)
def every_write_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LOOK_EVERY", 0.0)


def take_away(path: Path) -> None:
    path.unlink()


def move(path: Path, target: Path) -> None:
    path.rename(target)


def stands(path: Path) -> bool:
    return path.exists()


async def test_a_deleted_database_refuses_writes_and_says_what_to_do(
    store: SqliteStore, path: Path
) -> None:
    await store.write(adding("kept"))
    take_away(path)
    with pytest.raises(Unavailable, match="put its data folder back and start again"):
        await store.write(adding("lost"))
    assert not store.healthy
    assert not await store.probe()
    assert not stands(path)


async def test_the_probe_notices_a_deleted_database_before_any_write(
    store: SqliteStore, path: Path
) -> None:
    assert await store.probe()
    take_away(path)
    assert not await store.probe()
    assert not store.healthy


async def test_a_database_that_took_its_place_stays_as_it_is(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    move(path, tmp_path / "moved.db")
    other = await SqliteStore.open(path, [SCHEMA])
    with pytest.raises(Unavailable, match="replaced"):
        await store.write(adding("not here"))
    assert await names(other) == []
    await other.close()


async def test_no_new_file_is_made_after_a_storage_fault(
    store: SqliteStore, path: Path
) -> None:
    disk = FailingDisk(1)
    with pytest.raises(Unavailable):
        await store.write(disk)
    take_away(path)
    with pytest.raises(Unavailable, match="deleted"):
        await store.write(adding("lost"))
    assert not stands(path)


async def test_a_database_that_came_back_is_written_again(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    move(path, tmp_path / "moved.db")
    with pytest.raises(Unavailable):
        await store.write(adding("refused"))
    move(tmp_path / "moved.db", path)
    async with asyncio.timeout(30):
        while not store.healthy:
            await store.probe()
    await store.write(adding("back"))
    assert await names(store) == ["back"]


async def test_writes_close_together_share_one_look(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOOK_EVERY", 3_600.0)
    looks: list[bool] = []

    def look() -> bool:
        looks.append(True)
        return True

    monkeypatch.setattr(store._presence, "holds", look)
    for number in range(20):
        await store.write(adding(str(number)))
    assert len(looks) == 1


async def test_a_message_is_refused_when_the_home_is_gone(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    shutil.rmtree(daemon.daemon.data_dir)
    answer = await daemon.http.post(
        f"/api/agents/{agent.id}/message", json={"message": "hello"}
    )
    assert answer.status_code == 503
    assert "data folder" in answer.json()["error"]
    assert (await daemon.http.get("/api/health")).json()["status"] == "degraded"
    detail = (await daemon.http.get("/api/health/detail")).json()
    assert detail["database"] == "error"
