"""Which triggers wait for an event: asked at every event, so compiled by its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from functools import cached_property
from typing import Any

from agenthost import (
    AgentSpawned,
    AgentTerminated,
    Event,
    JsonObject,
    LifecycleEvent,
    MemoryChanged,
    MessageReceived,
    QuotaEvent,
    SystemEvent,
)

from ..background.events import OccasionEvent
from .events import TriggerFired
from .sentences import sentence, told
from .trigger import Trigger

KINDS: dict[str, tuple[type[Event], ...]] = {
    "all": (Event,),
    "lifecycle": (LifecycleEvent,),
    "agent_spawned": (AgentSpawned,),
    "agent_terminated": (AgentTerminated,),
    "system": (SystemEvent, QuotaEvent),
    "system_keyword": (SystemEvent, QuotaEvent),
    "memory_update": (MemoryChanged,),
    "memory_key_pattern": (MemoryChanged,),
    "content_match": (Event,),
}
"""The kinds of events that each pattern sees."""


class Told:
    """An event as triggers look at it: its JSON and its words, made when needed."""

    def __init__(self, event: Event) -> None:
        self.event: Any = event

    @cached_property
    def json(self) -> JsonObject:
        """The event as it is kept."""
        return told(self.event)

    @cached_property
    def words(self) -> str:
        """Its sentence, for comparing."""
        return sentence(self.json).casefold()


Test = Callable[[Told], bool]


class Matching:
    """The enabled triggers, by the kind of event that they wait for.

    Args:
        triggers: In the order in which they fire.
    """

    def __init__(self, triggers: Iterable[Trigger]) -> None:
        self._all = [(each, _test(each)) for each in triggers if each.enabled]
        self._by_kind: dict[type[Event], Sequence[tuple[Trigger, Test | None]]] = {}
        self.kinds = frozenset(
            kind for each, _ in self._all for kind in KINDS[each.pattern.name]
        )
        """The kinds that anybody waits for."""

    def waiting(self, told: Told) -> list[Trigger]:
        """Give the triggers that wait for this event, oldest first.

        Raises:
            Exception: The event holds something that is no JSON.
        """
        kind, source = type(told.event), told.event.source
        if told.event.depth and issubclass(kind, MessageReceived):
            # An agent was told of an event, in words that others may wait for: they
            # have seen that event themselves.
            return []
        tests = self._by_kind.get(kind)
        if tests is None:
            tests = self._by_kind[kind] = self._compiled(kind)
        return [
            trigger
            for trigger, test in tests
            if (test is None or test(told))
            and (not source or source != trigger.agent_id or trigger.own_events)
        ]

    def _compiled(self, kind: type[Event]) -> Sequence[tuple[Trigger, Test | None]]:
        if issubclass(kind, (TriggerFired, OccasionEvent)):
            return ()
        return [
            (trigger, test)
            for trigger, test in self._all
            if issubclass(kind, KINDS[trigger.pattern.name])
        ]


def _test(trigger: Trigger) -> Test | None:
    """Compile what the kind of an event does not say."""
    text = trigger.pattern.text
    low = text.casefold()
    match trigger.pattern.name:
        case "agent_spawned":
            named = re.compile(translate(low)).match
            return lambda told: named(told.event.name.casefold()) is not None
        case "memory_key_pattern":
            keyed = re.compile(translate(text)).match
            return lambda told: keyed(told.event.key) is not None
        case "system_keyword":
            return lambda told: low in told.event.kind or low in told.words
        case "content_match":
            return lambda told: low in told.words
    return None
