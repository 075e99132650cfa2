"""Routes and tools of schedules keep the promises of their kinds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agenthost import Reports, ToolContext
from agenthost.testing import (
    Daemons,
    RoutesContract,
    RunningDaemon,
    Sample,
    ToolContract,
)
from agenthost_orchestration.schedules.tools import ScheduleCreate, schedule_create

from .stage import Record, made

BODY = {"name": "x", "when": {"cron": "0 9 * * *"}, "what": {"event": "due"}}


@pytest.fixture
async def context(daemons: Daemons, record: Record) -> ToolContext:
    """An agent that has made the schedule ``own``."""
    daemon = await daemons.start()
    agent = await daemon.agent()
    context = ToolContext.of(agent.context(), daemon.daemon, Reports())
    call = ScheduleCreate(name="x", when="every 1h", prompt="Look.")
    await schedule_create(context, call)
    await daemon.daemon.store.change("UPDATE schedules SET id = 'own'")
    return context


class TestTheRoutesOfSchedules(RoutesContract):
    """``/api/schedules``."""

    plugin = "plugin:orchestration"
    group = "orchestration.schedules"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """One is changed and run, another deleted."""
        rows = [await made(daemon) for _ in range(2)]
        one, other = [{"schedule_id": str(row["id"])} for row in rows]
        path = "/api/schedules/<schedule_id>"
        return (
            Sample("GET /api/schedules"),
            Sample("POST /api/schedules", {**BODY}),
            Sample(f"GET {path}", path=one),
            Sample(f"PUT {path}", {"name": "y"}, one),
            Sample(f"POST {path}/run", path=one),
            Sample(f"GET {path}/occasions", path=one),
            Sample(f"GET {path}/next", path=one, query={"count": "3"}),
            Sample(f"DELETE {path}", path=other),
        )


@pytest.mark.conformance
class TestScheduleCreate(ToolContract):
    """Makes a schedule."""

    tool = "schedule_create"
    accepted = ({"name": "x", "when": "every 1h", "prompt": "Look."},)
    refused = ({}, {"name": "x", "when": 1, "prompt": "Look."})
    failing = ({"name": "x", "when": "never", "prompt": "Look."},)


@pytest.mark.conformance
class TestScheduleList(ToolContract):
    """Lists schedules."""

    tool = "schedule_list"
    accepted = ({},)
    refused = ({"id": "x"},)


@pytest.mark.conformance
class TestScheduleDelete(ToolContract):
    """Deletes a schedule."""

    tool = "schedule_delete"
    accepted = ({"id": "own"},)
    refused = ({}, {"id": 1})
    failing = ({"id": "none"}, {"id": "x" * 64})
