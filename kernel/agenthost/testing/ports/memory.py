"""A vault and a bus that keep all in memory, for tests of what uses them."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from ...errors import InvalidInput
from ...events import Event
from ...host import Host
from ...plugins.calls import Implementation
from ...ports.events import Keep, ListenerState
from ...secrets import Secret

if TYPE_CHECKING:
    from sqlalchemy import Connection

E = TypeVar("E", bound=Event)
Kinds = tuple[type[Event], ...]

_log = logging.getLogger(__name__)


class MemoryVault:
    """Secrets in memory.

    Args:
        kept: What is there already; changes go there, too, as to a file.
    """

    def __init__(self, kept: dict[str, Secret] | None = None) -> None:
        self._kept = {} if kept is None else kept
        self.revision = 0

    def get(self, name: str) -> Secret | None:
        """Give a secret, or None when there is none of this name."""
        return self._kept.get(name)

    def names(self) -> list[str]:
        """List the names, sorted."""
        return sorted(self._kept)

    async def change(self, secrets: Mapping[str, str | None]) -> None:
        """Keep these secrets, forget those that are None: all or none.

        Raises:
            InvalidInput: A name or a value is empty.
        """
        if "" in secrets:
            raise InvalidInput("name", "a secret needs a name")
        if "" in secrets.values():
            raise InvalidInput("value", "a secret cannot be empty; delete it instead")
        for name, value in secrets.items():
            if value is None:
                self._kept.pop(name, None)
            else:
                self._kept[name] = Secret(value)
        self.revision += 1


class MemoryEvents:
    """Tells subscribers and plugins, one after another, in the publisher's thread.

    Args:
        host: Its plugins' ``on_event`` is called.
    """

    def __init__(self, host: Host) -> None:
        self._subscribers: dict[object, tuple[Callable[[Any], object], Kinds]] = {}
        self._recorders: dict[object, tuple[Callable[[Any], Keep | None], Kinds]] = {}
        self._plugins = [
            (call, _kinds_of(call), ListenerState(key))
            for key, call in host.plugins.implementations("on_event")
        ]
        self._stopped = False

    def wants(self, kind: type[Event]) -> bool:
        """Tell whether anybody listens for a kind."""
        heard = [kinds for _, kinds in self._subscribers.values()]
        heard += [kinds for _, kinds in self._recorders.values()]
        heard += [kinds for _, kinds, _ in self._plugins]
        return any(issubclass(kind, kinds) for kinds in heard)

    def publish(self, event: Event) -> None:
        """Tell everyone. Never raises."""
        if self._stopped:
            return
        for tell, kinds in tuple(self._subscribers.values()):
            if isinstance(event, kinds):
                self._tells(tell, event)
        for call, kinds, state in self._plugins:
            if isinstance(event, kinds):
                state.delivered += 1
                state.failures += not self._tells(call, event)

    def subscribe(
        self, subscriber: Callable[[E], None], *kinds: type[E]
    ) -> Callable[[], None]:
        """Call the function for each event from now on, until what it gives is."""
        token = object()
        self._subscribers[token] = subscriber, kinds or (Event,)

        def leave() -> None:
            self._subscribers.pop(token, None)

        return leave

    def record(
        self, recorder: Callable[[E], Keep | None], *kinds: type[E]
    ) -> Callable[[], None]:
        """Ask the function of each event from now on, until what it gives is called."""
        token = object()
        self._recorders[token] = recorder, kinds or (Event,)

        def leave() -> None:
            self._recorders.pop(token, None)

        return leave

    def keeping(self, event: Event) -> Keep | None:
        """Ask all recorders of its kind."""
        asked = [
            ask for ask, kinds in self._recorders.values() if isinstance(event, kinds)
        ]
        kept = [keep for ask in asked if (keep := ask(event)) is not None]

        def keep_all(connection: Connection) -> None:
            for keep in kept:
                keep(connection)

        return keep_all if kept else None

    def states(self) -> Sequence[ListenerState]:
        """Tell how each plugin that listens is doing."""
        return [state for _, _, state in self._plugins]

    async def stop(self) -> None:
        """Take no more events."""
        self._stopped = True

    def _tells(self, call: Callable[[Any], object], event: Event) -> bool:
        # Such a function may end in anything, SystemExit among it.
        with suppress(BaseException):
            call(event)
            return True
        _log.error("a listener failed at event %s", event.kind)
        return False


def _kinds_of(call: Implementation) -> Kinds:
    """Read what the annotation of ``on_event`` names."""
    hints = get_type_hints(inspect.unwrap(call.function))
    wanted = hints.get("event", Event)
    return get_args(wanted) or (wanted,)
