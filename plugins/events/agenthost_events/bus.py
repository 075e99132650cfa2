"""The event bus: what happened is told to this process and to plugins."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agenthost import (
    Clock,
    Event,
    Host,
    Installed,
    Keep,
    ListenerState,
    Observer,
    PluginError,
    PluginFailed,
    Records,
    describe,
)
from agenthost_values.value_class import value_class

from .audit import AUDIT, AuditCase
from .hearing import ALL, Kinds, kinds_of
from .observers import ToldObservers
from .telling import told

if TYPE_CHECKING:
    from sqlalchemy import Connection

_log = logging.getLogger(__name__)

E = TypeVar("E", bound=Event)
T = TypeVar("T")

BUDGET = 5.0
QUEUE = 1_000
OVERRUNS = 3
FAILURES_IN_A_ROW = 10


class EventBus:
    """Tells subscribers at once and plugins one event at a time.

    Args:
        host: The daemon; its plugins' ``on_event`` is called in a thread each.
        observers: The observers of turns, each with its plugin's key.
        budget: Seconds that ``on_event`` may take.
        queue: Events that may wait for one plugin; the oldest is dropped.
    """

    def __init__(
        self,
        host: Host,
        observers: Sequence[tuple[str, Observer]] = (),
        *,
        budget: float = BUDGET,
        queue: int = QUEUE,
    ) -> None:
        self.observers = ToldObservers(host, observers)
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._subscribers: dict[object, tuple[Callable[[Any], None], Kinds]] = {}
        self._recorders: dict[object, tuple[Callable[[Any], Keep | None], Kinds]] = {}
        # Every message asks, and who listens seldom changes.
        self._wanted: dict[type[Event], bool] = {}
        self._listeners = list(_listening(host, _Limits(host.clock, budget, queue)))
        host.plugins.on_failure.append(self._plugin_failed)

    def told(self, records: Records) -> Records:
        """The same records; what turns and memories write is events, too."""
        return told(records, self, self._host)

    def wants(self, kind: type[Event]) -> bool:
        """Tell whether anybody listens for a kind; ask before an event is made."""
        known = self._wanted.get(kind)
        if known is None:
            known = self._wanted[kind] = self._heard(kind)
        return known

    def _heard(self, kind: type[Event]) -> bool:
        if AUDIT.name in self._host.guards.closed:
            return True
        asked = (*self._subscribers.values(), *self._recorders.values())
        if any(issubclass(kind, kinds) for _, kinds in asked):
            return True
        return any(listener.hears(kind) for listener in self._listeners)

    def publish(self, event: Event) -> None:
        """Tell everyone; call it after the cause was committed. Never raises."""
        for subscriber, kinds in tuple(self._subscribers.values()):
            if not isinstance(event, kinds):
                continue
            try:
                subscriber(event)
            except (Exception, SystemExit, KeyboardInterrupt):  # noqa: BLE001 - one subscriber must not hide another
                _log.exception("a subscriber failed at event %s", event.kind)
        for listener in self._listeners:
            if listener.hears(type(event)):
                listener.offer(event)

    def subscribe(
        self, subscriber: Callable[[E], None], *kinds: type[E]
    ) -> Callable[[], None]:
        """Call the function, in the publisher's thread, for each event from now on.

        Args:
            subscriber: What is called; it only notes and returns.
            kinds: What it hears; all events when none is named.

        Returns:
            A function that ends it; calling it twice is fine.
        """
        return self._added(self._subscribers, (subscriber, kinds or ALL))

    def record(
        self, recorder: Callable[[E], Keep | None], *kinds: type[E]
    ) -> Callable[[], None]:
        """Ask the function what to keep of each event in the commit of its cause.

        Args:
            recorder: What is asked, on the event loop; one that raises refuses what
                was to happen.
            kinds: What it is asked about; all events when none is named.

        Returns:
            A function that ends it; calling it twice is fine.
        """
        return self._added(self._recorders, (recorder, kinds or ALL))

    def keeping(self, event: Event) -> Keep | None:
        """Ask what is to be written in the commit of the event's cause, if anything.

        Raises:
            AgentHostError: A guard or a recorder refuses that it happens.
        """
        guards = self._host.guards
        if guards.filled(AUDIT):
            guards.check(AUDIT, AuditCase(event.kind, event.subject, event.by))
        kept = [
            keep
            for recorder, kinds in tuple(self._recorders.values())
            if isinstance(event, kinds) and (keep := recorder(event)) is not None
        ]
        if len(kept) < 2:
            return kept[0] if kept else None
        return partial(_all_kept, kept=kept)

    def states(self) -> list[ListenerState]:
        """The counts of each listening plugin."""
        return [listener.state for listener in self._listeners]

    def _added(self, asked: dict[object, T], one: T) -> Callable[[], None]:
        token = object()
        asked[token] = one
        self._wanted.clear()

        def ended() -> None:
            asked.pop(token, None)
            self._wanted.clear()

        return ended

    def _plugin_failed(self, key: str, reason: str) -> None:
        self._wanted.clear()
        if self.wants(PluginFailed):
            event = PluginFailed(key, self._host.clock.time(), reason)
            # A plugin may fail in any thread; once the loop has ended nobody hears it.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.publish, event)

    async def stop(self, timeout: float = BUDGET) -> None:  # noqa: ASYNC109
        """Take no more events and wait until plugins have heard what is queued.

        A plugin that blocks for longer than ``timeout`` seconds is left behind.
        """
        self._subscribers.clear()
        self._wanted.clear()
        for listener in self._listeners:
            listener.close()
        waits = (asyncio.to_thread(each.join, timeout) for each in self._listeners)
        await asyncio.gather(*waits)


def _all_kept(connection: Connection, kept: Sequence[Keep]) -> None:
    for keep in kept:
        keep(connection)


def _listening(host: Host, limits: _Limits) -> Iterator[_Listener]:
    """Make a listener of each plugin whose ``on_event`` says well what it hears."""
    for key, call in host.plugins.implementations("on_event"):
        try:
            kinds = kinds_of(call.function)
        except PluginError as error:
            host.plugins.fail(key, error.message)
        else:
            yield _Listener(key, call, host.plugins, kinds, limits)


@value_class
class _Limits:
    clock: Clock
    budget: float
    queue: int


class _Listener:
    """One plugin's queue, thread and breaker."""

    def __init__(
        self,
        key: str,
        call: Callable[..., object],
        plugins: Installed,
        kinds: Kinds,
        limits: _Limits,
    ) -> None:
        self.state = ListenerState(key)
        self._kinds = kinds
        self._call = call
        self._plugins = plugins
        self._limits = limits
        self._waiting: deque[Event] = deque()
        self._wake = threading.Condition()
        # One thread for each plugin: one that sleeps in on_event keeps only itself
        # waiting.
        self._thread: threading.Thread | None = None
        self._closed = False
        self._since: float | None = None
        self._in_a_row = 0

    def hears(self, kind: type[Event]) -> bool:
        """Tell whether the plugin is still told of events, and of this kind."""
        told = not self.state.given_up and self._plugins.healthy(self.state.plugin)
        return told and issubclass(kind, self._kinds)

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
