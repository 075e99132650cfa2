"""Schedules and who does what is due, together in a daemon."""

from __future__ import annotations

import asyncio
from typing import Any

from agenthost import ProviderFault
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.daemons import RunningDaemon

from .stage import made, shows


async def ends(daemon: RunningDaemon, schedule_id: str, count: int) -> list[Any]:
    """Wait until so many times have ended; give them, newest first."""
    path = f"/api/schedules/{schedule_id}/occasions"
    async with asyncio.timeout(30):
        while True:
            rows = (await daemon.http.get(path)).json()["occasions"]
            ended = [row for row in rows if row["ended_at"] is not None]
            if len(ended) == count:
                return ended


async def test_an_agent_is_told_its_prompt_at_each_time_and_answers_once(
    daemons: Daemons,
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    await daemon.agent("ada")
    told = {"agent": "ada", "prompt": "What is new?"}
    row = await made(daemon, when={"every_secs": 60}, what=told)
    daemon.model.says("Nothing.")
    await clock.advance(60)
    (done,) = await ends(daemon, row["id"], 1)
    assert (done["state"], done["text"]) == ("done", "Nothing.")
    assert done["at"] == done["key"] == "2026-01-01T00:01:00.000Z"
    assert len(daemon.model.requests) == 1
    home = daemon.daemon.home
    await daemon.daemon.stop()
    daemon = await daemons.start(home=home, clock=ManualClock(clock.time() + 3_600))
    daemon.model.says("Still nothing.")
    done, missed, _ = await ends(daemon, row["id"], 3)
    assert {done["state"], missed["state"]} == {"done", "missed"}
    assert len(daemon.model.requests) == 1


async def test_failures_that_come_again_pause_it_until_a_person_resumes_it(
    daemons: Daemons,
) -> None:
    clock = ManualClock()
    config = "[background]\npause_after = 2\n"
    daemon = await daemons.start(clock=clock, config=config)
    await daemon.agent("ada")
    told = {"agent": "ada", "prompt": "What is new?"}
    row = await made(daemon, when={"every_secs": 60}, what=told)
    for count in (1, 2):
        daemon.model.fails(ProviderFault.BILLING)
        await clock.advance(60)
        (ended, *_) = await ends(daemon, row["id"], count)
        assert (ended["state"], ended["code"]) == ("failed", "billing")
    await shows(daemon, row["id"], enabled=False, next_at=None)
    path = f"/api/schedules/{row['id']}"
    assert "2 failures in a row" in (await daemon.http.get(path)).json()["paused"]
    assert (await daemon.http.put(path, json={"enabled": True})).json()["next_at"]


async def test_an_event_is_published_and_a_run_now_is_done(daemons: Daemons) -> None:
    daemon = await daemons.start(clock=ManualClock())
    row = await made(daemon, what={"event": "tick", "data": {"n": 1}}, enabled=False)
    begun = await daemon.http.post(f"/api/schedules/{row['id']}/run")
    (done,) = await ends(daemon, row["id"], 1)
    assert (done["id"], done["state"]) == (begun.json()["occasion_id"], "done")


async def test_a_deleted_agent_is_asked_nothing_more(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    ada = await daemon.agent("ada")
    told = {"agent": "ada", "prompt": "What is new?"}
    row = await made(daemon, when={"every_secs": 60}, what=told)
    await daemon.http.delete(f"/api/agents/{ada.id}")
    path = f"/api/schedules/{row['id']}"
    while (await daemon.http.get(path)).status_code != 404:  # noqa: ASYNC110 - what it waits for has no event
        await asyncio.sleep(0.01)
    await clock.advance(600)
    assert daemon.model.requests == []


async def test_a_workflow_is_run_by_its_name_and_pays_from_the_schedule(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    ada = await daemon.agent("ada")
    steps = [{"agent_name": "ada", "prompt": "Say {{input}}."}]
    body = {"name": "greet", "steps": steps}
    workflow = (await daemon.http.post("/api/workflows", json=body)).json()
    row = await made(daemon, what={"workflow": "greet", "input": "good morning"})
    daemon.model.says("Good morning.")
    await daemon.http.post(f"/api/schedules/{row['id']}/run")
    (done,) = await ends(daemon, row["id"], 1)
    assert (done["state"], done["detail"], done["text"]) == (
        "done",
        "",
        "Good morning.",
    )
    path = f"/api/workflows/{workflow['workflow_id']}/runs"
    (run,) = (await daemon.http.get(path)).json()
    assert (run["id"], run["state"]) == (done["run_id"], "Completed")
    spent = await daemon.daemon.usage.of_agent(ada.id)
    assert round(done["cost_usd"] * 1_000_000) == spent.cost_micro_usd > 0
