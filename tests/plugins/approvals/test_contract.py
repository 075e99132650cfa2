"""The desk over the store keeps every promise of its port."""

from __future__ import annotations

import pytest
from agenthost import ApprovalsBackend, Host
from agenthost.testing import AnswerApproval, ApprovalsContract, PersonSaid
from agenthost_approvals import open_approvals
from agenthost_approvals.desk import Desk, Reply


async def answer_at_the_desk(host: Host, approval_id: str, said: PersonSaid) -> None:
    """Answer as the routes do."""
    assert isinstance(host.approvals, Desk)
    reply = Reply(said.yes, said.reason, said.values)
    await host.approvals.answer(said.who, approval_id, reply)


class TestDesk(ApprovalsContract):
    """Its rows are in the store, its keeper goes on with the turns."""

    @pytest.fixture
    def backend(self) -> ApprovalsBackend:
        return ApprovalsBackend("embedded", open_approvals)

    @pytest.fixture
    def answer(self) -> AnswerApproval:
        return answer_at_the_desk
