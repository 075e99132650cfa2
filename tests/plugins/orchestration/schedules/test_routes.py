"""``/api/schedules`` over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost.testing import Daemons, ManualClock
from agenthost_orchestration.background.errands import OccasionState

from .stage import Record, made, states


async def test_a_schedule_is_made_shown_changed_and_deleted(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    ada = await daemon.agent("ada")
    row = await made(
        daemon,
        name="weekly",
        when={"cron": "0 9 * * 1", "zone": "Europe/Berlin"},
        what={"agent": "ada", "prompt": "Sum up the week."},
        quiet_hours="22:00-07:00",
    )
    assert row["what"] == {"agent_id": ada.id, "prompt": "Sum up the week."}
    assert row["next_at"] == "2026-01-05T08:00:00.000Z"
    assert (row["session"], row["misfire"]) == ("new", {"within_secs": 86_400})
    assert row["allowance_usd"] == 0.5
    assert row["creator"] == {"kind": "loopback", "name": "loopback"}
    path = f"/api/schedules/{row['id']}"
    assert (await daemon.http.get(path)).json() == row
    changed = await daemon.http.put(
        path, json={"misfire": "skip", "when": {"every_secs": 60}}
    )
    assert changed.json()["misfire"] == "skip"
    assert changed.json()["next_at"] == "2026-01-01T07:00:00.000Z"
    assert changed.json()["quiet_hours"] == "22:00-07:00"
    listed = (await daemon.http.get("/api/schedules")).json()
    assert listed == {"schedules": [changed.json()], "total": 1}
    assert (await daemon.http.delete(path)).json()["status"] == "deleted"
    assert (await daemon.http.get(path)).status_code == 404
