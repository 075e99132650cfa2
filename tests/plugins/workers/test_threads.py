"""Calls that block have threads of their own, few, and none is waited for for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar

import pytest
from agenthost import Unavailable
from agenthost_workers.limits import Limits
from agenthost_workers.local import LocalWorkers

from .running import tool_threads, until

FIELD: ContextVar[str] = ContextVar("FIELD")


@pytest.fixture
async def let_go() -> AsyncIterator[threading.Event]:
    """What stuck calls wait for; set when the test ends."""
    event = threading.Event()
    yield event
    event.set()
    await until(lambda: not tool_threads())


async def test_a_call_gives_what_it_gives_and_raises_what_it_raises() -> None:
    workers = LocalWorkers()
    assert await workers.in_thread(int, "ff", base=16) == 255
    with pytest.raises(ValueError, match="invalid literal"):
        await workers.in_thread(int, "no number")
    with pytest.raises(RuntimeError, match="StopIteration"):
        await workers.in_thread(next, iter(()))


async def test_a_call_is_not_on_the_loops_thread_but_in_its_context() -> None:
    FIELD.set("turn 7")
    workers = LocalWorkers()
    assert await workers.in_thread(threading.get_ident) != threading.get_ident()
    assert await workers.in_thread(FIELD.get) == "turn 7"


async def test_stuck_calls_leave_room_for_others_up_to_the_bound(
    let_go: threading.Event,
) -> None:
    workers, inside = LocalWorkers(Limits(threads=3, patience=0.01)), []

    def stick() -> None:
        inside.append(1)
        let_go.wait()

    stuck = [asyncio.create_task(workers.in_thread(stick)) for _ in range(2)]
    await until(lambda: len(inside) == 2)
    assert await workers.in_thread(str.upper, "still here") == "STILL HERE"
    stuck.append(asyncio.create_task(workers.in_thread(stick)))
    await until(lambda: len(inside) == 3)
    with pytest.raises(Unavailable, match="all threads of tools are busy"):
        await workers.in_thread(str.upper, "no room")
    let_go.set()
    await asyncio.gather(*stuck)
    assert await workers.in_thread(str.upper, "again") == "AGAIN"


async def test_files_of_the_daemon_do_not_wait_for_stuck_tools(
    let_go: threading.Event,
) -> None:
    """The default executor, which boot, vault and routes use, stays free."""
    workers = LocalWorkers()
    stuck = [asyncio.create_task(workers.in_thread(let_go.wait)) for _ in range(16)]
    await until(lambda: len(tool_threads()) == 16)
    assert await asyncio.to_thread(str.upper, "free") == "FREE"
    let_go.set()
    await asyncio.gather(*stuck)


async def test_a_caller_that_leaves_keeps_the_place_taken_until_the_call_ends(
    let_go: threading.Event,
) -> None:
    workers = LocalWorkers(Limits(threads=1, patience=0.01))
    task = asyncio.create_task(workers.in_thread(let_go.wait))
    await until(tool_threads)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(Unavailable, match="busy"):
        await workers.in_thread(str.upper, "no room")
    let_go.set()
    await until(lambda: not tool_threads())
    assert await workers.in_thread(str.upper, "room") == "ROOM"


async def test_many_calls_wait_for_each_other(let_go: threading.Event) -> None:
    workers = LocalWorkers(Limits(threads=2, patience=30.0))
    calls = (workers.in_thread(str, number) for number in range(50))
    assert await asyncio.gather(*calls) == [str(number) for number in range(50)]


async def test_closing_leaves_a_stuck_call_behind(let_go: threading.Event) -> None:
    workers = LocalWorkers(Limits(farewell=0.01))
    stuck = asyncio.create_task(workers.in_thread(let_go.wait))
    await until(tool_threads)
    await workers.close()
    assert tool_threads()
    with pytest.raises(Unavailable, match="stopping"):
        await workers.in_thread(str.upper, "late")
    let_go.set()
    await stuck


async def test_a_machine_without_threads_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    workers = LocalWorkers(Limits(threads=1, patience=0.01))
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refused)
        with pytest.raises(Unavailable, match="no more threads"):
            await workers.in_thread(str.upper, "x")
    assert await workers.in_thread(str.upper, "x") == "X"
