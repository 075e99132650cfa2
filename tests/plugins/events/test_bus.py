"""Events reach subscribers at once and plugins one at a time, whatever they do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import (
    AgentSpawned,
    Clock,
    Custom,
    Event,
    Guards,
    LifecycleEvent,
    PluginFailed,
    Plugins,
    SystemClock,
)
from agenthost_events.audit import AUDIT
from agenthost_events.bus import FAILURES_IN_A_ROW, EventBus

from tests.kernel.plugins.entries import config, entry, module


def event(number: int = 0) -> Event:
    return AgentSpawned(str(number), 0.0, "x")


class HandClock(SystemClock):
    """Moves only when told."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


def bus_of(plugins: Plugins, clock: Clock | None = None, **more: Any) -> EventBus:
    guards = Guards()
    guards.compile((), points=[AUDIT])
    of = {"plugins": plugins, "clock": clock or SystemClock(), "guards": guards}
    host: Any = SimpleNamespace(**of)
    return EventBus(host, **more)


async def listening(on_event: Callable[[Event], Any]) -> Plugins:
    def hook(event: Event) -> Any:
        return on_event(event)

    plugins = Plugins([entry("plugin:x", module(on_event=hook))])
    await plugins.load(config())
    return plugins


def leaves_with_an_error(event: Event) -> None:
    raise ZeroDivisionError(event.subject)


async def test_a_subscriber_hears_until_it_leaves() -> None:
    bus = bus_of(Plugins([]))
    heard: list[Event] = []
    leave = bus.subscribe(heard.append)
    bus.publish(event(1))
    leave()
    leave()
    bus.publish(event(2))
    assert [e.subject for e in heard] == ["1"]


def would_end_the_process(event: Event) -> None:
    raise SystemExit(event.subject)


@pytest.mark.parametrize("raises", [leaves_with_an_error, would_end_the_process])
async def test_a_subscriber_that_raises_hides_nothing_from_others(
    raises: Callable[[Event], None],
) -> None:
    bus = bus_of(Plugins([]))
    heard: list[Event] = []
    bus.subscribe(raises)
    bus.subscribe(heard.append)
    bus.publish(event())
    assert len(heard) == 1


async def test_a_plugin_hears_every_event_in_order_in_one_thread() -> None:
    heard: list[str] = []
    threads: set[int] = set()

    def hear(event: Event) -> None:
        heard.append(event.subject)
        threads.add(threading.get_ident())

    bus = bus_of(await listening(hear))
    for number in range(200):
        bus.publish(event(number))
    await bus.stop()
    assert heard == [str(number) for number in range(200)]
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert bus.states()[0].delivered == 200


async def test_nothing_is_heard_after_stop() -> None:
    heard: list[Event] = []
    bus = bus_of(await listening(heard.append))
    await bus.stop()
    bus.publish(event())
    assert heard == []


async def test_a_full_queue_drops_the_oldest_and_counts() -> None:
    heard: list[str] = []
    begun, release = threading.Event(), threading.Event()

    def hear(event: Event) -> None:
        begun.set()
        release.wait(30)
        heard.append(event.subject)

    bus = bus_of(await listening(hear), queue=2)
    bus.publish(event(0))
    assert begun.wait(30)
    for number in range(1, 6):
        bus.publish(event(number))
    release.set()
    await bus.stop()
    assert heard == ["0", "4", "5"]
    assert bus.states()[0].dropped == 3


async def test_three_overruns_end_the_calls(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    heard: list[str] = []

    def hear(event: Event) -> None:
        heard.append(event.subject)
        clock.at += 6

    bus = bus_of(await listening(hear), clock)
    for number in range(6):
        bus.publish(event(number))
    await bus.stop()
    assert heard == ["0", "1", "2"]
    assert bus.states()[0].given_up
    assert "plugin plugin:x takes longer than 5 s in on_event" in caplog.text


async def test_a_plugin_that_still_blocks_is_named_and_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = HandClock()
    begun, release = threading.Event(), threading.Event()

    def hear(event: Event) -> None:
        begun.set()
        release.wait(30)

    bus = bus_of(await listening(hear), clock)
    bus.publish(event())
    assert begun.wait(30)
    clock.at = 6
    bus.publish(event())
    assert bus.states()[0].overruns == 1
    await bus.stop(timeout=0.01)
    release.set()
    assert "plugin:x takes longer than 5 s" in caplog.text
    assert "plugin:x still blocks in on_event" in caplog.text


async def coroutine(event: Event) -> None:
    return None


def leaves(event: Event) -> None:
    raise SystemExit(1)


@pytest.mark.parametrize("on_event", [coroutine, leaves, leaves_with_an_error])
async def test_failures_are_counted_and_end_the_calls_when_they_go_on(
    on_event: Callable[[Event], Any],
) -> None:
    bus = bus_of(await listening(on_event))
    for number in range(FAILURES_IN_A_ROW + 5):
        bus.publish(event(number))
    await bus.stop()
    (state,) = bus.states()
    assert state.failures == FAILURES_IN_A_ROW
    assert state.given_up


async def test_a_failed_plugin_hears_nothing_more() -> None:
    heard: list[Event] = []
    plugins = await listening(heard.append)
    bus = bus_of(plugins)
    plugins.fail("plugin:x", "broke")
    bus.publish(event())
    await bus.stop()
    assert heard == []


async def test_a_subscriber_hears_the_kinds_it_names_and_they_are_wanted() -> None:
    bus = bus_of(Plugins([]))
    heard: list[Event] = []
    assert not bus.wants(AgentSpawned)
    leave = bus.subscribe(heard.append, LifecycleEvent, PluginFailed)
    assert bus.wants(AgentSpawned)
    assert not bus.wants(Custom)
    bus.publish(event(1))
    bus.publish(Custom("x", 0.0, "greeted", {}))
    bus.publish(PluginFailed("x", 0.0, "broke"))
    assert [each.kind for each in heard] == ["agent_spawned", "plugin_failed"]
    leave()
    assert not bus.wants(AgentSpawned)


@pytest.mark.parametrize("ends", ["gives up", "fails"])
async def test_nothing_is_wanted_for_a_plugin_that_hears_no_more(ends: str) -> None:
    plugins = await listening(leaves_with_an_error)
    bus = bus_of(plugins)
    assert bus.wants(AgentSpawned)
    if ends == "fails":
        plugins.fail("plugin:x", "broke")
    else:
        for number in range(FAILURES_IN_A_ROW):
            bus.publish(event(number))
        await bus.stop()
    assert not bus.wants(AgentSpawned)


async def test_a_plugin_that_fails_in_any_thread_is_told_on_the_loop() -> None:
    plugins = await listening(leaves_with_an_error)
    bus = bus_of(plugins)
    heard = asyncio.Queue[tuple[Event, int]]()

    def hear(event: PluginFailed) -> None:
        heard.put_nowait((event, threading.get_ident()))

    bus.subscribe(hear, PluginFailed)
    failing = threading.Thread(target=plugins.fail, args=("plugin:x", "broke"))
    failing.start()
    told, thread = await asyncio.wait_for(heard.get(), 30)
    failing.join()
    assert isinstance(told, PluginFailed)
    assert (told.subject, told.reason) == ("plugin:x", "broke")
    assert thread == threading.get_ident()
