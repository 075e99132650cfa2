"""Observers: told when turns, model calls and tool calls begin and end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import count
from typing import TypeVar

from agenthost import (
    Activity,
    Attempt,
    Context,
    Host,
    Message,
    Observer,
    Subject,
    Target,
)

T = TypeVar("T")


class _Watch(AbstractContextManager[Activity]):
    """Tells of what its block does."""

    __slots__ = ("_activity", "_began", "_observers")

    def __init__(self, observers: ToldObservers, activity: Activity) -> None:
        self._observers = observers
        self._activity = activity
        self._began = activity.host.clock.monotonic()

    def __enter__(self) -> Activity:
        self._observers.tell("started", self._activity)
        return self._activity

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        activity = self._activity
        if error is not None:
            activity.error = error
        activity.seconds = activity.host.clock.monotonic() - self._began
        self._observers.tell("ended", activity)


class ToldObservers:
    """The observers of a daemon; one that raises is dropped and its plugin failed.

    Args:
        host: The daemon they observe.
        offers: The observers, each with its plugin's key.
    """

    def __init__(self, host: Host, offers: Sequence[tuple[str, Observer]]) -> None:
        self._host = host
        self._offers = tuple(offers)
        self._count = count(1)
        # Observers are told in the loop's thread alone; verdicts come from others, too.
        self._thread = threading.get_ident()
        self._hear_verdicts()
        host.guards.on_refused = partial(self.tell, "refused")

    def find(self, kind: type[T]) -> T | None:
        """Find the observer of a class; None when there is none or it was dropped."""
        return next((o for _, o in self._offers if isinstance(o, kind)), None)

    def watch(
        self,
        context: Context,
        subject: Subject,
        target: Target | None = None,
        failed: Sequence[Attempt] = (),
    ) -> AbstractContextManager[Activity | None]:
        """Tell of what the block does; None where nobody observes."""
        if not self._offers:
            return nullcontext()
        id_, parent = context.turn_id or "", context.cause
        if not isinstance(subject, Message):
            id_, parent = f"{id_}/{next(self._count)}", context.turn_id
        activity = Activity(
            id_, parent, self._host, context, subject, target, failed=failed
        )
        return _Watch(self, activity)

    def tell(self, what: str, *of: object) -> None:
        """Call the method of this name of all observers."""
        for key, observer in self._offers:
            try:
                getattr(observer, what)(*of)
            except BaseException:
                self._offers = tuple(o for o in self._offers if o[1] is not observer)
                self._hear_verdicts()
                logging.getLogger(__name__).exception("an observer of %s raised", key)
                self._host.plugins.fail(
                    key, f"its observer raised when told of what {what}"
                )

    def _hear_verdicts(self) -> None:
        """Be told by the guards while an observer has a use for it."""
        guards = self._host.guards
        listens = any(type(o).judged is not Observer.judged for _, o in self._offers)
        guards.on_verdict = None
        if listens:
            guards.on_verdict = partial(self._judged, asyncio.get_running_loop())

    def _judged(
        self,
        loop: asyncio.AbstractEventLoop,
        *what: object,
    ) -> None:
        # Guards are asked in threads too; observers live on the loop.
        tell = partial(self.tell, "judged", *what)
        if threading.get_ident() == self._thread:
            tell()
            return
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(tell)
