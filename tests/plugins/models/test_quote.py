"""A quote tells what a message would cost, and a limit on a message binds its run."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost.testing import RunningDaemon


async def asked(daemon: RunningDaemon, agent_id: str, **body: Any) -> dict[str, Any]:
    answer = await daemon.http.post(f"/api/agents/{agent_id}/quote", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_a_quote_asks_no_model_and_is_no_less_than_the_call(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    told = await asked(daemon, agent.id, message="天地玄黄宇宙洪荒" * 50)
    assert daemon.model.requests == []
    assert told["next_call"]["input_tokens"] >= 24 * 50
    assert told["turn"] == {
        "calls": 1,
        "turns": 0,
        "cost_usd": told["turn"]["cost_usd"],
    }
    assert 0 < told["turn"]["cost_usd"] <= told["next_call"]["cost_usd"]
    path = f"/api/agents/{agent.id}/message"
    answer = await daemon.http.post(path, json={"message": "hi"})
    assert answer.json()["cost_usd"] <= told["next_call"]["cost_usd"]


async def test_a_quote_goes_by_the_history_of_the_agent(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    before = await asked(daemon, agent.id, message="go")
    daemon.model.calls("system_time")
    path = f"/api/agents/{agent.id}/message"
    await daemon.http.post(path, json={"message": "what time is it?"})
    after = await asked(daemon, agent.id, message="go")
    assert (after["turn"]["calls"], after["turn"]["turns"]) == (2, 1)
    most = "next_call"
    assert after[most]["input_tokens"] > before[most]["input_tokens"]


@pytest.mark.parametrize("body", [{}, {"message": ""}, {"message": 5}])
async def test_a_quote_without_a_message_is_refused(
    daemon: RunningDaemon, body: dict[str, Any]
) -> None:
    agent = await daemon.agent()
    path = f"/api/agents/{agent.id}/quote"
    assert (await daemon.http.post(path, json=body)).status_code == 400


async def test_a_quote_of_another_agents_session_is_refused(
    daemon: RunningDaemon,
) -> None:
    one, other = await daemon.agent("one"), await daemon.agent("other")
    session = daemon.daemon.agents.get(other.id).session_id
    body = {"message": "hi", "session_id": session}
    answer = await daemon.http.post(f"/api/agents/{one.id}/quote", json=body)
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["message", "message/stream"])
async def test_a_limit_on_a_message_binds_its_run(
    daemon: RunningDaemon, path: str
) -> None:
    agent = await daemon.agent()
    body = {"message": "hi", "max_cost_usd": 0.000001}
    answer = await daemon.http.post(f"/api/agents/{agent.id}/{path}", json=body)
    assert "max_cost_micro_usd leaves no room" in answer.text
    assert daemon.model.requests == []


@pytest.mark.parametrize("most", [0, -1, "much", 1e300])
async def test_a_limit_that_is_no_money_is_refused(
    daemon: RunningDaemon, most: object
) -> None:
    agent = await daemon.agent()
    body = {"message": "hi", "max_cost_usd": most}
    answer = await daemon.http.post(f"/api/agents/{agent.id}/message", json=body)
    assert answer.status_code == 400
    assert "max_cost_usd" in answer.json()["error"]
