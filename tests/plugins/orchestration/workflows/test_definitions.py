"""Workflows are made, read, replaced and deleted over REST."""

from __future__ import annotations

from typing import Any

from agenthost.testing import RunningDaemon

STEP = {"agent_name": "ada"}


async def made(daemon: RunningDaemon, **body: Any) -> str:
    answer = await daemon.http.post("/api/workflows", json={"steps": [STEP], **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["workflow_id"])


async def test_what_is_left_out_has_its_default(daemon: RunningDaemon) -> None:
    id_ = await made(daemon)
    answer = await daemon.http.get(f"/api/workflows/{id_}")
    assert answer.status_code == 200, answer.text
