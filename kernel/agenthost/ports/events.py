"""The port EVENTS: who is told of what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..events import Event

if TYPE_CHECKING:
    from sqlalchemy import Connection

E = TypeVar("E", bound=Event)
Keep = Callable[["Connection"], None]
"""What is written in the transaction of an event's cause; it may run twice."""


@dataclass(slots=True)
class ListenerState:
    """What became of the events for one plugin."""

    plugin: str
    delivered: int = 0
    dropped: int = 0
    failures: int = 0
    overruns: int = 0
    given_up: bool = False


class Events(Protocol):
    """Tells this process and plugins' ``on_event`` what happened."""

    def wants(self, kind: type[Event]) -> bool:
        """Tell whether anybody listens for a kind; ask before an event is made."""

    def publish(self, event: Event) -> None:
        """Tell everyone; call it after the cause was committed. Never raises."""

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

    def record(
        self, recorder: Callable[[E], Keep | None], *kinds: type[E]
    ) -> Callable[[], None]:
        """Keep something of each event in the very commit of its cause.

        What the recorder gives is there exactly when the event has happened: neither
        is lost without the other, whenever the process dies.

        Args:
            recorder: Called on the event loop before the cause is written; what it
                gives is run then. It only looks and returns; one that raises refuses
                what was to happen.
            kinds: What it is asked about; all events when none is named.

        Returns:
            A function that ends it; calling it twice is fine.
        """

    def keeping(self, event: E) -> Keep | None:
        """Ask what is to be written in the commit of the event's cause, if anything.

        Who causes something asks before it writes, and publishes the same event once
        that is on disk; :func:`telling` does both.

        Raises:
            AgentHostError: Somebody refuses that it happens.
        """

    def states(self) -> Sequence[ListenerState]:
        """Tell how each plugin that listens is doing."""

    async def stop(self) -> None:
        """Take no more events and wait, within limits, until plugins heard all."""


@contextmanager
def telling(
    events: Events, kind: type[Event], *facts: Any, **more: Any
) -> Iterator[Keep | None]:
    """Tell of what the block does, once that has ended well.

    The block gets what is to be written in the commit of what it does, if anything::

        with telling(events, Deployed, name, now, **context.caused) as keep:
            await store.write(partial(deploy, name=name, keep=keep))

    Args:
        events: Whom it is told to; of a kind that nobody wants no event is made.
        kind: What it is.
        facts: The event's fields.
        more: Those that go by name.

    Raises:
        AgentHostError: Somebody refuses that it happens.
    """
    if not events.wants(kind):
        yield None
        return
    event = kind(*facts, **more)
    yield events.keeping(event)
    events.publish(event)
