"""Events of what turns and memories write, each recorded in the commit of its cause."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agenthost import (
    AgentHostError,
    Context,
    Custom,
    Event,
    Events,
    Host,
    Journal,
    Json,
    Keep,
    Memory,
    MemoryChanged,
    Message,
    MessageReceived,
    NotFound,
    Records,
    Role,
    Step,
    ToolCalled,
    ToolDenied,
    ToolEnded,
    ToolOutput,
    TurnEnded,
    TurnRecord,
    TurnStarted,
    TurnState,
    telling,
)
from agenthost_chat.history import UNKNOWN

if TYPE_CHECKING:
    from sqlalchemy import Connection

_log = logging.getLogger(__name__)

FEW = 64
"""So many results that a caller brings are told one by one; more of them as one."""
FIRST, LONGEST_ID = 16, 64
"""Of many: so many ids are told, so long."""
BROUGHT = "results_brought"
EXCERPT = 200
"""So many characters of what a tool says are told; the whole is in the journal."""

Where = tuple[str, str, str]
"""The agent's name, the session and the turn."""
NOWHERE: Where = ("", "", "")

OF_STEPS: tuple[type[Event], ...] = (
    MessageReceived,
    TurnStarted,
    ToolCalled,
    ToolDenied,
    ToolEnded,
    TurnEnded,
)


def told(records: Records, events: Events, host: Host) -> Records:
    """Give the same records, of which turns and memories tell what they write."""
    # Not replaced: a backend may have opened a kind of records of its own.
    parts = {each.name: getattr(records, each.name) for each in fields(Records)}
    parts["journal"] = cast("Journal", ToldJournal(records.journal, events, host))
    parts["memory"] = ToldMemory(records.memory, events, host)
    return Records(**parts)


class ToldJournal:
    """A journal whose steps are told once they are on disk.

    Everything else is the journal's own.
    """

    def __init__(self, journal: Journal, events: Events, host: Host) -> None:
        self._journal = journal
        self._events = events
        self._host = host
        # When each running turn's model has asked for tools.
        self._asked: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        """Give what is the journal's own; it stands here from then on."""
        found = getattr(self._journal, name)
        setattr(self, name, found)
        return found

    def keep(self, *steps: Step) -> asyncio.Future[None]:
        """Write steps, with what is recorded of them, and tell of them then."""
        if not any(map(self._events.wants, OF_STEPS)):
            return self._journal.keep(*steps)
        try:
            events = [event for step in steps for event in self._events_of(step)]
            # One step has it for all: they are one commit.
            *others, last = steps
            last = self._recorded(last, events)
        except AgentHostError as refused:
            failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            failed.set_exception(refused)
            return failed
        kept = self._journal.keep(*others, last)
        kept.add_done_callback(partial(self._tell, events))
        return kept

    def keep_late(self, step: Step) -> None:
        """Write as soon as that is possible what closes a turn, which is told now."""
        events = [*self._events_of(step)]
        recorded = step
        try:
            recorded = self._recorded(step, events)
        except AgentHostError as refused:
            # A row that says running for ever would be worse.
            _log.error("turn %s ends unrecorded: %s", step.turn_id, refused.message)
        self._journal.keep_late(recorded)
        for event in events:
            self._events.publish(event)

    def _recorded(self, step: Step, events: Sequence[Event]) -> Step:
        kept = [keep for each in events if (keep := self._events.keeping(each))]
        return replace(step, also=partial(_do_all, doing=kept)) if kept else step

    def _tell(self, events: Sequence[Event], kept: asyncio.Future[None]) -> None:
        if not kept.cancelled() and kept.exception() is None:
            for event in events:
                self._events.publish(event)

    def _events_of(self, step: Step) -> Iterator[Event]:
        wants, message, closed = self._events.wants, step.message, step.closed
        begins = step.opened is not None or step.reopened
        where = self._where(step) if begins or closed is not None else NOWHERE
        if step.opened is not None and wants(MessageReceived):
            yield self._received(step, where)
        if begins and wants(TurnStarted):
            yield self._event(step, TurnStarted, *where)
        if message is not None and message.role is Role.TOOL:
            yield from self._of_results(step)
        elif message is not None and closed is None and message.tool_uses:
            self._asked[step.turn_id] = step.at
            if wants(ToolCalled):
                for call in message.tool_uses:
                    yield self._event(step, ToolCalled, call.name, step.turn_id)
        if closed is not None:
            self._asked.pop(step.turn_id, None)
            if wants(TurnEnded):
                yield self._closed(step, closed, where)

    def _event(self, step: Step, kind: Callable[..., Event], *facts: Any) -> Event:
        """Make an event that an agent's turn has caused."""
        caused = {"by": step.owner, "source": step.agent_id, "depth": step.depth}
        return kind(step.agent_id, step.at, *facts, **caused)

    def _where(self, step: Step) -> Where:
        try:
            name = self._host.agents.get(step.agent_id).name
        except NotFound:
            # It was deleted meanwhile, and its last turn is closed behind it.
            name = ""
        return name, step.session_id, step.turn_id

    def _received(self, step: Step, where: Where) -> MessageReceived:
        kind, _, caller = step.owner.partition(":")
        source = ""
        if kind == "agent":
            with suppress(NotFound):
                source = self._host.agents.find(caller).id
        return MessageReceived(
            step.agent_id,
            step.at,
            *where,
            caller=caller,
            text=step.message.text if step.message else "",
            by=step.owner,
            source=source,
            depth=step.depth,
        )

    def _ended(self, step: Step) -> Iterator[Event]:
        seconds = step.at - self._asked.get(step.turn_id, step.at)
        denied = step.denied or {}
        for part in step.message.parts if step.message else ():
            if isinstance(part, ToolOutput) and part.id not in denied:
                told = part.is_error, seconds, part.text[:EXCERPT]
                yield self._event(step, ToolEnded, part.name, step.turn_id, *told)

    def _of_results(self, step: Step) -> Iterator[Event]:
        wants, closed = self._events.wants, step.closed
        waits = closed is not None and closed.state is TurnState.WAITING
        if step.opened is not None and step.message and len(step.message.parts) > FEW:
            if wants(Custom):
                yield self._brought(step, step.message)
        elif not waits and wants(ToolEnded):
            yield from self._ended(step)
        # Also where the step waits for others: it is not told of these again.
        if step.denied and wants(ToolDenied):
            yield from self._denied(step)

    def _brought(self, step: Step, message: Message) -> Event:
        """Tell of many results at once: how many, and which the caller left out."""
        brought = [part for part in message.parts if isinstance(part, ToolOutput)]
        unknown = [part for part in brought if part.text == UNKNOWN]
        facts = {
            "turn_id": step.turn_id,
            "results": len(brought),
            "first": [part.id[:LONGEST_ID] for part in brought[:FIRST]],
            "unknown": len(unknown),
            "first_unknown": [part.id[:LONGEST_ID] for part in unknown[:FIRST]],
        }
        return self._event(step, Custom, BROUGHT, facts)

    def _denied(self, step: Step) -> Iterator[Event]:
        denied = step.denied or {}
        for part in step.message.parts if step.message else ():
            if isinstance(part, ToolOutput) and part.id in denied:
                told = denied[part.id], part.text[:EXCERPT]
                yield self._event(step, ToolDenied, part.name, step.turn_id, *told)

    def _closed(self, step: Step, closed: TurnRecord, where: Where) -> Event:
        result, error = closed.result, closed.error
        return self._event(
            step,
            TurnEnded,
            *where,
            closed.state.value,
            result.text,
            error.code if error else "",
            result.usage.input_tokens,
            result.usage.output_tokens,
            result.cost_micro_usd,
            result.finish.value if result.finish else "",
            result.usage.cached_tokens,
            result.usage.cache_write_tokens,
            result.usage.reasoning_tokens,
        )


class ToldMemory:
    """A memory whose changes are told, once they are on disk."""

    def __init__(self, memory: Memory, events: Events, host: Host) -> None:
        self._memory = memory
        self._events = events
        self._clock = host.clock

    async def get(self, namespace: str, key: str) -> tuple[Json, frozenset[str]]:
        """Give the value of a key, and its labels."""
        return await self._memory.get(namespace, key)

    async def items(self, namespace: str) -> list[tuple[str, Json]]:
        """Give every key of a namespace with its value."""
        return await self._memory.items(namespace)

    async def search(self, owner: str, agent_id: str, query: str) -> Sequence[Json]:
        """Give what an agent remembers and heard with all these words."""
        return await self._memory.search(owner, agent_id, query)

    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        """Put a value under a key."""
        now = self._clock.time()
        told = (namespace, now, key, "set")
        with telling(self._events, MemoryChanged, *told, **by.caused) as keep:
            both = _both(keep, also)
            await self._memory.set(by, namespace, key, value, both)

    async def delete(
        self, by: Context, namespace: str, key: str, also: Keep | None = None
    ) -> None:
        """Forget a key."""
        now = self._clock.time()
        told = (namespace, now, key, "deleted")
        with telling(self._events, MemoryChanged, *told, **by.caused) as keep:
            await self._memory.delete(by, namespace, key, _both(keep, also))


def _both(one: Keep | None, other: Keep | None) -> Keep | None:
    doing = [keep for keep in (one, other) if keep is not None]
    return partial(_do_all, doing=doing) if doing else None


def _do_all(connection: Connection, doing: Sequence[Keep]) -> None:
    for each in doing:
        each(connection)
