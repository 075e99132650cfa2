"""The port EVENTS: who is told of what happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ..events import Event

E = TypeVar("E", bound=Event)


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

    def states(self) -> Sequence[ListenerState]:
        """Tell how each plugin that listens is doing."""

    async def stop(self) -> None:
        """Take no more events and wait, within limits, until plugins heard all."""
