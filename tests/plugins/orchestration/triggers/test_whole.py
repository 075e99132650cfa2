"""From an event to what an agent has said of it, with all that is between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost.testing import Daemons, RunningDaemon

from .stage import ORDERS


async def created(daemon: RunningDaemon, agent_id: str, **terms: Any) -> str:
    body = {"agent_id": agent_id, "pattern": ORDERS, **terms}
    answer = await daemon.http.post("/api/triggers", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["trigger_id"])


async def ended(
    daemon: RunningDaemon, trigger: str, count: int
) -> list[dict[str, Any]]:
    """Wait until so many firings of a trigger have ended."""
    async with asyncio.timeout(15):
        while True:
            path = f"/api/triggers/{trigger}/occasions"
            listed = (await daemon.http.get(path)).json()["occasions"]
            done = [row for row in listed if row["ended_at"]]
            if len(done) >= count:
                return done
            await asyncio.sleep(0.01)


def ended_all(rows: list[dict[str, Any]]) -> bool:
    return all(row["ended_at"] for row in rows)


async def test_an_agent_is_told_of_an_event_in_its_own_session(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    trigger = await created(daemon, agent.id, prompt_template="Look: {{event}}")
    daemon.model.says("I have seen it.")
    await daemon.http.post("/api/events", json={"type": "order", "data": {"n": 4}})
    [row] = await ended(daemon, trigger, 1)
    assert (row["state"], row["detail"]) == ("done", "")
    messages = (await agent.session())["messages"]
    said = [(each["role"], each["content"]) for each in messages]
    prompt = 'Look: The event "order" was published by loopback:loopback: {"n": 4}'
    assert said == [("User", prompt), ("Assistant", "I have seen it.")]


async def test_agents_that_set_each_other_off_come_to_an_end(daemons: Daemons) -> None:
    daemon = await daemons.start(config="[triggers]\ncooldown_secs = 0\n")
    agents = [await daemon.agent(name) for name in ("ada", "bob")]
    for agent, other in zip(agents, reversed(agents), strict=True):
        pattern = {"content_match": {"substring": f'Agent "{other.name}" ended'}}
        terms = {"pattern": pattern, "prompt_template": "Go on."}
        await created(daemon, agent.id, **terms)
    await agents[0].ask("Begin.")
    rows: list[dict[str, Any]] = []
    async with asyncio.timeout(15):
        while not rows or rows[0]["state"] != "refused" or not ended_all(rows):
            rows = (await daemon.http.get("/api/occasions")).json()["occasions"]
            await asyncio.sleep(0.01)
    # The events of the depths 0 to 4 fire: bob, ada, bob, ada, bob.
    states = [(row["state"], row["code"]) for row in reversed(rows)]
    assert states == [("done", "")] * 5 + [("refused", "depth")]


async def test_what_was_caught_between_cause_and_job_is_done_by_the_next_start(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    trigger = await created(daemon, agent.id, max_fires=1)
    from agenthost_orchestration.orchestration import orchestration_of

    # The process dies before the background has heard of it.
    background = orchestration_of(daemon.daemon).background
    monkeypatch.setattr(background, "wake", lambda: None)
    await daemon.http.post("/api/events", json={"type": "order"})
    path = f"/api/triggers/{trigger}/occasions"
    [row] = (await daemon.http.get(path)).json()["occasions"]
    assert row["state"] == "due"
    await daemon.daemon.stop()
    again = await daemons.start(home=daemon.daemon.home)
    [row] = await ended(again, trigger, 1)
    assert row["state"] == "done"
    session = await again.known_agent("tester").session()
    assert [each["role"] for each in session["messages"]] == ["User", "Assistant"]
