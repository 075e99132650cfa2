"""What is told of triggers, once it is on disk; the subject is the trigger's id."""

from __future__ import annotations

from agenthost import Event


class TriggerEvent(Event):
    """What becomes of a trigger of an agent."""

    agent_id: str


class TriggerCreated(TriggerEvent):
    """It came into being."""


class TriggerChanged(TriggerEvent):
    """It was changed, enabled, disabled or paused."""


class TriggerDeleted(TriggerEvent):
    """It was deleted, or its agent was."""


class TriggerFired(TriggerEvent):
    """It fired at an event; what is to be done is on disk. No trigger sees this."""

    event_id: str
