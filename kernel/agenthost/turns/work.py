"""What a session's mailbox runs: something with a task that can be stopped."""

from __future__ import annotations

import asyncio
from typing import Any

from ..context import AgentView, Context
from ..errors import AgentHostError, Cancelled, Interrupted, TurnFailed
from ..ports.records import NOBODY, TurnState


class Work:
    """A turn, a compaction or a reset.

    Args:
        work_id: Its own id, a turn's for a turn.
        context: For which agent, in which session, and who asked for it.
    """

    def __init__(self, work_id: str, context: Context) -> None:
        self.id = work_id
        self.context = context
        self.task: asyncio.Task[Any] | None = None
        self.cancelled_for: str | None = None
        self.ends_as = TurnState.FAILED
        self.sealed = False
        """Its end is on its way to disk: it cannot be stopped now."""
        self.runs = False
        self.asked: list[Work] = []
        """The turns of other agents that it waits for."""
        self.asked_by = ""
        """The turn that waits for it."""
        self.writer = NOBODY
        """What its steps are signed with: what its daemon was when it lined up."""

    @property
    def agent(self) -> AgentView:
        """The agent it is for, and the session it works in."""
        assert self.context.agent is not None  # noqa: S101 - set by the engine
        return self.context.agent

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.task is not None and self.task.done()

    def cancel(self, reason: str, ends_as: TurnState = TurnState.CANCELLED) -> bool:
        """Stop it.

        Args:
            reason: Why, for who waits for it.
            ends_as: CANCELLED for a person's stop, INTERRUPTED when the daemon ends
                and it may be taken up again, FAILED when a limit ends it.

        Returns:
            False when it has ended, is being stored, or is being stopped already.
        """
        # Cancelled twice, it would be cut off while it writes that it was cancelled.
        if self.ended or self.sealed or self.cancelled_for is not None:
            return False
        self.cancelled_for, self.ends_as = reason, ends_as
        if self.task is not None:
            self.task.cancel()
        return True

    def stopped(self) -> AgentHostError:
        """The error of something that was cancelled."""
        reason = self.cancelled_for or "something cancelled its task"
        if self.ends_as is TurnState.CANCELLED:
            return Cancelled(f"the turn was stopped: {reason}")
        if self.ends_as is TurnState.INTERRUPTED:
            return Interrupted(f"the turn was interrupted: {reason}", self.id)
        return TurnFailed(f"the turn was ended: {reason}")
