"""Who is refused at a route is in the trail, over HTTP and WebSockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import websockets
from agenthost.testing import Daemons, RunningDaemon

from .book import entries

AGENT = "00000000-0000-0000-0000-000000000001"
MASTER = "master-0123456789abcdef"
CONFIG = f'api_key = "{MASTER}"\n'
KEYED = {"authorization": f"Bearer {MASTER}"}


async def refused(daemon: RunningDaemon, count: int) -> list[dict[str, Any]]:
    """The entries of refusals, once there are so many: nobody waited for them."""
    async with asyncio.timeout(30):
        while True:
            told = await entries(daemon, event_type="access_refused")
            if len(told) >= count:
                return told
            await asyncio.sleep(0.01)


async def test_wrong_keys_and_missing_rights_are_entries(daemons: Daemons) -> None:
    daemon = await daemons.start(config=CONFIG)
    daemon.http.headers.update(KEYED)
    wrong = {"authorization": "Bearer canary-key"}
    assert (await daemon.http.get("/api/agents", headers=wrong)).status_code == 401
    assert (await daemon.http.get("/api/nowhere", headers=wrong)).status_code == 401
    [entry] = await refused(daemon, 1)
    assert (entry["actor"], entry["details"]["status"]) == ("", 401)
    assert entry["details"]["subject"] == "127.0.0.1"
    assert entry["details"]["route"] == "GET /api/agents"
    made = await daemon.http.post("/api/keys", json={"name": "ci", "scopes": ["read"]})
    own = {"authorization": f"Bearer {made.json()['key']}"}
    path = f"/api/agents/{AGENT}"
    assert (await daemon.http.delete(path, headers=own)).status_code == 403
    told = (await refused(daemon, 2))[1]
    assert (told["actor"], told["details"]["status"]) == ("named_key:ci", 403)


async def test_an_end_of_the_daemon_tells_what_was_counted(
    daemons: Daemons,
) -> None:
    first = await daemons.start(config=CONFIG)
    home = first.daemon.home
    wrong = {"authorization": "Bearer canary-key"}
    for _ in range(4):
        assert (await first.http.get("/api/agents", headers=wrong)).status_code == 401
    socket = f"ws://{first.daemon.address}/api/agents/{AGENT}/ws"
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(socket, additional_headers=wrong)
    await first.daemon.stop()
    second = await daemons.start(config=CONFIG, home=home)
    second.http.headers.update(KEYED)
    told = await refused(second, 2)
    assert sum(entry["details"]["times"] for entry in told) == 5
    assert "canary" not in str(told)
