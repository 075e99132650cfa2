"""What a manifest is proactive about becomes triggers, as long as it says so."""

from __future__ import annotations

import asyncio
from typing import Any

from agenthost.testing import Daemons, RunningDaemon

from .stage import ORDERS
from .test_whole import created, ended

SAID = ["event:agent_spawned", "memory:shared.news"]


def proactive(*conditions: str) -> str:
    return f"schedule = {{ proactive = {{ conditions = {list(conditions)} }} }}"


async def triggers(daemon: RunningDaemon, count: int) -> list[dict[str, Any]]:
    """Wait until there are so many triggers."""
    async with asyncio.timeout(30):
        while True:
            rows: list[dict[str, Any]] = (await daemon.http.get("/api/triggers")).json()
            if len(rows) == count:
                return rows
            await asyncio.sleep(0.005)


async def test_each_condition_of_a_manifest_is_a_trigger(daemons: Daemons) -> None:
    daemon = await daemons.start()
    ada = await daemon.agent("ada", extra=proactive(*SAID))
    rows = await triggers(daemon, 2)
    assert sorted(str(row["pattern"]) for row in rows) == [
        "{'agent_spawned': {'name_pattern': '*'}}",
        "{'memory_key_pattern': {'key_pattern': 'shared.news'}}",
    ]
    assert {row["agent_id"] for row in rows} == {ada.id}
    (news,) = [row for row in rows if "memory_key_pattern" in row["pattern"]]
    daemon.model.says("Nothing to do.")
    path = f"/api/memory/agents/{ada.id}/kv/shared.news"
    await daemon.http.put(path, json={"value": "rain"})
    [done] = await ended(daemon, news["id"], 1)
    assert (done["state"], done["detail"]) == ("done", "")
    assert (
        daemon.model.requests[0]
        .messages[-1]
        .text.startswith("Something happened that you look out for: ")
    )


async def test_triggers_of_a_manifest_go_and_stay_with_it(daemons: Daemons) -> None:
    daemon = await daemons.start()
    ada = await daemon.agent("ada", extra=proactive(*SAID))
    rows = await triggers(daemon, 2)
    by_hand = await created(daemon, ada.id, pattern=ORDERS)
    off = {"enabled": False}
    await daemon.http.put(f"/api/triggers/{rows[0]['id']}", json=off)
    update = f"/api/agents/{ada.id}/update"
    await daemon.http.put(update, json={"description": "another"})
    await daemon.daemon.stop()
    daemon = await daemons.start(home=daemon.daemon.home)
    kept = await triggers(daemon, 3)
    assert {row["id"] for row in kept} == {*(row["id"] for row in rows), by_hand}
    (same,) = [row for row in kept if row["id"] == rows[0]["id"]]
    assert same["enabled"] is False
    await daemon.http.delete(f"/api/agents/{ada.id}")
    assert await triggers(daemon, 0) == []
