"""The routes of approvals keep every promise of route groups."""

from __future__ import annotations

from collections.abc import Sequence

from agenthost.testing import RoutesContract, RunningDaemon, Sample

from .stage import TOOLS, Shop, ask, waits


class TestTheRoutesOfApprovals(RoutesContract):
    """``/api/approvals``."""

    plugin = "plugin:approvals"
    group = "approvals"

    def besides(self) -> Sequence[object]:
        """A tool that asks before it does anything."""
        return Shop(asks={"pay": ask()}).plugins

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """Two turns wait; one hears yes, the other no."""
        waiting = []
        for name in ("ada", "grace"):
            agent = await daemon.agent(name, tools=TOOLS)
            daemon.model.calls("pay", amount=1)
            told = await waits(agent, "pay")
            waiting.append({"approval_id": told["approval_id"]})
        daemon.model.says("Done.")
        daemon.model.says("Done.")
        yes, no = waiting
        return (
            Sample("GET /api/approvals", query={"state": "pending"}),
            Sample("GET /api/approvals/<approval_id>", path=yes),
            Sample(
                "POST /api/approvals/<approval_id>/approve",
                {"remember": "session"},
                yes,
            ),
            Sample("POST /api/approvals/<approval_id>/revoke", path=yes),
            Sample("POST /api/approvals/<approval_id>/deny", {"reason": "dear"}, no),
        )
