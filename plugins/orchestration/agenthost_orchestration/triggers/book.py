"""The triggers as they are known in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agenthost import NotFound

from .matching import Matching
from .trigger import Trigger


class Book:
    """All triggers there are, oldest first, and which of them wait for what."""

    def __init__(self) -> None:
        self._triggers: dict[str, Trigger] = {}
        self.matching = Matching(())

    def list(self, agent_id: str | None = None) -> Sequence[Trigger]:
        """All triggers, or those of an agent."""
        return [
            each
            for each in self._triggers.values()
            if agent_id is None or each.agent_id == agent_id
        ]

    def get(self, trigger_id: str) -> Trigger:
        """Find one by its id.

        Raises:
            NotFound: There is none.
        """
        if (found := self._triggers.get(trigger_id)) is None:
            raise NotFound("trigger", trigger_id)
        return found

    def know(self, triggers: Iterable[Trigger]) -> None:
        """Take triggers as they stand on disk now."""
        changed = False
        for each in triggers:
            changed |= _differ(self._triggers.get(each.id), each)
            self._triggers[each.id] = each
        if changed:
            self._compile()

    def forget(self, trigger_ids: Iterable[str]) -> None:
        """Drop triggers that are no more."""
        for trigger_id in trigger_ids:
            self._triggers.pop(trigger_id, None)
        self._compile()

    def _compile(self) -> None:
        # In the order in which a start reads them, whatever the clock has said.
        known = sorted(
            self._triggers.values(), key=lambda one: (one.created_at, one.id)
        )
        self._triggers = {each.id: each for each in known}
        self.matching = Matching(known)


def _differ(old: Trigger | None, new: Trigger) -> bool:
    """Tell whether more has changed than how often it has fired."""
    if old is None:
        return True
    count, last = new.fire_count, new.last_fired_at
    return replace(old, fire_count=count, last_fired_at=last) != new
