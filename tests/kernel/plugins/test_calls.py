"""What plugins start and stop is awaited for so long, whatever it does meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from agenthost import PluginError, Unavailable
from agenthost.plugins.calls import guarded_each, within


async def hangs() -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


async def leaves(error: type[BaseException]) -> None:
    raise error


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def answers() -> int:
    return 7


async def test_a_call_that_overruns_is_left_behind_and_the_rest_is_made_once() -> None:
    gate, made = threading.Event(), list[str]()

    def blocks() -> None:
        gate.wait()
        made.append("late")

    calls: list[tuple[str, Callable[[], object]]] = [
        ("a", partial(made.append, "a")),
        ("b", blocks),
        ("c", lambda: 3),
        ("d", partial(made.append, "d")),
    ]
    outcomes = await guarded_each(calls, 0.5)
    assert outcomes == [
        (None, None),
        (None, "b took longer than 0.5 s"),
        (3, None),
        (None, None),
    ]
    gate.set()
    for thread in (t for t in threading.enumerate() if t.name == "a"):
        thread.join()
    assert made == ["a", "d", "late"]
    assert len(outcomes) == 4


async def test_who_no_longer_waits_ends_the_round() -> None:
    gate, begun, made = threading.Event(), threading.Event(), list[str]()

    def blocks() -> None:
        begun.set()
        gate.wait()

    calls: list[tuple[str, Callable[[], object]]] = [
        ("gone", blocks),
        ("next", partial(made.append, "next")),
    ]
    waiting = asyncio.create_task(guarded_each(calls, 30))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()
    await asyncio.wait({waiting})
    gate.set()
    for thread in (t for t in threading.enumerate() if t.name == "gone"):
        thread.join()
    assert made == []


async def test_an_answer_in_time_is_handed_on() -> None:
    assert await within(10, "it", answers()) == 7


async def test_what_ignores_its_cancellation_is_left_behind() -> None:
    before = asyncio.all_tasks()
    with pytest.raises(Unavailable, match=r"service x took longer than 0\.01 s"):
        await within(0.01, "service x", hangs())
    (left,) = asyncio.all_tasks() - before
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.wait({left})


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
async def test_what_would_end_the_process_is_an_error_of_the_plugin(
    error: type[BaseException],
) -> None:
    with pytest.raises(PluginError, match=f"service x raised {error.__name__}"):
        await within(10, "service x", leaves(error))


async def test_what_cancels_itself_does_not_cancel_us() -> None:
    with pytest.raises(PluginError, match="service x cancelled itself"):
        await within(10, "service x", cancels_itself())


@pytest.mark.parametrize("doing", [hangs, answers])
async def test_our_own_cancellation_passes_on(
    doing: Callable[[], Awaitable[object]],
) -> None:
    ours = asyncio.ensure_future(within(10, "it", doing()))
    await asyncio.sleep(0)
    ours.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ours
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
