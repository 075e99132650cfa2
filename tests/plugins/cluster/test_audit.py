"""The audit trail of daemons that share a database: a chain each, one sequence."""

from __future__ import annotations

import asyncio

import pytest
from agenthost import AgentSpawned
from agenthost.testing import Daemons, RunningDaemon

pytestmark = pytest.mark.conformance


async def happens(daemon: RunningDaemon, count: int) -> None:
    host = daemon.daemon
    for n in range(count):
        keep = host.events.keeping(AgentSpawned("a", float(n), "ada"))
        assert keep is not None
        await host.store.write(keep)


async def test_each_node_has_a_chain_and_each_walks_all(
    daemons: Daemons, database: str
) -> None:
    one, two = [
        await daemons.start(config=f'node = "{n}"\n[storage]\nurl = "{database}"\n')
        for n in ("a", "b")
    ]
    await asyncio.gather(happens(one, 30), happens(two, 20))
    for daemon in (one, two):
        answer = (await daemon.http.get("/api/audit/verify")).json()
        assert (answer["status"], answer["chain_length"]) == ("valid", 50), answer
        security = (await daemon.http.get("/api/security")).json()
        states = security["security_systems"]
        assert states["merkle_audit_trail"] == "active", security["reasons"]
    recent = (await one.http.get("/api/audit/recent")).json()["entries"]
    assert [entry["id"] for entry in recent] == list(range(50, 0, -1))
    numbers = {
        node: sorted(e["number"] for e in recent if e["node"] == node)
        for node in ("a", "b")
    }
    assert numbers == {"a": list(range(1, 31)), "b": list(range(1, 21))}
    of_two = next(e["id"] for e in recent if e["node"] == "b")
    assert (await two.http.get(f"/api/audit/proof/{of_two}")).status_code == 200
    assert (await one.http.get(f"/api/audit/proof/{of_two}")).status_code == 409
