"""The routes and the tool of triggers keep every promise of such."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agenthost.testing import RoutesContract, RunningDaemon, Sample

ONE = "/api/triggers/<trigger_id>"


@pytest.mark.conformance
class TestTheRoutesOfTriggers(RoutesContract):
    """``/api/triggers`` and ``/api/events``."""

    plugin = "plugin:orchestration"
    group = "orchestration.triggers"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """Make one, list it, change it, and it goes."""
        agent = await daemon.agent()
        body = {"agent_id": agent.id, "pattern": "system"}
        made = await daemon.http.post("/api/triggers", json=body)
        trigger = {"trigger_id": made.json()["trigger_id"]}
        event = {"type": "order", "data": {"number": 4}}
        return (
            Sample("POST /api/triggers", body),
            Sample("GET /api/triggers", query={"agent_id": agent.id}),
            Sample("POST /api/events", event),
            Sample(f"GET {ONE}", path=trigger),
            Sample(f"GET {ONE}/occasions", path=trigger),
            Sample(f"PUT {ONE}", {"prompt_template": "Say {{event}}"}, trigger),
            Sample(f"DELETE {ONE}", path=trigger),
        )
