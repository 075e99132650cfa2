"""kill -9 at a step boundary: finished steps do not run again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agenthost import JobState, SystemClock
from agenthost_jobs.queue import EmbeddedJobs
from agenthost_jobs.schema import SCHEMA
from agenthost_storage.sqlite import SqliteStore

from tests.plugins.storage.sqlite.rows import SCHEMA as ROWS
from tests.plugins.storage.sqlite.rows import names


def run_worker(database: Path, ledger: Path, deadly: int) -> int:
    return run("worker", str(database), str(ledger), str(deadly))


def run(module: str, *arguments: str) -> int:
    command = [sys.executable, "-m", f"tests.plugins.jobs.{module}", *arguments]
    return subprocess.run(command, check=False, timeout=60).returncode


async def test_steps_happen_once_across_kills(tmp_path: Path) -> None:
    database, ledger = tmp_path / "agenthost.db", tmp_path / "ledger"
    for deadly in (0, 3, 9):
        assert run_worker(database, ledger, deadly) == -signal.SIGKILL
    assert run_worker(database, ledger, -1) == 0
    assert ledger.read_text().split() == [str(number) for number in range(10)]
    store = await SqliteStore.open(database, [SCHEMA, ROWS])
    assert await names(store) == [f"step {number}" for number in range(10)]
    [job] = await EmbeddedJobs(store, SystemClock()).list()
    await store.close()
    assert (job.state, job.result) == (JobState.DONE, "finished")
    assert (job.attempts, job.epoch) == (2, 4)


@pytest.mark.faults
async def test_a_job_that_kills_its_process_is_given_up(tmp_path: Path) -> None:
    database, ledger = tmp_path / "agenthost.db", tmp_path / "ledger"
    ends = [run("suicide", str(database), str(ledger)) for _ in range(6)]
    assert ends == [-signal.SIGKILL] * 3 + [0] * 3
    assert ledger.read_text().split() == ["1", "2", "3"]
    store = await SqliteStore.open(database, [SCHEMA])
    [job] = await EmbeddedJobs(store, SystemClock()).list()
    await store.close()
    assert job.state is JobState.POISONED
