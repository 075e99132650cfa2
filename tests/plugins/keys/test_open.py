"""What is open for a key ends with it: WebSockets, streams, tickets; and allowances."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import websockets
from agenthost.testing import ManualClock, Pause
from agenthost.testing.daemons import RunningDaemon

from .conftest import Made, Make, bearer

Ending = Callable[[], Awaitable[Any]]


def chat_uri(daemon: RunningDaemon, agent_id: str) -> str:
    return f"ws://{daemon.daemon.address}/api/agents/{agent_id}/ws"


@pytest.fixture(params=["revoked", "expired"])
def ending(
    request: pytest.FixtureRequest, clock: ManualClock
) -> Callable[[Made], Awaitable[Any]]:
    """End a key in one of the two ways."""

    async def end(key: Made) -> None:
        if request.param == "revoked":
            await key.revoke()
        else:
            await clock.advance(3600)

    return end


HOUR = "2026-01-01T01:00:00Z"


async def test_an_ended_keys_socket_is_closed_and_starts_no_turn(
    locked: RunningDaemon, make: Make, ending: Callable[[Made], Awaitable[Any]]
) -> None:
    ci = await make("ci", "chat", expires_at=HOUR)
    agent = await locked.agent("ada")
    uri = chat_uri(locked, agent.id)
    async with websockets.connect(uri, additional_headers=ci.headers) as socket:
        await socket.recv()
        await ending(ci)
        await asyncio.wait_for(socket.wait_closed(), 30)
        assert socket.close_code == 1008
    assert (await ci.get("/api/agents")).status_code == 401
    assert (await agent.session())["messages"] == []


async def test_an_ended_keys_stream_ends_and_its_turn_with_it(
    locked: RunningDaemon, make: Make, ending: Callable[[Made], Awaitable[Any]]
) -> None:
    ci = await make("ci", "chat", expires_at=HOUR)
    agent = await locked.agent("ada")
    pause = Pause()
    locked.model.says("one", pause, "two")
    async with locked.http.stream(
        "POST",
        f"/api/agents/{agent.id}/message/stream",
        json={"message": "count"},
        headers=ci.headers,
    ) as answer:
        lines = answer.aiter_lines()
        async for line in lines:
            if "one" in line:
                break
        await ending(ci)
        rest = [line async for line in lines]
    assert not any("two" in line for line in rest)
    pause.go_on()
    async with asyncio.timeout(30):
        while locked.daemon.turns.running:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.005)
    said = [m["content"] for m in (await agent.session())["messages"]]
    assert said == ["count", "one"]


async def test_an_ended_keys_ticket_opens_nothing(
    locked: RunningDaemon, make: Make, ending: Callable[[Made], Awaitable[Any]]
) -> None:
    ci = await make("ci", "chat", expires_at=HOUR)
    agent = await locked.agent("ada")
    ticket = (await ci.post("/api/ws-ticket")).json()["ticket"]
    await ending(ci)
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(f"{chat_uri(locked, agent.id)}?ticket={ticket}")
    assert refused.value.response.status_code == 401


async def test_a_ticket_acts_as_the_key_that_got_it(
    locked: RunningDaemon, make: Make
) -> None:
    ci = await make("ci", "chat")
    agent = await locked.agent("ada")
    ticket = (await ci.post("/api/ws-ticket")).json()["ticket"]
    async with websockets.connect(
        f"{chat_uri(locked, agent.id)}?ticket={ticket}"
    ) as socket:
        await socket.recv()
        await ci.revoke()
        await asyncio.wait_for(socket.wait_closed(), 30)
        assert socket.close_code == 1008


async def test_other_keys_keep_what_they_have_open(
    locked: RunningDaemon, make: Make
) -> None:
    ci, other = await make("ci", "chat"), await make("other", "chat")
    agent = await locked.agent("ada")
    uri = chat_uri(locked, agent.id)
    async with websockets.connect(uri, additional_headers=other.headers) as socket:
        await socket.recv()
        await ci.revoke()
        await socket.send(json.dumps({"type": "ping"}))
        while json.loads(await socket.recv())["type"] != "pong":
            pass


async def test_expiry_is_not_missed_when_another_key_expires_first(
    locked: RunningDaemon, make: Make, clock: ManualClock
) -> None:
    late = await make("late", "chat", expires_at="2026-01-01T02:00:00Z")
    await make("early", "chat", expires_at=HOUR)
    agent = await locked.agent("ada")
    uri = chat_uri(locked, agent.id)
    async with websockets.connect(uri, additional_headers=late.headers) as socket:
        await socket.recv()
        await clock.advance(3600)
        await socket.send(json.dumps({"type": "ping"}))
        while json.loads(await socket.recv())["type"] != "pong":
            pass
        await clock.advance(3600)
        await asyncio.wait_for(socket.wait_closed(), 30)
        assert socket.close_code == 1008


async def test_an_allowance_counts_requests_and_messages_alike(
    locked: RunningDaemon, make: Make, clock: ManualClock
) -> None:
    poor = await make("poor", "chat", units_per_minute=40)
    agent = await locked.agent("ada")
    uri = chat_uri(locked, agent.id)
    async with websockets.connect(uri, additional_headers=poor.headers) as socket:
        await socket.recv()
        said: list[str] = []
        for _ in range(2):
            await socket.send(json.dumps({"type": "message", "content": "hi"}))
        async with asyncio.timeout(20):
            while not {"response", "error"} <= set(said):
                frame = json.loads(await socket.recv())
                said.append(frame["type"])
                if frame["type"] == "error":
                    assert frame["code"] == "rate_limited"
    refused = await poor.get(f"/api/agents/{agent.id}/session")
    while refused.status_code == 200:
        refused = await poor.get(f"/api/agents/{agent.id}/session")
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "60"
    assert refused.headers["ratelimit-limit"] == "40"
    answer = await locked.http.get(
        "/api/agents", headers=bearer("master-key-0123456789")
    )
    assert answer.status_code == 200
    await clock.advance(60)
    assert (await poor.get("/api/agents")).status_code == 200
