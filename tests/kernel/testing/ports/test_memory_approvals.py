"""Approvals in memory keep the promises of the port, and serve a daemon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
from agenthost import ALLOW, ApprovalsBackend, Ask, Host, Question
from agenthost.testing import (
    AnswerApproval,
    ApprovalsContract,
    Daemons,
    MemoryApprovals,
    PersonSaid,
)
from agenthost.testing.ports.approvals import ADA
from agenthost.testing.ports.stage import until
from agenthost.testing.ports.workshop import Workshop


async def answer_from_memory(host: Host, approval_id: str, said: PersonSaid) -> None:
    assert isinstance(host.approvals, MemoryApprovals)
    await host.approvals.answer(
        said.who, approval_id, yes=said.yes, reason=said.reason, values=said.values
    )


@pytest.mark.conformance
class TestMemoryApprovals(ApprovalsContract):
    """What one daemon was asked the next one knows."""

    @pytest.fixture
    def backend(self) -> ApprovalsBackend:
        return ApprovalsBackend("memory", partial(MemoryApprovals, kept=[]))

    @pytest.fixture
    def plugins(self) -> Sequence[object]:
        return (MemoryApprovals.plugin(),)

    @pytest.fixture
    def answer(self) -> AnswerApproval:
        return answer_from_memory


async def test_it_serves_a_daemon(daemons: Daemons) -> None:
    shop = Workshop()
    ask = Ask(Question("Which purse?", choices=("left", "right")))
    shop.calls = lambda case: ask if case.tool == "pay" else ALLOW
    running = await daemons.start(
        config='[backends]\napprovals = "memory"\n',
        plugins=[*shop.plugins(), MemoryApprovals.plugin()],
    )
    running.model.calls("pay", amount=5)
    agent = await running.agent(tools=["pay"])
    waits = (await agent.send("pay them")).json()
    approvals = running.daemon.approvals
    assert isinstance(approvals, MemoryApprovals)
    chosen = {"choice": "left"}
    await approvals.answer(ADA, waits["approval_id"], yes=True, values=chosen)

    async def paid() -> bool:
        return "pay 5" in shop.log

    await until(paid, "the turn went on")
    assert dict(shop.contexts[0].answers) == chosen
