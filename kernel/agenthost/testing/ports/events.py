"""What every backend of the port EVENTS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
import pytest_asyncio

from ...clock import SystemClock
from ...config_model import Config, PluginSelection
from ...errors import Unavailable
from ...events import AgentSpawned, AgentTerminated, Custom, Event, LifecycleEvent
from ...host import Host
from ...plugins.guards import Guards
from ...plugins.loader import Plugins
from ...plugins.marks import hookimpl
from ...ports.events import Events, Keep
from ..daemons import provided

if TYPE_CHECKING:
    from sqlalchemy import Connection

MANY = 100
KEY = "plugin:listener"
NOT_HEARD = "the plugin must not be told of this"


class Listener(ModuleType):
    """A plugin that hears of agents that come and go; it fails where it is told to."""

    def __init__(self) -> None:
        super().__init__("listener")
        self.heard: list[str] = []
        self.fails_at = ""
        self.on_event = hookimpl(self._hook())

    def _hook(self) -> Callable[[LifecycleEvent], None]:
        def on_event(event: LifecycleEvent) -> None:
            self.heard.append(event.subject)
            if event.subject == self.fails_at:
                raise ValueError(event.subject)

        return on_event


def spawned(subject: str) -> Event:
    """An event that the plugin hears."""
    return AgentSpawned(subject, 0.0, "Ada")


def told(subject: str) -> Event:
    """An event that the plugin does not hear."""
    return Custom(subject, 0.0, "greeted", {})


async def listening_host(*listeners: ModuleType) -> Host:
    """What a bus uses of the daemon: plugins, a clock and guards."""
    plugins = Plugins(provided(listeners))
    keys = tuple(f"plugin:{each.__name__}" for each in listeners)
    await plugins.load(
        Config(data_dir=Path("data"), plugins=PluginSelection(enable=keys))
    )
    used = SimpleNamespace(plugins=plugins, clock=SystemClock(), guards=Guards())
    return cast("Host", used)


def subjects(heard: Sequence[Event]) -> list[str]:
    """Whom events are about, in order."""
    return [event.subject for event in heard]


class EventsContract:
    """The events keep every promise of the port.

    A subclass overrides the fixture ``opened``: the events of the fixture ``host``,
    whose plugin ``listener`` hears of agents that come and go.

    Example:
        ::

            class TestBroker(EventsContract):
                @pytest.fixture
                async def opened(self, host: Host) -> Events:
                    return open_broker(host, ())
    """

    @pytest.fixture
    def listener(self) -> Listener:
        """A plugin that listens."""
        return Listener()

    @pytest_asyncio.fixture
    async def host(self, listener: Listener) -> Host:
        """What the events use of the daemon."""
        return await listening_host(listener)

    @pytest.fixture
    def opened(self, host: Host) -> Events:
        """The events."""
        del host
        pytest.fail("override the fixture `opened` with the events of `host`")

    async def test_a_subscriber_hears_at_once_and_in_order(
        self, opened: Events
    ) -> None:
        """It was called when publish returns."""
        heard: list[Event] = []
        opened.subscribe(heard.append)
        for number in range(MANY):
            opened.publish(told(str(number)))
            assert len(heard) == number + 1
        assert subjects(heard) == [str(number) for number in range(MANY)]

    async def test_a_subscriber_is_called_in_the_publishers_thread(
        self, opened: Events
    ) -> None:
        """Whichever thread publishes."""
        threads: list[int] = []
        opened.subscribe(lambda _: threads.append(threading.get_ident()))
        opened.publish(told("here"))

        def elsewhere() -> int:
            opened.publish(told("there"))
            return threading.get_ident()

        there = await asyncio.to_thread(elsewhere)
        assert threads == [threading.get_ident(), there]

    async def test_a_subscriber_hears_the_kinds_it_names(self, opened: Events) -> None:
        """A base stands for all its kinds; no name means every kind."""
        one: list[Event] = []
        base: list[Event] = []
        both: list[Event] = []
        every: list[Event] = []
        opened.subscribe(one.append, AgentSpawned)
        opened.subscribe(base.append, LifecycleEvent)
        opened.subscribe(both.append, AgentSpawned, Custom)
        opened.subscribe(every.append)
        for event in (spawned("a"), AgentTerminated("b", 0.0, "Ada"), told("c")):
            opened.publish(event)
        assert subjects(one) == ["a"]
        assert subjects(base) == ["a", "b"]
        assert subjects(both) == ["a", "c"]
        assert subjects(every) == ["a", "b", "c"]

    async def test_a_subscriber_hears_nothing_of_before_and_after(
        self, opened: Events
    ) -> None:
        """Ending it twice is fine, and ends no other of the same function."""
        heard: list[Event] = []
        opened.publish(told("before"))
        leave, stay = opened.subscribe(heard.append), opened.subscribe(heard.append)
        opened.publish(told("both"))
        leave()
        leave()
        opened.publish(told("one"))
        stay()
        opened.publish(told("after"))
        assert subjects(heard) == ["both", "both", "one"]

    @pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
    async def test_a_subscriber_that_raises_hides_nothing_from_others(
        self, opened: Events, error: type[BaseException]
    ) -> None:
        """The publisher hears nothing of it, and it is told of the next event."""
        heard: list[Event] = []

        def broken(event: Event) -> None:
            heard.append(event)
            raise error(event.subject)

        opened.subscribe(broken)
        opened.subscribe(heard.append)
        opened.publish(told("1"))
        opened.publish(told("2"))
        assert subjects(heard) == ["1", "1", "2", "2"]

    async def test_a_subscriber_may_leave_come_and_publish_while_it_is_told(
        self, opened: Events
    ) -> None:
        """Others hear all the same, and those that come hear the next event."""
        heard: list[Event] = []
        late: list[Event] = []

        def once(event: Event) -> None:
            leave()
            opened.subscribe(late.append, Custom)
            opened.publish(spawned(f"after {event.subject}"))

        leave = opened.subscribe(once)
        opened.subscribe(heard.append)
        opened.publish(told("1"))
        opened.publish(told("2"))
        assert sorted(subjects(heard)) == ["1", "2", "after 1"]
        assert "2" in subjects(late)

    async def test_wants_tells_who_listens(self, opened: Events) -> None:
        """Subscribers and plugins count, by the kinds they hear."""
        assert not opened.wants(Custom)
        assert opened.wants(AgentSpawned)
        leave = opened.subscribe(lambda _: None, Custom)
        assert opened.wants(Custom)
        leave()
        assert not opened.wants(Custom)
        opened.subscribe(lambda _: None)
        assert opened.wants(Custom)

    async def test_a_recorder_says_what_is_kept_with_the_cause_of_an_event(
        self, opened: Events
    ) -> None:
        """All are asked of the kinds they name, and what they give is done in order."""
        kept: list[str] = []

        def keeping(name: str) -> Callable[[Event], Keep | None]:
            return lambda event: lambda _: kept.append(f"{name} {event.subject}")

        one = opened.record(keeping("one"), AgentSpawned)
        opened.record(keeping("every"))
        opened.record(lambda _: None)
        self._kept(opened, spawned("a"))
        self._kept(opened, told("b"))
        one()
        one()
        self._kept(opened, spawned("c"))
        assert kept == ["one a", "every a", "every b", "every c"]

    def _kept(self, opened: Events, event: Event) -> None:
        keep = opened.keeping(event)
        assert keep is not None
        keep(cast("Connection", None))

    async def test_nothing_is_kept_where_nobody_records(self, opened: Events) -> None:
        """A listener is no recorder, and one that gives nothing keeps nothing."""
        opened.subscribe(lambda _: None)
        opened.record(lambda _: None, Custom)
        opened.record(lambda _: lambda _: None, AgentTerminated)
        assert opened.keeping(spawned("a")) is None
        assert opened.keeping(told("b")) is None

    async def test_a_recorder_that_raises_refuses_what_was_to_happen(
        self, opened: Events
    ) -> None:
        """Whoever is about to cause it hears why."""

        def refuses(event: Event) -> Keep | None:
            raise Unavailable(f"no room for {event.subject}")

        opened.record(refuses)
        with pytest.raises(Unavailable, match="no room for a"):
            opened.keeping(spawned("a"))

    async def test_a_recorder_wants_its_kinds(self, opened: Events) -> None:
        """An event is made for it although nobody else listens."""
        assert not opened.wants(Custom)
        leave = opened.record(lambda _: None, Custom)
        assert opened.wants(Custom)
        leave()
        assert not opened.wants(Custom)

    async def test_a_plugin_hears_every_event_of_its_kinds_in_order(
        self, opened: Events, listener: Listener
    ) -> None:
        """All that was published before the stop is heard by its end, and counted."""
        for number in range(MANY):
            opened.publish(spawned(str(number)))
            opened.publish(told(NOT_HEARD))
        await opened.stop()
        assert listener.heard == [str(number) for number in range(MANY)]
        (state,) = opened.states()
        assert (state.plugin, state.delivered, state.failures) == (KEY, MANY, 0)

    async def test_a_plugin_that_fails_is_counted_and_hears_the_next_event(
        self, opened: Events, listener: Listener
    ) -> None:
        """Publisher and subscribers hear nothing of it."""
        heard: list[Event] = []
        listener.fails_at = "1"
        opened.subscribe(heard.append)
        for subject in ("1", "2"):
            opened.publish(spawned(subject))
        await opened.stop()
        assert subjects(heard) == listener.heard == ["1", "2"]
        (state,) = opened.states()
        assert (state.delivered, state.failures) == (2, 1)
        assert not state.given_up

    async def test_nothing_is_heard_after_the_stop(
        self, opened: Events, listener: Listener
    ) -> None:
        """Stopping twice is fine, and publishing still raises nothing."""
        heard: list[Event] = []
        opened.subscribe(heard.append)
        opened.publish(spawned("before"))
        for _ in range(2):
            await opened.stop()
        opened.publish(spawned("after"))
        assert subjects(heard) == listener.heard == ["before"]
