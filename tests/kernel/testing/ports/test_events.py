"""The contract of events holds for those in memory, and finds who breaks it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from agenthost import AgentHostError, Event, Events, Host, Keep
from agenthost.testing import EventsContract, MemoryEvents
from agenthost.testing.ports.events import Listener, listening_host

from .finding import finds, names_in, names_of


class TestEventsInMemory(EventsContract):
    """They keep every promise."""

    @pytest.fixture
    async def opened(self, host: Host) -> Events:
        return MemoryEvents(host)


class TellsLater(MemoryEvents):
    def publish(self, event: Event) -> None:
        asyncio.get_running_loop().call_soon(super().publish, event)


class TellsElsewhere(MemoryEvents):
    def publish(self, event: Event) -> None:
        thread = threading.Thread(target=super().publish, args=(event,))
        thread.start()
        thread.join()


class KnowsNoBase(MemoryEvents):
    def subscribe(self, subscriber: Any, *kinds: type[Event]) -> Callable[[], None]:
        def narrow(event: Event) -> None:
            if not kinds or type(event) in kinds:
                subscriber(event)

        return super().subscribe(narrow, *kinds)


class HearsTheFirstKindAlone(MemoryEvents):
    def subscribe(self, subscriber: Any, *kinds: type[Event]) -> Callable[[], None]:
        return super().subscribe(subscriber, *kinds[:1])


class OneOfEachFunction(MemoryEvents):
    def subscribe(self, subscriber: Any, *kinds: type[Event]) -> Callable[[], None]:
        key = str(subscriber)
        self._subscribers[key] = subscriber, kinds or (Event,)

        def leave() -> None:
            self._subscribers.pop(key, None)

        return leave


class LeavesOnce(MemoryEvents):
    def subscribe(self, subscriber: Any, *kinds: type[Event]) -> Callable[[], None]:
        token = object()
        self._subscribers[token] = subscriber, kinds or (Event,)

        def leave() -> None:
            del self._subscribers[token]

        return leave


class TellsThePast(MemoryEvents):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._past: list[Event] = []

    def publish(self, event: Event) -> None:
        self._past.append(event)
        super().publish(event)

    def subscribe(self, subscriber: Any, *kinds: type[Event]) -> Callable[[], None]:
        for event in self._past:
            subscriber(event)
        return super().subscribe(subscriber, *kinds)


class LetsErrorsOut(MemoryEvents):
    def publish(self, event: Event) -> None:
        for tell, kinds in tuple(self._subscribers.values()):
            if isinstance(event, kinds):
                tell(event)


class LetsExitsOut(MemoryEvents):
    def _tells(self, call: Callable[[Any], object], event: Event) -> bool:
        try:
            call(event)
        except ValueError:
            return False
        return True


class LosesCount(MemoryEvents):
    def publish(self, event: Event) -> None:
        for tell, kinds in self._subscribers.values():
            if isinstance(event, kinds):
                self._tells(tell, event)


class WantsAll(MemoryEvents):
    def wants(self, kind: type[Event]) -> bool:
        return True


class ForgetsPlugins(MemoryEvents):
    def wants(self, kind: type[Event]) -> bool:
        return any(issubclass(kind, k) for _, k in self._subscribers.values())


class TellsPluginsAll(MemoryEvents):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._plugins = [(call, (Event,), state) for call, _, state in self._plugins]


class TellsPluginsBackwards(MemoryEvents):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._waiting: list[Event] = []

    def publish(self, event: Event) -> None:
        self._waiting.append(event)

    async def stop(self) -> None:
        while self._waiting:
            super().publish(self._waiting.pop())


class DropsAtTheStop(MemoryEvents):
    def publish(self, event: Event) -> None:
        if self._plugins[0][2].delivered < 1:
            super().publish(event)


class CountsNoFailure(MemoryEvents):
    def _tells(self, call: Callable[[Any], object], event: Event) -> bool:
        super()._tells(call, event)
        return True


class GivesUpAtOnce(MemoryEvents):
    def publish(self, event: Event) -> None:
        super().publish(event)
        self._plugins[0][2].given_up = self._plugins[0][2].failures > 0


class NeverStops(MemoryEvents):
    async def stop(self) -> None:
        pass


class StopsOnce(MemoryEvents):
    async def stop(self) -> None:
        if self._stopped:
            raise RuntimeError("it was stopped")
        await super().stop()


class RaisesOnceStopped(MemoryEvents):
    def publish(self, event: Event) -> None:
        if self._stopped:
            raise RuntimeError("it was stopped")
        super().publish(event)


class RecordsTheFirstAlone(MemoryEvents):
    def record(self, recorder: Any, *kinds: type[Event]) -> Callable[[], None]:
        return (lambda: None) if self._recorders else super().record(recorder, *kinds)


class KeepsForListeners(MemoryEvents):
    def keeping(self, event: Event) -> Keep | None:
        return super().keeping(event) or (lambda _: None)


class RecordsInSpite(MemoryEvents):
    def keeping(self, event: Event) -> Keep | None:
        with suppress(AgentHostError):
            return super().keeping(event)
        return None


class WantsNothingToRecord(MemoryEvents):
    def wants(self, kind: type[Event]) -> bool:
        recorders, self._recorders = self._recorders, {}
        wanted = super().wants(kind)
        self._recorders = recorders
        return wanted


HERE = TestEventsInMemory()
BREACHES: tuple[tuple[type[MemoryEvents], Any], ...] = (
    (TellsLater, HERE.test_a_subscriber_hears_at_once_and_in_order),
    (TellsElsewhere, HERE.test_a_subscriber_is_called_in_the_publishers_thread),
    (KnowsNoBase, HERE.test_a_subscriber_hears_the_kinds_it_names),
    (HearsTheFirstKindAlone, HERE.test_a_subscriber_hears_the_kinds_it_names),
    (OneOfEachFunction, HERE.test_a_subscriber_hears_nothing_of_before_and_after),
    (LeavesOnce, HERE.test_a_subscriber_hears_nothing_of_before_and_after),
    (TellsThePast, HERE.test_a_subscriber_hears_nothing_of_before_and_after),
    (LetsErrorsOut, HERE.test_a_subscriber_that_raises_hides_nothing_from_others),
    (LetsExitsOut, HERE.test_a_subscriber_that_raises_hides_nothing_from_others),
    (
        LosesCount,
        HERE.test_a_subscriber_may_leave_come_and_publish_while_it_is_told,
    ),
    (WantsAll, HERE.test_wants_tells_who_listens),
    (ForgetsPlugins, HERE.test_wants_tells_who_listens),
    (
        RecordsTheFirstAlone,
        HERE.test_a_recorder_says_what_is_kept_with_the_cause_of_an_event,
    ),
    (KeepsForListeners, HERE.test_nothing_is_kept_where_nobody_records),
    (RecordsInSpite, HERE.test_a_recorder_that_raises_refuses_what_was_to_happen),
    (WantsNothingToRecord, HERE.test_a_recorder_wants_its_kinds),
    (TellsPluginsAll, HERE.test_a_plugin_hears_every_event_of_its_kinds_in_order),
    (
        TellsPluginsBackwards,
        HERE.test_a_plugin_hears_every_event_of_its_kinds_in_order,
    ),
    (DropsAtTheStop, HERE.test_a_plugin_hears_every_event_of_its_kinds_in_order),
    (
        CountsNoFailure,
        HERE.test_a_plugin_that_fails_is_counted_and_hears_the_next_event,
    ),
    (
        GivesUpAtOnce,
        HERE.test_a_plugin_that_fails_is_counted_and_hears_the_next_event,
    ),
    (NeverStops, HERE.test_nothing_is_heard_after_the_stop),
    (StopsOnce, HERE.test_nothing_is_heard_after_the_stop),
    (RaisesOnceStopped, HERE.test_nothing_is_heard_after_the_stop),
)


@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_broken_events_are_found(broken: type[MemoryEvents], test: Any) -> None:
    listener = Listener()
    opened = broken(await listening_host(listener))
    more = {"listener": listener, "error": SystemExit}
    named = inspect.signature(test).parameters
    await finds(test, opened, *(more[name] for name in named if name in more))


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(EventsContract)
