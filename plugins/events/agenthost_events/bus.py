"""The event bus: what happened is told to this process and to plugins."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from agenthost import (
    Clock,
    Event,
    Installed,
    ListenerState,
    Observers,
    SystemClock,
    describe,
)

from .observers import NOBODY

_log = logging.getLogger(__name__)

Subscriber = Callable[[Event], None]

BUDGET = 5.0
QUEUE = 1_000
OVERRUNS = 3
FAILURES_IN_A_ROW = 10


class EventBus:
    """Tells subscribers at once and plugins one event at a time.

    Args:
        plugins: The loaded plugins; their ``on_event`` is called in a thread each.
        clock: Measures how long a plugin takes.
        observers: The observers of turns.
        budget: Seconds that ``on_event`` may take.
        queue: Events that may wait for one plugin; the oldest is dropped.
    """

    def __init__(
        self,
        plugins: Installed,
        clock: Clock | None = None,
        observers: Observers = NOBODY,
        *,
        budget: float = BUDGET,
        queue: int = QUEUE,
    ) -> None:
        self.observers = observers
        self._subscribers: dict[object, Subscriber] = {}
        self._listeners = [
            _Listener(
                key, call, plugins, _Limits(clock or SystemClock(), budget, queue)
            )
            for key, call in plugins.implementations("on_event")
        ]

    def publish(self, event: Event) -> None:
        """Tell everyone; call it after the cause was committed. Never raises."""
        for subscriber in tuple(self._subscribers.values()):
            try:
                subscriber(event)
            except (Exception, SystemExit, KeyboardInterrupt):  # noqa: BLE001 - one subscriber must not hide another
                _log.exception("a subscriber failed at event %s", event.kind)
        for listener in self._listeners:
            listener.offer(event)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call the function, in the publisher's thread, for each event from now on.

        Returns:
            A function that ends it; calling it twice is fine.
        """
        token = object()
        self._subscribers[token] = subscriber

        def unsubscribe() -> None:
            self._subscribers.pop(token, None)

        return unsubscribe

    def states(self) -> list[ListenerState]:
        """The counts of each listening plugin."""
        return [listener.state for listener in self._listeners]

    async def stop(self, timeout: float = BUDGET) -> None:  # noqa: ASYNC109
        """Take no more events and wait until plugins have heard what is queued.

        A plugin that blocks for longer than ``timeout`` seconds is left behind.
        """
        self._subscribers.clear()
        for listener in self._listeners:
            listener.close()
        waits = (asyncio.to_thread(each.join, timeout) for each in self._listeners)
        await asyncio.gather(*waits)


@dataclass(frozen=True, slots=True)
class _Limits:
    clock: Clock
    budget: float
    queue: int


class _Listener:
    """One plugin's queue, thread and breaker."""

    def __init__(
        self, key: str, call: Callable[..., object], plugins: Installed, limits: _Limits
    ) -> None:
        self.state = ListenerState(key)
        self._call = call
        self._plugins = plugins
        self._limits = limits
        self._waiting: deque[Event] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._since: float | None = None
        self._in_a_row = 0

    def offer(self, event: Event) -> None:
        """Queue the event and start the thread with the first one."""
        with self._wake:
            if self._closed or self.state.given_up:
                return
            self._name_a_stall()
            if len(self._waiting) >= self._limits.queue:
                self._waiting.popleft()
                self.state.dropped += 1
            self._waiting.append(event)
            if self._thread is None:
                name = f"{self.state.plugin} on_event"
                self._thread = threading.Thread(
                    target=self._run, name=name, daemon=True
                )
                self._thread.start()
            self._wake.notify()

    def close(self) -> None:
        """Take no more events; what is queued is still told."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    def join(self, timeout: float) -> None:
        """Wait for the thread."""
        if self._thread is None:
            return
        self._thread.join(timeout)
        if self._thread.is_alive():
            _log.warning("plugin %s still blocks in on_event", self.state.plugin)

    def _run(self) -> None:
        while (event := self._next()) is not None:
            self._tell(event)

    def _next(self) -> Event | None:
        with self._wake:
            self._wake.wait_for(lambda: self._waiting or self._closed)
            if self.state.given_up or not self._plugins.healthy(self.state.plugin):
                self._waiting.clear()
                self.state.given_up = True
                return None
            if not self._waiting:
                return None
            self._since = self._limits.clock.monotonic()
            return self._waiting.popleft()

    def _tell(self, event: Event) -> None:
        failure: str | None = None
        try:
            with self._plugins.charges.timed(self.state.plugin):
                answer = self._call(event)
            if inspect.iscoroutine(answer):
                answer.close()
                failure = "it returned a coroutine; on_event is a plain function"
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            failure = describe(error)
        with self._wake:
            self._count(event, failure)

    def _count(self, event: Event, failure: str | None) -> None:
        self._name_a_stall()
        self._since = None
        self.state.delivered += 1
        if failure is None:
            self._in_a_row = 0
            return
        self.state.failures += 1
        self._in_a_row += 1
        _log.error(
            "plugin %s failed at event %s: %s", self.state.plugin, event.kind, failure
        )
        if self._in_a_row >= FAILURES_IN_A_ROW:
            self._give_up(f"{self._in_a_row} failures in a row")

    def _name_a_stall(self) -> None:
        if self._since is None:
            return
        taken = self._limits.clock.monotonic() - self._since
        if taken <= self._limits.budget:
            return
        self._since = None
        self.state.overruns += 1
        _log.warning(
            "plugin %s takes longer than %g s in on_event",
            self.state.plugin,
            self._limits.budget,
        )
        if self.state.overruns >= OVERRUNS:
            self._give_up(f"{OVERRUNS} overruns")

    def _give_up(self, why: str) -> None:
        self.state.given_up = True
        _log.error("plugin %s hears no more events after %s", self.state.plugin, why)
