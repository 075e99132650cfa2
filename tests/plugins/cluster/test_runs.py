"""Who waits for a workflow's run hears of its end from the daemon that did it."""

from __future__ import annotations

import asyncio

import pytest
from agenthost.testing import Daemons, Pause, RunningDaemon
from agenthost_orchestration.workflows import watchers

from .test_daemons import becomes, both, knows

pytestmark = pytest.mark.conformance

PATIENCE = 60.0
STEP = {"name": "one", "prompt": "hello", "agent_name": "ada"}


async def run_on(daemon: RunningDaemon, workflow: str) -> str:
    answer = await daemon.http.post(
        f"/api/workflows/{workflow}/run",
        json={"input": "it"},
        headers={"Idempotency-Key": "run"},
    )
    return str(answer.json()["output"])


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_run_that_one_daemon_does_is_waited_for_on_the_other(
    daemons: Daemons, database: str, monkeypatch: pytest.MonkeyPatch, *, deaf: bool
) -> None:
    """By its word; also when that is lost."""
    first, second = await both(daemons, database)
    await first.agent("ada")
    await becomes(second, knows(second, "ada"))
    if deaf:
        monkeypatch.setattr(second.daemon.store.signals, "_hand_on", lambda _: None)
    else:
        monkeypatch.setattr(watchers, "LOOK", 10 * PATIENCE)
    made = await first.http.post(
        "/api/workflows", json={"name": "flow", "steps": [STEP]}
    )
    workflow = made.json()["workflow_id"]
    # Either daemon may take the run's job.
    pauses = [Pause(), Pause()]
    for daemon, pause in zip((first, second), pauses, strict=True):
        daemon.model.says("one", pause, " two")
    async with asyncio.timeout(PATIENCE):
        here = asyncio.create_task(run_on(first, workflow))
        reached = [asyncio.create_task(each.reached.wait()) for each in pauses]
        _, idle = await asyncio.wait(reached, return_when=asyncio.FIRST_COMPLETED)
        for each in idle:
            each.cancel()
        there = asyncio.create_task(run_on(second, workflow))
        await asyncio.wait([there], timeout=0.3)
        assert not there.done()
        for pause in pauses:
            pause.go_on()
        assert await here == await there == "one two"
