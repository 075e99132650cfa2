"""What is told of workflows, once it is on disk; the subject is the workflow's id."""

from __future__ import annotations

from agenthost import Event


class WorkflowEvent(Event):
    """What becomes of a workflow; ``steps`` counts them, ``file`` is its file or ""."""

    name: str
    steps: int
    file: str


class WorkflowCreated(WorkflowEvent):
    """It was made."""


class WorkflowChanged(WorkflowEvent):
    """It was replaced by another definition."""


class WorkflowDeleted(WorkflowEvent):
    """It was deleted; its runs go on and stay."""
