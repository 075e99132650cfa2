"""The disk and other processes misbehave."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agenthost import Unavailable
from agenthost_storage.sqlite import SqliteStore, connect
from sqlalchemy import Connection

from .rows import SCHEMA, adding, names

FILL = """
import asyncio, sys
from pathlib import Path
from agenthost import StorageFull
from agenthost_storage.sqlite import SqliteStore
from tests.plugins.storage.sqlite.rows import SCHEMA, adding, names

async def main():
    folder = Path(sys.argv[1])
    store = await SqliteStore.open(folder / "agenthost.db", [SCHEMA])
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * 200_000)
    done = []
    while True:
        try:
            await store.write(adding(f"{len(done)}" + "x" * 5000))
        except StorageFull:
            break
        done.append(len(done))
    assert not store.healthy
    assert len(await names(store)) == len(done)
    ballast.unlink()
    while not store.healthy:
        assert await store.probe()
    await store.write(adding("room again"))
    assert len(await names(store)) == len(done) + 1
    await store.close()
    print("recovered")

asyncio.run(main())
"""


def test_a_full_disk_refuses_writes_and_recovers(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    script = f'mount -t tmpfs -o size=1m none "{tmp_path}" && exec "$@"'
    prefix = [str(unshare), "-Urm", "sh", "-c", script, "sh"]
    if not unshare or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("this machine allows no tmpfs in a user namespace")
    done = subprocess.run(
        [*prefix, sys.executable, "-c", FILL, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "recovered\n", done.stderr


SYNC_FAILS = """
import asyncio, sys
from pathlib import Path
from agenthost import Unavailable
from agenthost_storage.sqlite import SqliteStore
from tests.plugins.storage.sqlite.rows import SCHEMA, adding

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]), [SCHEMA])
    for number in range(40):
        try:
            await store.write(adding(f"{number}"))
        except Unavailable:
            assert not store.healthy
            print("refused", number, flush=True)
        else:
            assert store.healthy
            print("kept", number, flush=True)
    await store.close()

asyncio.run(main())
"""


def run_with_failing_sync(path: Path, place: int) -> subprocess.CompletedProcess[str]:
    strace = shutil.which("strace")
    traced = [
        str(strace),
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fdatasync,fsync",
    ]
    if not strace or subprocess.run([*traced, "true"], check=False).returncode:
        pytest.skip("this machine cannot trace a process")
    fault = f"inject=fdatasync,fsync:error=EIO:when={place}"
    return subprocess.run(
        [*traced, "-e", fault, sys.executable, "-c", SYNC_FAILS, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.faults
@pytest.mark.parametrize("place", [12, 20, 33])
async def test_a_sync_that_fails_is_never_a_success(path: Path, place: int) -> None:
    done = run_with_failing_sync(path, place)
    assert done.returncode == 0, done.stderr
    told = [line.split() for line in done.stdout.splitlines()]
    refused = [number for verdict, number in told if verdict == "refused"]
    assert len(told) == 40
    assert len(refused) == 1
    store = await SqliteStore.open(path, [SCHEMA])
    found = await names(store)
    await store.close()
    assert [number for verdict, number in told if verdict == "kept"] == found


async def test_a_lock_held_for_a_moment_is_waited_for(
    store: SqliteStore, path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        write = store.write(adding("patient"))
        assert await names(store) == []
        assert not write.done()
        other.execute("ROLLBACK")
        await write
    assert await names(store) == ["patient"]


async def test_a_lock_held_too_long_is_told_and_the_next_write_works(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "BUSY_TIMEOUT", 0.05)
    store = await SqliteStore.open(path, [SCHEMA])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked by another process"):
            await store.write(adding("refused"))
        assert not store.healthy
        assert await store.probe()
    await store.write(adding("next"))
    assert store.healthy
    assert await names(store) == ["next"]
    await store.close()


class FailingDisk:
    """Stands in for a commit whose fsync fails, as often as told."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.opened = 0

    def __call__(self, connection: Connection) -> None:
        if self.times:
            self.times -= 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error


def counting(function: Callable[..., Any], opened: list[Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        opened.append(arguments)
        return function(*arguments)

    return call


async def test_nothing_succeeds_on_a_failed_fsync_and_the_file_is_reopened(
    store: SqliteStore,
) -> None:
    opened: list[Any] = []
    store._writer._connect = counting(store._writer._connect, opened)
    disk = FailingDisk(1)
    writes = [store.write(adding("lost")), store.write(disk)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(outcomes[1], Unavailable)
    assert not store.healthy
    await store.write(adding("next"))
    assert len(opened) == 1
    assert store.healthy
    found = await names(store)
    assert ("lost" in found) == (outcomes[0] is None)
    assert "next" in found
