"""Documents of strangers are read in processes that see nothing and can be ended."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from agenthost import Unavailable, Unreadable
from agenthost.testing import Daemons
from agenthost_workers import register_backend
from agenthost_workers.limits import Limits
from agenthost_workers.local import LocalWorkers

from .running import children, runs, until

READERS = f"{__package__}.readers"
SOON = 0.2

Opened = Callable[[Limits], LocalWorkers]


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    """Open workers with these limits; they are closed with the test."""
    made: list[LocalWorkers] = []

    def open_with(limits: Limits) -> LocalWorkers:
        made.append(LocalWorkers(limits))
        return made[-1]

    yield open_with
    for workers in made:
        await workers.close()


@pytest.fixture
def workers(opened: Opened) -> LocalWorkers:
    # A loaded machine is slow; only tests of the time use a short one.
    return opened(Limits(start=60.0, seconds=30.0))


async def read(workers: LocalWorkers, function: str, document: bytes = b"") -> str:
    return await workers.in_process(f"{READERS}:{function}", document)


async def pid_of(workers: LocalWorkers) -> int:
    return int(json.loads(await read(workers, "surroundings"))["pid"])


async def test_a_document_and_options_become_text(workers: LocalWorkers) -> None:
    text = await workers.in_process(f"{READERS}:shouted", b"grim", mark="é!")
    assert text == "GRIMé!"


async def test_a_large_document_arrives_whole(workers: LocalWorkers) -> None:
    assert len(await read(workers, "shouted", b"x" * 5_000_000)) == 5_000_000


async def test_the_process_sees_nothing_of_the_daemon(
    workers: LocalWorkers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENTHOST_API_KEY", "sk-secret")
    database = tmp_path / "agenthost.db"
    with database.open("w") as file:
        os.set_inheritable(file.fileno(), True)
        seen = json.loads(await read(workers, "surroundings"))
    assert "sk-secret" not in json.dumps(seen)
    assert set(seen["environ"]) <= {"LD_LIBRARY_PATH", "LC_CTYPE"}
    assert not [name for name in seen["open"] if "agenthost.db" in name]
    assert all(n.startswith(("pipe:", "/dev/null", "/proc")) for n in seen["open"])
    assert seen["kernel"] is False
    assert seen["cwd"] == "/"


async def test_the_process_writes_no_file(
    workers: LocalWorkers, tmp_path: Path
) -> None:
    with pytest.raises(Unreadable):
        await read(workers, "writing", bytes(tmp_path / "written"))
    assert (tmp_path / "written").read_text() == ""


async def test_a_process_that_answered_works_again(workers: LocalWorkers) -> None:
    assert await pid_of(workers) == await pid_of(workers)
    assert len(children()) == 1


async def test_nothing_is_started_before_there_is_work(workers: LocalWorkers) -> None:
    assert not children()


async def test_there_are_never_more_than_two(workers: LocalWorkers) -> None:
    await asyncio.gather(*(read(workers, "shouted") for _ in range(10)))
    assert len(children()) <= 2


@pytest.mark.parametrize(
    "function", ["endless", "greedy", "broken", "gone", "endless_answer", "missing"]
)
async def test_what_gives_no_text_is_unreadable_and_its_process_gone(
    opened: Opened, function: str
) -> None:
    seconds = SOON if function == "endless" else 30.0
    workers = opened(Limits(start=60.0, seconds=seconds))
    with pytest.raises(Unreadable, match="cannot be read"):
        await read(workers, function)
    assert not children()
    assert await workers.in_process(f"{READERS}:shouted", b"on", mark="") == "ON"


async def test_a_module_that_is_not_there_is_named_in_the_log(
    workers: LocalWorkers, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(Unreadable):
        await workers.in_process("nowhere.at.all:function", b"")
    assert "nowhere" in caplog.text


async def test_a_caller_that_leaves_takes_the_process_with_it(
    workers: LocalWorkers,
) -> None:
    task = asyncio.create_task(read(workers, "endless"))
    await until(children)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not children()


async def test_work_that_finds_no_process_is_told_so(opened: Opened) -> None:
    workers = opened(Limits(processes=1, patience=0.01, start=60.0, seconds=30.0))
    task = asyncio.create_task(read(workers, "endless"))
    await until(children)
    with pytest.raises(Unavailable, match="busy"):
        await read(workers, "shouted")
    task.cancel()


async def test_a_process_without_work_ends(opened: Opened) -> None:
    workers = opened(Limits(start=60.0, seconds=30.0, idle=0.01))
    await read(workers, "shouted")
    await until(lambda: not children())
    assert await read(workers, "shouted", b"again") == "AGAIN"


async def test_a_process_that_was_killed_is_replaced(workers: LocalWorkers) -> None:
    first = await pid_of(workers)
    os.kill(first, signal.SIGKILL)
    await until(lambda: not runs(first))
    replaced = False
    while not replaced:
        # The end of the process may reach us a moment after it happened.
        try:
            replaced = await pid_of(workers) != first
        except Unreadable:
            continue


async def test_closing_ends_everything() -> None:
    workers = LocalWorkers(Limits(start=60.0, seconds=30.0))
    await read(workers, "shouted")
    task = asyncio.create_task(read(workers, "endless"))
    await asyncio.sleep(0)
    await workers.close()
    assert not children()
    with pytest.raises((Unreadable, Unavailable)):
        await task
    with pytest.raises(Unavailable, match="stopping"):
        await read(workers, "shouted")


async def test_a_machine_out_of_processes_is_told_so(
    workers: LocalWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(Unavailable, match="no more processes"):
        await read(workers, "shouted")


async def test_a_daemon_offers_them_and_ends_them(daemons: Daemons) -> None:
    (backend,) = register_backend()
    assert backend.port == "workers"
    host = await daemons.start()
    await host.daemon.workers.in_process(f"{READERS}:shouted", b"")
    assert children()
    await host.daemon.stop()
    assert not children()


ORPHAN = f"""
import asyncio, os
from agenthost_workers.limits import Limits
from agenthost_workers.local import LocalWorkers

async def main():
    workers = LocalWorkers(Limits(start=60.0, seconds=0.5))
    await workers.in_process("{READERS}:shouted", b"")
    print(next(iter(workers._processes._all))._process.pid, flush=True)
    await workers.in_process("{READERS}:endless", b"")

asyncio.run(main())
"""


@pytest.mark.faults
@pytest.mark.parametrize("delay", [0.0, 0.2])
async def test_a_daemon_that_is_killed_leaves_no_process(delay: float) -> None:
    """Neither one that waits for work, nor one that has work without end."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ORPHAN, stdout=asyncio.subprocess.PIPE, env=environ
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    await asyncio.sleep(delay)
    parent.kill()
    await parent.communicate()
    await until(lambda: not runs(pid), patience=5.0)
