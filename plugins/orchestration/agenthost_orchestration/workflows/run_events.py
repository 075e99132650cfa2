"""What is told of runs, in the commit of what happened; the subject is the run's id."""

from __future__ import annotations

from agenthost import Event


class WorkflowRunEvent(Event):
    """What becomes of a run of a workflow."""

    workflow_id: str
    workflow: str


class WorkflowRunStarted(WorkflowRunEvent):
    """It was asked for, and will run."""


class WorkflowRunEnded(WorkflowRunEvent):
    """It ended: ``state`` is Completed, Failed or Cancelled.

    ``error`` is the code of what it failed with.
    """

    state: str
    error: str
    cost_micro_usd: int
