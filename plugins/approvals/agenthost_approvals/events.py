"""What is told of approvals, once it is on disk; the subject is the agent's id."""

from __future__ import annotations

from agenthost import Event


class ApprovalEvent(Event):
    """What becomes of a question.

    ``state`` is pending, approved or denied; ``question`` its words; ``purse`` what
    more may be spent of, "" for a question about a call.
    """

    approval_id: str
    turn_id: str
    session_id: str
    tool: str
    state: str
    question: str
    purse: str = ""


class ApprovalRequested(ApprovalEvent):
    """A person is asked; the turn is about to wait."""


class ApprovalAnswered(ApprovalEvent):
    """A person has answered; the turn is about to go on."""


class ApprovalRevoked(ApprovalEvent):
    """A yes that held for more than its call holds no more."""
