"""Ten thousand agents: the daemon starts, lists and deletes them in time."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from agenthost import Agent, Manifest, Session
from agenthost.testing import Daemons
from agenthost_records.agent_rows import row_of
from agenthost_records.session_rows import open_session
from agenthost_records.tables import agents
from sqlalchemy import Connection, insert

pytestmark = pytest.mark.faults

AGENTS = 10_000
KILLED = 200
BOOT = 10.0
LIST_P95 = 0.3
RESIDENT = 600 * 1024 * 1024
LISTS = 40


def resident() -> int:
    """How much memory this process has in use, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def fill(connection: Connection, one: Agent) -> None:
    """Write the others as rows: ten thousand requests would take minutes."""
    for number in range(1, AGENTS):
        named = {**one.manifest.model_dump(exclude_unset=True), "name": f"a{number}"}
        agent = replace(
            one,
            id=str(uuid4()),
            session_id=str(uuid4()),
            name=f"a{number}",
            manifest=Manifest.model_validate(named),
        )
        connection.execute(insert(agents), row_of(agent))
        open_session(connection, Session(agent.session_id, agent.id, agent.created_at))


async def test_ten_thousand_agents_are_served_in_time(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    config = "[rate_limit]\nenabled = false\n"
    daemon = await daemons.start(home=home, config=config)
    first = (await daemon.agent("a0")).id
    one = daemon.daemon.agents.get(first)
    await daemon.daemon.store.write(partial(fill, one=one))
    await daemon.daemon.stop()
    before = time.perf_counter()
    daemon = await daemons.start(home=home, config=config)
    assert time.perf_counter() - before < BOOT
    took = []
    for _ in range(LISTS):
        before = time.perf_counter()
        answer = await daemon.http.get("/api/agents")
        took.append(time.perf_counter() - before)
    assert len(answer.json()) == AGENTS
    assert sorted(took)[int(LISTS * 0.95)] < LIST_P95
    for row in answer.json()[:KILLED]:
        killed = await daemon.http.delete(f"/api/agents/{row['id']}")
        assert killed.status_code == 200
    assert len(daemon.daemon.agents) == AGENTS - KILLED
    assert resident() < RESIDENT
