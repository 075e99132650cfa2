"""kill -9 at any point: nothing acknowledged is lost, nothing doubled."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from agenthost_storage.sqlite import SqliteStore

from .rows import SCHEMA, names

POINTS = 5


def killed_after(path: Path, acknowledged: int, start: int) -> list[str]:
    """Run the committer, kill it behind so many lines, and give what it promised."""
    command = [
        sys.executable,
        "-m",
        "tests.plugins.storage.sqlite.committer",
        str(path),
    ]
    with subprocess.Popen([*command, str(start)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(acknowledged)]
        process.kill()
        lines += process.stdout.readlines()
    return [line.decode().strip() for line in lines if line.endswith(b"\n")]


async def test_what_was_acknowledged_outlives_kill_9(path: Path) -> None:
    chance = random.Random(7)
    promised: list[str] = []
    for start in range(POINTS):
        promised += killed_after(path, chance.randint(1, 500), start)
        store = await SqliteStore.open(path, [SCHEMA])
        found = await names(store)
        await store.close()
        assert len(found) == len(set(found))
        assert not set(promised) - set(found)
        assert len(found) - len(promised) <= 16 * (start + 1)
