"""What tests read of a trail."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agenthost.testing import RunningDaemon


async def entries(daemon: RunningDaemon, **asked: Any) -> list[dict[str, Any]]:
    """The entries that the API shows, oldest first, with their details read."""
    answer = await daemon.http.get("/api/audit/recent", params={"limit": 500, **asked})
    assert answer.status_code == 200, answer.text
    listed = answer.json()["entries"]
    return [{**e, "details": json.loads(e["details"])} for e in reversed(listed)]


async def kinds(daemon: RunningDaemon) -> list[str]:
    return [entry["event_type"] for entry in await entries(daemon)]


async def verified(daemon: RunningDaemon) -> dict[str, Any]:
    answer = await daemon.http.get("/api/audit/verify")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def standing(daemon: RunningDaemon) -> tuple[str, bool]:
    """How the trail stands, and whether all is well."""
    answer = (await daemon.http.get("/api/security")).json()
    return answer["security_systems"]["merkle_audit_trail"], answer["all_active"]


def tamper(home: Path, *statements: str, values: Sequence[Any] = ()) -> None:
    """Change the database as somebody with the file could."""
    database = sqlite3.connect(home / "data" / "agenthost.db")
    with database:
        for statement in statements:
            database.execute(statement, values)
    database.close()
