"""The routes of workflows keep every promise of route groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import pytest
from agenthost.testing import Daemons, RoutesContract, RunningDaemon, Sample
from agenthost.testing.scripted import Pause

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


@pytest.mark.conformance
class TestTheRoutesOfRuns(RoutesContract):
    """``/api/workflows/{id}/run`` and what is told of runs."""

    plugin = "plugin:orchestration"
    group = "workflow_runs"
    untried: ClassVar[Mapping[str, str]] = {
        "GET /api/workflows/runs/<run_id>/events": "a stream has no body to look at"
    }

    @pytest.fixture(autouse=True)
    def waits(self, daemons: Daemons) -> Iterator[None]:
        """The model goes on at the end, lest the daemon waits for it when it stops."""
        self.pause = Pause()
        yield
        self.pause.go_on()

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """Run one, look at it, and cancel another that waits for its model."""
        step = {"agent_name": "ada", "prompt": "hi"}
        known = {"workflow_id": await made(daemon, steps=[step])}
        await daemon.agent("ada")
        daemon.model.says(self.pause)
        path, late = f"/api/workflows/{known['workflow_id']}/run", {"wait": "false"}
        started = await daemon.http.post(path, params=late, json={})
        waiting = {"run_id": started.json()["run_id"]}
        one, run = "/api/workflows/<workflow_id>", "/api/workflows/runs/<run_id>"
        return (
            Sample(f"POST {one}/run", {"input": "hi"}, known, late),
            Sample(f"GET {one}/runs", path=known, query={"limit": "5"}),
            Sample(f"GET {run}", path=waiting),
            Sample(f"POST {run}/cancel", path=waiting),
        )
