"""What is told of schedules, once it is on disk; the subject is the schedule's id."""

from __future__ import annotations

from agenthost import Event


class ScheduleEvent(Event):
    """What becomes of a schedule; ``agent_id`` is whose turn it is, "" for none."""

    name: str
    agent_id: str


class ScheduleCreated(ScheduleEvent):
    """It was made."""


class ScheduleChanged(ScheduleEvent):
    """Somebody changed it, switched it off or on again."""


class ScheduleDeleted(ScheduleEvent):
    """It was deleted; those of an agent that is deleted go without a word."""


class SchedulePaused(ScheduleEvent):
    """It was switched off by itself, for a reason."""

    reason: str


class ScheduleRun(ScheduleEvent):
    """Somebody had it done now, beside its times."""

    occasion_id: str
