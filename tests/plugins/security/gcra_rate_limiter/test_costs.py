"""What requests cost: the table of the interface, and a load of the page."""

from __future__ import annotations

from pathlib import Path

import agenthost_web_ui
import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost.testing.routes import route_groups

COSTS = {
    1: """GET /, GET /static/<path:path>, GET /api/health, GET /api/health/detail,
        GET /api/status, GET /api/version, GET /api/tools""",
    2: "GET /api/agents, GET /api/config",
    3: "GET /api/usage, GET /api/usage/summary, GET /api/usage/by-model",
    5: """GET /api/agents/<agent_id>, DELETE /api/agents/<agent_id>,
        PUT /api/agents/<agent_id>/mode, GET /api/agents/<agent_id>/session,
        PUT /api/agents/<agent_id>/model, POST /api/agents/<agent_id>/stop,
        POST /api/agents/<agent_id>/session/reset, GET /api/agents/<agent_id>/ws,
        GET /api/workflows, POST /api/workflows, GET /api/triggers, POST /api/triggers,
        PUT /api/triggers/<trigger_id>, DELETE /api/triggers/<trigger_id>,
        GET /api/sessions, DELETE /api/sessions/<session_id>, GET /api/models,
        GET /api/models/<path:model_id>, GET /api/models/aliases, GET /api/providers,
        POST /api/providers/<name>/key, DELETE /api/providers/<name>/key,
        POST /api/shutdown, GET /v1/models""",
    10: "PUT /api/agents/<agent_id>/update",
    30: """POST /api/agents/<agent_id>/message, POST /v1/chat/completions,
        POST /api/agents/<agent_id>/message/stream, POST /api/providers/<name>/test,
        POST /api/agents/<agent_id>/session/compact""",
    50: "POST /api/agents",
    100: "POST /api/workflows/<workflow_id>/run, POST /api/schedules/<schedule_id>/run",
}


@pytest.fixture
def wanted() -> dict[str, int]:
    named = ((cost, names.split(",")) for cost, names in COSTS.items())
    return {" ".join(name.split()): cost for cost, names in named for name in names}


def costs_of(daemon: RunningDaemon) -> dict[str, int]:
    found: dict[str, int] = {}
    for _, group in route_groups(daemon):
        found |= {f"{r.method} {r.path}": r.cost for r in group.routes}
        found |= {f"GET {r.path}": r.cost for r in group.sockets}
    return found


async def test_requests_cost_what_the_interface_says(
    daemons: Daemons, wanted: dict[str, int]
) -> None:
    costs = costs_of(await daemons.start())
    assert {name: costs.get(name) for name in wanted} == wanted


async def test_a_page_with_all_its_files_fits_three_times_into_a_minute(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config="[rate_limit]\n")
    folder = Path(agenthost_web_ui.__file__).parent / "static"
    files = [each.relative_to(folder) for each in folder.rglob("*") if each.is_file()]
    for _ in range(3):
        assert (await daemon.http.get("/")).status_code == 200
        for name in files:
            assert (await daemon.http.get(f"/static/{name}")).status_code != 429
    left = await daemon.http.get("/api/agents")
    assert left.status_code == 200
