"""The triggers of one daemon: made, changed, deleted; a source of occasions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agenthost import (
    Context,
    Denied,
    Host,
    NotFound,
    Principal,
    PrincipalKind,
    telling,
)

from ..background.errands import Errand, Occasion
from .book import Book
from .events import TriggerChanged, TriggerCreated, TriggerDeleted, TriggerEvent
from .firing import SOURCE
from .sentences import filled
from .trigger import EVERY, Trigger, trigger_of
from .watch import Background, Watch

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")

DAEMON = Context(Principal(PrincipalKind.PLUGIN, "orchestration"))
"""Who pauses triggers."""


class Triggers:
    """Makes, changes and deletes triggers, and says what agents are told.

    Args:
        host: The daemon.
        background: Where firings are written, and done.
    """

    kind = SOURCE

    def __init__(self, host: Host, background: Background) -> None:
        self._host = host
        self._book = Book()
        self._watch = Watch(host, background, self._book)
        self._changes: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Read what there is and wait for events."""
        rows = await self._host.store.read(EVERY)
        self._book.know(trigger_of(row) for row in rows)
        self._watch.listen()
        for trigger in self._book.list():
            try:
                self._host.agents.get(trigger.agent_id)
            except NotFound:
                # Its agent was deleted in a commit of its own, just before an end.
                await self.delete(DAEMON, trigger.id)

    async def stop(self) -> None:
        """Hear no more, and finish what is being written."""
        await asyncio.gather(*self._changes, return_exceptions=True)
        await self._watch.stop()

    def list(self, agent_id: str | None = None) -> Sequence[Trigger]:
        """The triggers, or those of an agent, oldest first."""
        return self._book.list(agent_id)

    def get(self, trigger_id: str) -> Trigger:
        """Find one by its id.

        Raises:
            NotFound: There is none.
        """
        return self._book.get(trigger_id)

    def held_back(self, trigger_id: str) -> int:
        """How often it rested, or an event was too deep for it, since the start."""
        return self._watch.held[trigger_id]

    async def create(self, context: Context, trigger: Trigger) -> Trigger:
        """Let a trigger be, from now on.

        Raises:
            NotFound: It has no agent.
            Conflict: There are too many, or one of this id.
        """
        from .writes import add

        self._host.agents.get(trigger.agent_id)
        write = partial(add, trigger=trigger)
        return await self._wholly(self._kept(TriggerCreated, context, trigger, write))

    async def change(
        self, context: Context, trigger_id: str, changes: Mapping[str, Any]
    ) -> Trigger:
        """Change columns of a trigger, and give it as it stands then.

        Raises:
            NotFound: There is none.
            InvalidInput: It cannot be enabled, since it has spent its fires.
        """
        from .writes import change

        old = self.get(trigger_id)
        write = partial(change, trigger_id=trigger_id, changes=changes)
        return await self._wholly(self._kept(TriggerChanged, context, old, write))

    async def delete(self, context: Context, trigger_id: str) -> None:
        """Let a trigger be no more; what it has set off goes on.

        Raises:
            NotFound: There is none.
        """
        await self._wholly(self._deleted(context, self.get(trigger_id)))

    async def errand(self, host: Host, occasion: Occasion) -> Errand:
        """Say what an agent is to be told of an event.

        Raises:
            NotFound: The trigger has been deleted.
            Denied: It has been disabled since.
        """
        del host
        trigger, event = self.get(occasion.source_id), occasion.payload
        if trigger.paused:
            raise Denied(f"the trigger is disabled: {trigger.paused}")
        depth: Any = event["depth"]
        return Errand(
            creator=trigger.creator,
            agent_id=trigger.agent_id,
            prompt=filled(trigger.prompt_template, event),
            session=trigger.session,
            keep=trigger.keep,
            delivery=trigger.delivery,
            allowance_micro_usd=trigger.allowance_micro_usd,
            labels=occasion.labels | trigger.labels,
            depth=depth + 1,
        )

    async def ended(self, host: Host, occasion: Occasion) -> None:
        """Do nothing more: what became of it stands in the occasion."""

    async def pause(self, host: Host, source_id: str, reason: str) -> None:
        """Fire no more until a person enables it, and keep why."""
        del host
        with suppress(NotFound):
            await self.change(DAEMON, source_id, {"enabled": 0, "paused": reason})

    async def _kept(
        self,
        kind: type[TriggerEvent],
        context: Context,
        about: Trigger,
        write: Callable[[Connection], Trigger],
    ) -> Trigger:
        host, now = self._host, self._host.clock.time()
        facts = (about.id, now, about.agent_id)
        with telling(host.events, kind, *facts, **context.caused) as keep:
            kept = await host.store.write(write, *((keep,) if keep else ()))
            self._book.know((kept,))
            self._watch.listen()
        return kept

    async def _deleted(self, context: Context, trigger: Trigger) -> None:
        from .writes import remove

        host, now = self._host, self._host.clock.time()
        facts = (trigger.id, now, trigger.agent_id)
        write = partial(remove, trigger_id=trigger.id)
        with telling(host.events, TriggerDeleted, *facts, **context.caused) as keep:
            await host.store.write(write, *((keep,) if keep else ()))
            self._book.forget((trigger.id,))
            self._watch.listen()

    async def _wholly(self, change: Coroutine[Any, Any, T]) -> T:
        """Make a change, on disk and in memory alike, also when who asked leaves."""
        task = asyncio.create_task(change)
        self._changes.add(task)
        task.add_done_callback(self._changed)
        return await asyncio.shield(task)

    def _changed(self, task: asyncio.Task[Any]) -> None:
        self._changes.discard(task)
        if not task.cancelled():
            task.exception()  # Who asked may have left: it is looked at all the same.
