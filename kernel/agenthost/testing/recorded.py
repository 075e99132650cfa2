"""A recorder of events: what is kept of them in the commit of their cause."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..errors import Unavailable
from ..events import Event
from ..ports.events import Events, Keep

if TYPE_CHECKING:
    from sqlalchemy import Connection


class Recorded:
    """Keeps events as they are committed, and hears of them when they are told.

    Of a cause that was refused nothing may be in either list; what is told was kept.

    Args:
        events: Those of a daemon.
        kinds: What is recorded; all events when none is named.

    Attributes:
        kept: What was written in the commit of its cause, in order.
        told: What was published, in order.
        refuses: The kinds that may not be recorded now, so that they do not happen.
    """

    def __init__(self, events: Events, *kinds: type[Event]) -> None:
        self.kept: list[Event] = []
        self.told: list[Event] = []
        self.refuses: tuple[type[Event], ...] = ()
        record: Callable[[Event], Keep | None] = self._record
        events.record(record, *kinds)
        events.subscribe(self.told.append, *kinds)

    def _record(self, event: Event) -> Keep:
        if isinstance(event, self.refuses):
            raise Unavailable("the book is closed")
        return partial(self._keep, event=event)

    def _keep(self, connection: Connection, event: Event) -> None:
        del connection
        # A write may run twice, when one that rides with it is refused.
        if event not in self.kept:
            self.kept.append(event)
