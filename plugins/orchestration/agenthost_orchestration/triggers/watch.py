"""Hears of events and fires triggers, in the commits of the events' causes.

What is in memory follows what is on disk: once a commit with a firing may be there, its
outcome is read behind it. So a cause that is not committed leaves all as it was, and a
firing that is on disk is seen to, whoever went away meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence, Set
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from agenthost import (
    AgentHostError,
    AgentTerminated,
    Caused,
    Event,
    Host,
    Keep,
)

from ..background.errands import Occasion, Source
from .book import Book
from .events import TriggerDeleted, TriggerFired
from .firing import FIRED, NOTED_EVERY, TOO_DEEP, Candidate, Firing, labels_of
from .matching import Told
from .trigger import MOST_DEPTH, Trigger

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .writes import Settled

_log = logging.getLogger(__name__)

REMEMBERED = 10_000
"""Events that we were asked about, and rests, that are known in memory."""
MOST_ASKED = 100
"""So many triggers are asked about on disk at one event, of which ten may fire."""


class Background(Protocol):
    """What triggers need of the background."""

    def write(self, connection: Connection, occasions: Sequence[Occasion]) -> object:
        """Write occasions in the transaction at hand."""

    def wake(self) -> None:
        """Have done what is due."""

    def source(self, source: Source) -> None:
        """Take a source, which is asked what its occasions mean."""

    async def list(
        self, source: str, source_id: str, *, limit: int
    ) -> Sequence[Occasion]:
        """Give the occasions of a source, the newest first."""


class Watch:
    """Waits for the events that triggers wait for.

    Args:
        host: The daemon.
        background: Where firings are written, and done.
        book: The triggers.
    """

    def __init__(self, host: Host, background: Background, book: Book) -> None:
        from .settings import TriggersSection

        self.held: Counter[str] = Counter()
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._background = background
        self._book = book
        self._cooldown = host.settings(TriggersSection).cooldown_secs
        self._kinds: frozenset[type[Event]] = frozenset()
        self._leave: tuple[Callable[[], None], ...] = ()
        self._asked: dict[str, bool] = {}
        self._rests: dict[tuple[str, str, str], float] = {}
        self._forgot = float("-inf")
        self._tasks: set[asyncio.Task[None]] = set()

    def listen(self) -> None:
        """Hear of exactly the kinds that triggers wait for now."""
        kinds = self._book.matching.kinds
        if self._book.list():
            # Triggers end with their agents.
            kinds |= {AgentTerminated}
        if kinds == self._kinds:
            return
        self._leave_all()
        self._kinds = kinds
        if kinds:
            events = self._host.events
            self._leave = (
                events.record(self._recorded, *kinds),
                events.subscribe(self._heard, *kinds),
            )

    async def stop(self) -> None:
        """Hear no more, and finish what is being written."""
        self._leave_all()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _leave_all(self) -> None:
        for leave in self._leave:
            leave()
        self._leave, self._kinds = (), frozenset()

    def _recorded(self, event: Event) -> Keep | None:
        """Give what is to be written with the cause of an event."""
        if isinstance(event, TriggerFired):
            return None
        if len(self._asked) >= REMEMBERED:
            del self._asked[next(iter(self._asked))]
        self._asked[event.id] = True
        return self._firing(event)

    def _heard(self, event: Event) -> None:
        """Write by itself what nobody has asked us about before its cause."""
        if self._asked.pop(event.id, False):
            return
        # An event may be told in any thread.
        if (firing := self._firing(event)) is not None:
            self._loop.call_soon_threadsafe(self._do, self._write, firing)

    def _firing(self, event: Event) -> Firing | None:
        try:
            return self._found(event)
        except Exception:  # noqa: BLE001 - another's event may hold anything, and happens all the same
            _log.exception("triggers cannot look at an event %s", event.kind)
            return None

    def _found(self, event: Event) -> Firing | None:
        told, now = Told(event), self._host.clock.time()
        waiting = [
            each
            for each in self._book.matching.waiting(told)
            if not self._rests_now(each, event, now)
        ][:MOST_ASKED]
        ends = isinstance(event, AgentTerminated) and self._book.list(event.subject)
        if not waiting and not ends:
            return None
        ended = [_deleted(each, event) for each in ends or ()]
        return Firing(
            event=told.json,
            labels=labels_of(event),
            now=now,
            candidates=[self._candidate(each, event, now) for each in waiting],
            ends=event.subject if ends else "",
            ended=ended,
            keeps=self._keeps(ended),
            write=self._background.write,
            ran=self._ran,
        )

    def _rests_now(self, trigger: Trigger, event: Event, now: float) -> bool:
        """Tell whether it is known to be held back, so that nothing need be written."""
        deep = event.depth >= MOST_DEPTH
        about = (TOO_DEEP, "") if deep else (FIRED, event.subject)
        rest = NOTED_EVERY if deep else self._rest(trigger)
        last = self._rests.get((trigger.id, *about))
        rests = last is not None and now - rest < last <= now
        if rests or deep:
            self.held[trigger.id] += 1
        return rests

    def _rest(self, trigger: Trigger) -> float:
        own = trigger.cooldown_secs
        return self._cooldown if own is None else own

    def _candidate(self, trigger: Trigger, event: Event, now: float) -> Candidate:
        if not self._host.events.wants(TriggerFired):
            return Candidate(trigger, self._rest(trigger))
        about = (trigger.id, now, trigger.agent_id, event.id)
        fired = TriggerFired(*about, **_caused(event))
        keep = self._host.events.keeping(fired)
        return Candidate(trigger, self._rest(trigger), fired, keep)

    def _keeps(self, told: Iterable[Event]) -> Sequence[Keep]:
        keeping = self._host.events.keeping
        return [keep for each in told if (keep := keeping(each)) is not None]

    async def _write(self, firing: Firing) -> None:
        """Write a firing in a commit of its own."""
        try:
            await self._host.store.write(firing)
        except AgentHostError as error:
            kind = firing.event["kind"]
            _log.warning("triggers did not fire at a %s: %s", kind, error.message)

    def _ran(self, firing: Firing) -> None:
        # In the writer's thread. A loop that has ended needs to know no more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._do, self._settle, firing)

    async def _settle(self, firing: Firing) -> None:
        """Read what came of a firing, behind the commit that it was part of."""
        from .writes import forget, settled

        also = []
        if firing.now - self._forgot > NOTED_EVERY:
            self._forgot = firing.now
            also.append(partial(forget, now=firing.now))
        read = partial(settled, event_id=firing.event_id, agent_id=firing.ends)
        try:
            found = await self._host.store.write(read, *also)
        except AgentHostError:
            # What is on disk is done all the same; the next firing reads what it is.
            self._background.wake()
            return
        fresh = firing.fresh & found.noted.keys()
        firing.fresh.clear()
        self._remember(found)
        self._book.know(found.triggers)
        if firing.ends:
            self._end(firing, found)
        self.listen()
        self._tell(firing, fresh)

    def _remember(self, found: Settled) -> None:
        if len(self._rests) + len(found.noted) > REMEMBERED:
            # What rests is on disk as well: to know it here only saves writes.
            self._rests.clear()
        for trigger_id, (outcome, subject, at) in found.noted.items():
            self._rests[trigger_id, outcome, subject] = at

    def _end(self, firing: Firing, found: Settled) -> None:
        """Forget the triggers that went with their agent."""
        known = [each.id for each in self._book.list(firing.ends)]
        gone = [each for each in known if each not in found.left]
        self._book.forget(gone)
        for told in firing.ended:
            if told.subject in gone:
                self._host.events.publish(told)

    def _tell(self, firing: Firing, fresh: Set[str]) -> None:
        """Tell of what fired, and have it done."""
        for each in firing.candidates:
            if each.trigger.id in fresh and each.told is not None:
                self._host.events.publish(each.told)
        if fresh:
            self._background.wake()

    def _do(
        self, work: Callable[[Firing], Coroutine[Any, Any, None]], firing: Firing
    ) -> None:
        task = asyncio.create_task(work(firing))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("triggers failed at an event", exc_info=error)


def _caused(event: Event) -> Caused:
    """Who caused what an event sets off."""
    return {"by": event.by, "source": event.source, "depth": event.depth + 1}


def _deleted(trigger: Trigger, event: Event) -> TriggerDeleted:
    return TriggerDeleted(trigger.id, event.at, trigger.agent_id, **_caused(event))
