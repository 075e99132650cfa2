"""Sessions: bounded, ended, their principal's own; what runs and listens in them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from agenthost import Principal
from agenthost.testing import ManualClock
from agenthost.testing.daemons import Daemons
from agenthost_mcp.server.rpc import RpcError
from agenthost_mcp.server.sessions import (
    IDLE_SECONDS,
    MOST,
    MOST_LISTENERS,
    MOST_OF_ONE,
    Sessions,
)

from .conftest import BOTH, Speaker, headers_of, modern, request
from .test_calls import locked, made

ADA, BOB = Principal("named_key", "ada"), Principal("named_key", "bob")


def test_sessions_are_bounded_for_each_and_for_all() -> None:
    sessions = Sessions(ManualClock())
    first = sessions.begin(BOB, "2025-11-25", {})
    flood = [sessions.begin(ADA, "2025-11-25", {}) for _ in range(10_000)]
    assert len(sessions) == MOST_OF_ONE + 1
    assert sessions.find(first.id, BOB) is first
    assert flood[0].ended.is_set()
    with pytest.raises(RpcError, match="ended or never was"):
        sessions.find(flood[0].id, ADA)
    for number in range(MOST):
        sessions.begin(Principal("named_key", str(number)), "2025-11-25", {})
    assert len(sessions) == MOST


async def test_a_session_ends_when_nobody_uses_it() -> None:
    clock = ManualClock()
    sessions = Sessions(clock)
    idle, listening = (sessions.begin(ADA, "2025-11-25", {}) for _ in range(2))
    listening.listening = True
    await clock.advance(IDLE_SECONDS + 1)
    assert sessions.find(listening.id, ADA) is listening
    with pytest.raises(RpcError):
        sessions.find(idle.id, ADA)


def test_listeners_are_bounded_and_give_their_place_back() -> None:
    sessions = Sessions(ManualClock())
    leave, *_ = [sessions.listen() for _ in range(MOST_LISTENERS)]
    with pytest.raises(RpcError, match="listen already"):
        sessions.listen()
    leave()
    leave()
    sessions.listen()
    with pytest.raises(RpcError):
        sessions.listen()


@pytest.mark.conformance
async def test_nobody_uses_a_session_of_somebody_else(daemons: Daemons) -> None:
    owner = await locked(daemons, "")
    other = await made(owner, "other", "chat")
    session = await owner.begin()
    stolen = {"mcp-session-id": session.headers["mcp-session-id"]}
    thief = Speaker(owner.daemon, {**session.headers, **other.headers, **stolen})
    http = owner.daemon.http
    assert (await thief.post(request("ping", {}))).status_code == 404
    assert (await http.get("/mcp", headers=thief.headers)).status_code == 404
    assert (await http.delete("/mcp", headers=thief.headers)).status_code == 404
    assert (await session.ask("ping"))["result"] == {}


async def test_a_call_is_cancelled_and_not_answered(speaker: Speaker) -> None:
    session = await speaker.begin(elicitation={})
    name = "test_input_required_result_elicitation"
    call = request("tools/call", {"name": name}, "slow")
    stream = speaker.daemon.http.stream(
        "POST", "/mcp", json=call, headers=session.headers
    )
    async with stream as answer, asyncio.timeout(120):
        told = messages(answer)
        asked = await anext(told)
        twice = await session.post(call)
        assert (twice.status_code, twice.json()["error"]["code"]) == (400, -32600)
        cancel = {"requestId": "slow"}
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}
        for body in (note, {**note, "params": {"requestId": {}}}):
            assert (await session.post(body)).status_code == 202
        assert [each async for each in told] == []
    late = {"jsonrpc": "2.0", "id": asked["id"], "result": {}}
    assert (await session.post(late)).status_code == 202
    assert (await session.ask("ping"))["result"] == {}


@pytest.mark.conformance
async def test_changes_are_told_while_somebody_listens(speaker: Speaker) -> None:
    session = await speaker.begin()
    await session.ask("resources/subscribe", uri="test://watched-resource")
    http = speaker.daemon.http
    async with (
        http.stream("GET", "/mcp", headers=session.headers) as answer,
        asyncio.timeout(120),
    ):
        second = await http.get("/mcp", headers=session.headers)
        assert second.status_code == 409
        told = messages(answer)
        await speaker.bare("tools/call", name="test_trigger_tool_change")
        heard = {(await anext(told))["method"] for _ in range(2)}
        await http.delete("/mcp", headers=session.headers)
        assert [each async for each in told] == []
    assert heard == {
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    }


@pytest.mark.conformance
async def test_a_modern_client_hears_only_what_it_asked_for(speaker: Speaker) -> None:
    wanted = {"promptsListChanged": True}
    message = modern("subscriptions/listen", notifications=wanted)
    headers = {**headers_of(message), "accept": BOTH}
    http = speaker.daemon.http
    async with (
        http.stream("POST", "/mcp", json=message, headers=headers) as answer,
        asyncio.timeout(120),
    ):
        told = messages(answer)
        begun = await anext(told)
        assert begun["params"]["notifications"] == wanted
        for what in ("tool", "prompt"):
            await speaker.bare("tools/call", name=f"test_trigger_{what}_change")
        heard = await anext(told)
    assert heard["method"] == "notifications/prompts/list_changed"
    mark = "io.modelcontextprotocol/subscriptionId"
    assert begun["params"]["_meta"] == heard["params"]["_meta"] == {mark: 1}


async def messages(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line[6:])
