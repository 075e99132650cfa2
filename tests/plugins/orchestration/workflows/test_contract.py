"""The routes of workflows keep every promise of route groups."""

from __future__ import annotations

from collections.abc import Sequence

from agenthost.testing import RoutesContract, RunningDaemon, Sample

from .test_definitions import made

BODY = {"name": "flow", "steps": [{"agent_name": "ada"}]}


class TestTheRoutesOfWorkflows(RoutesContract):
    """``/api/workflows``."""

    plugin = "plugin:orchestration"
    group = "workflows"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """Make one, list it, show it, change it, price it, and another goes."""
        known = {"workflow_id": await made(daemon)}
        one = "/api/workflows/<workflow_id>"
        return (
            Sample("POST /api/workflows", BODY),
            Sample("GET /api/workflows"),
            Sample("POST /api/workflows/reload"),
            Sample(f"GET {one}", path=known),
            Sample(f"PUT {one}", BODY, known),
            Sample(f"POST {one}/quote", {"input": "hi"}, known),
            Sample(f"DELETE {one}", path=known),
        )
