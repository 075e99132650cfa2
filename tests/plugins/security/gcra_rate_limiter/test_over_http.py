"""The limiter as clients meet it: on REST, on /v1, on WebSockets, with and without."""

from __future__ import annotations

import json

import pytest
from agenthost.testing import Daemons, RunningDaemon
from websockets.asyncio.client import connect

TIGHT = "[rate_limit]\nunits_per_minute = 60\nburst = 100\n"


def state(daemon: RunningDaemon) -> tuple[bool, str | None]:
    systems = {s.name: s for s in daemon.daemon.registry.systems()}
    found = systems["gcra_rate_limiter"]
    return found.active, found.reason


@pytest.mark.setting("rate_limit.units_per_minute", "rate_limit.burst")
async def test_a_client_that_asks_too_much_is_told_when_to_come_again(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config=TIGHT)
    for _ in range(20):
        assert (await daemon.http.get("/nowhere")).status_code == 404
    refused = await daemon.http.get("/nowhere")
    assert refused.status_code == 429
    assert refused.json()["code"] == "rate_limited"
    assert refused.json()["error"].startswith("your address may use 60 units a minute")
    told = refused.headers
    assert told["retry-after"] == "60"
    assert (told["ratelimit-limit"], told["ratelimit-remaining"]) == ("100", "0")
    assert 1 <= int(told["ratelimit-reset"]) <= 5
    assert told["x-frame-options"] == "DENY"


async def test_it_is_on_by_itself(daemons: Daemons) -> None:
    daemon = await daemons.start(config="[rate_limit]\n")
    assert state(daemon) == (True, None)
    statuses = [
        (await daemon.http.post("/api/agents", json={})).status_code for _ in range(11)
    ]
    assert statuses == [400] * 10 + [429]


@pytest.mark.setting("rate_limit.enabled")
async def test_switched_off_it_limits_nobody_and_says_so(daemons: Daemons) -> None:
    daemon = await daemons.start(config=TIGHT + "enabled = false\n")
    for _ in range(30):
        assert (await daemon.http.get("/nowhere")).status_code == 404
    active, reason = state(daemon)
    assert not active
    assert reason == "[rate_limit] enabled is false, so nobody is limited"
    assert any("gcra_rate_limiter is not active" in w for w in daemon.daemon.warnings)
    assert (await daemon.http.get("/api/health")).json()["status"] == "ok"


@pytest.mark.setting("rate_limit.costs")
async def test_the_operator_sets_other_costs(daemons: Daemons) -> None:
    costs = '[rate_limit.costs]\n"GET /api/health" = 50\n"GET /api/agents/**" = 0\n'
    daemon = await daemons.start(config=TIGHT + costs)
    for _ in range(30):
        assert (await daemon.http.get("/api/agents/x")).status_code == 400
    statuses = [(await daemon.http.get("/api/health")).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


async def test_wrong_keys_cost_more_and_are_refused_before_they_are_read(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config='api_key = "right"\n' + TIGHT)
    wrong = {"authorization": "Bearer wrong"}
    statuses = [
        (await daemon.http.get("/api/status", headers=wrong)).status_code
        for _ in range(4)
    ]
    assert statuses == [401, 401, 401, 429]
    right = {"authorization": "Bearer right"}
    # Seven units are left: what asks with the right key is limited as anybody.
    answers = [await daemon.http.get("/api/status", headers=right) for _ in range(12)]
    assert answers[0].status_code == 200
    assert answers[-1].status_code == 429


async def test_each_face_refuses_in_its_own_shape(daemons: Daemons) -> None:
    daemon = await daemons.start(config=TIGHT + "[openai]\nerror_objects = true\n")
    assert (await daemon.http.post("/api/agents", json={})).status_code == 400
    assert (await daemon.http.post("/api/agents", json={})).status_code == 400
    native = await daemon.http.post("/api/agents", json={})
    openai = await daemon.http.post("/v1/chat/completions", json={})
    assert (native.status_code, openai.status_code) == (429, 429)
    assert isinstance(native.json()["error"], str)
    assert openai.json()["error"]["code"] == "rate_limited"


async def test_a_flood_on_a_websocket_gets_error_frames_and_stays_open(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(
        config="[rate_limit]\nunits_per_minute = 60\nburst = 120\n"
    )
    agent = await daemon.agent()
    daemon.model.says("yes")
    daemon.model.says("yes")
    address = daemon.url.replace("http", "ws") + f"/api/agents/{agent.id}/ws"
    async with connect(address) as socket:
        seen: list[str] = []
        for _ in range(5):
            await socket.send(json.dumps({"type": "message", "content": "hello"}))
        await socket.send(json.dumps({"type": "ping"}))
        async for text in socket:
            frame = json.loads(text)
            if frame["type"] in {"response", "pong"}:
                seen.append(frame["type"])
            if frame["type"] == "error":
                assert frame["code"] == "rate_limited"
                seen.append("error")
            if len(seen) == 6:
                break
    assert sorted(seen) == ["error"] * 3 + ["pong"] + ["response"] * 2


async def test_a_named_key_pays_for_itself_and_not_for_its_address(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config='api_key = "right"\n' + TIGHT)
    operator = {"authorization": "Bearer right"}
    made = await daemon.http.post(
        "/api/keys",
        json={"name": "ci", "scopes": ["read"], "units_per_minute": 400},
        headers=operator,
    )
    assert made.status_code == 201, made.text
    named = {"authorization": f"Bearer {made.json()['key']}"}
    let_in = 0
    while (answer := await daemon.http.get("/api/agents", headers=named)).is_success:
        let_in += 1
    # While they were asked, some came back: more than the address alone could have.
    assert 200 <= let_in < 2_000
    assert answer.status_code == 429
    assert "this key may use 400 units" in answer.json()["error"]
    assert (await daemon.http.get("/api/status", headers=operator)).status_code == 200
