"""A trigger, and how its row reads."""

from __future__ import annotations

import json
from typing import Any

from agenthost import Row
from agenthost_values.value_class import value_class

from ..background.errands import (
    DAILY_ALLOWANCE,
    Creator,
    Delivery,
    SessionMode,
)
from .patterns import Pattern

MOST = 1_000
"""Triggers that can exist: all of them are known in memory."""
MOST_DEPTH = 5
"""An event that so many others led to sets off nothing more."""
MOST_FIRINGS = 10
"""So many triggers fire at one event; the oldest go first."""
COOLDOWN = 5.0
LONGEST_COOLDOWN = 86_400.0
DEFAULT_PROMPT = "Event: {{event}}"
NO_PLACE = Delivery()
EVERY = "SELECT * FROM triggers ORDER BY created_at, id"
"""A text, since a start reads it and imports no SQLAlchemy."""


@value_class
class Trigger:
    """What an agent is told when something happens; times are epoch seconds.

    Args:
        id: Its own.
        agent_id: Whose turn it becomes.
        pattern: What it waits for.
        prompt_template: What the agent is told, with ``{{event}}`` in it.
        creator: Who made it, with whose rights it fires.
        created_at: When.
        enabled: Whether it fires.
        fire_count: How often it has fired.
        max_fires: After how many times it is disabled; 0 is never.
        cooldown_secs: For how long it fires no more for a subject it has fired for;
            None is as the configuration says.
        session: The conversation that its turns speak in.
        keep: How many messages a ROLLING one keeps.
        delivery: Where results go.
        allowance_micro_usd: What it may spend in a day.
        own_events: Whether events that the agent itself caused count.
        last_fired_at: When it last fired, None for never.
        paused: Why it was stopped, "" when it was not; it may have spent its fires.
        labels: Where its words came from.
    """

    id: str
    agent_id: str
    pattern: Pattern
    prompt_template: str
    creator: Creator
    created_at: float
    enabled: bool = True
    fire_count: int = 0
    max_fires: int = 0
    cooldown_secs: float | None = None
    session: SessionMode = SessionMode.OWN
    keep: int = 0
    delivery: Delivery = NO_PLACE
    allowance_micro_usd: int = DAILY_ALLOWANCE
    own_events: bool = False
    last_fired_at: float | None = None
    paused: str = ""
    labels: frozenset[str] = frozenset()

    @property
    def spent(self) -> bool:
        """Whether it has fired as often as it may."""
        return 0 < self.max_fires <= self.fire_count

    @property
    def owner(self) -> str:
        """Who made it (``kind:name``)."""
        return f"{self.creator.kind}:{self.creator.name}"


def trigger_of(row: Row | Any) -> Trigger:
    """Read a trigger from its row."""
    return Trigger(
        id=row["id"],
        agent_id=row["agent_id"],
        pattern=Pattern(row["pattern"], row["pattern_text"]),
        prompt_template=row["prompt_template"],
        creator=Creator(*json.loads(row["creator"])),
        created_at=row["created_at"],
        enabled=bool(row["enabled"]),
        fire_count=row["fire_count"],
        max_fires=row["max_fires"],
        cooldown_secs=row["cooldown_secs"],
        session=SessionMode(row["session"]),
        keep=row["keep"],
        delivery=Delivery(row["delivery"], row["delivery_target"]),
        allowance_micro_usd=row["allowance_micro_usd"],
        own_events=bool(row["own_events"]),
        last_fired_at=row["last_fired_at"],
        paused=row["paused"],
        labels=frozenset(json.loads(row["labels"])),
    )


def row_of(trigger: Trigger) -> dict[str, object]:
    """Write a trigger as its row."""
    made_by = trigger.creator
    return {
        "id": trigger.id,
        "agent_id": trigger.agent_id,
        "pattern": trigger.pattern.name,
        "pattern_text": trigger.pattern.text,
        "prompt_template": trigger.prompt_template,
        "creator": json.dumps([made_by.kind, made_by.name, made_by.person, made_by.id]),
        "created_at": trigger.created_at,
        "enabled": int(trigger.enabled),
        "fire_count": trigger.fire_count,
        "max_fires": trigger.max_fires,
        "cooldown_secs": trigger.cooldown_secs,
        "session": trigger.session.value,
        "keep": trigger.keep,
        "delivery": trigger.delivery.kind,
        "delivery_target": trigger.delivery.target,
        "allowance_micro_usd": trigger.allowance_micro_usd,
        "own_events": int(trigger.own_events),
        "last_fired_at": trigger.last_fired_at,
        "paused": trigger.paused,
        "owner": trigger.owner,
        "labels": json.dumps(sorted(trigger.labels)),
    }
