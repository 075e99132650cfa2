"""Clients that leave, cancel what does not heed it, and send what nobody should."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable
from typing import Any

import pytest
from agenthost import Effect, ToolContext, ToolResult, ToolSpec, hookimpl
from agenthost.testing.daemons import Daemons
from agenthost_mcp.server import legacy
from agenthost_mcp.server.answering import Told

from .conftest import BOTH, Speaker, headers_of, modern, request


class Slow:
    """Tools that take their time: one is cancelled, one does not heed it."""

    __name__ = "slow"

    def __init__(self) -> None:
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()
        self.free = asyncio.Event()

    async def waits(self, _: ToolContext, __: Any) -> ToolResult:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        raise AssertionError

    async def stays(self, _: ToolContext, __: Any) -> ToolResult:
        self.begun.set()
        while not self.free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.free.wait()
        return ToolResult("after all")

    @hookimpl
    def register_tool(self) -> Iterable[ToolSpec]:
        empty = {"type": "object"}
        yield ToolSpec("waits", "Waits", empty, Effect.READ, self.waits)
        yield ToolSpec("stays", "Stays", empty, Effect.READ, self.stays)


async def test_who_leaves_cancels_and_who_cancels_waits_for_nothing(
    daemons: Daemons,
) -> None:
    slow = Slow()
    speaker = Speaker(await daemons.start(plugins=[slow]), {})
    message = modern("tools/call", name="waits")
    call = speaker.post(message, **headers_of(message), accept=BOTH)
    leaving = asyncio.create_task(call)
    async with asyncio.timeout(120):
        await slow.begun.wait()
        leaving.cancel()
        await slow.cancelled.wait()
    slow.begun.clear()
    session = await speaker.begin()
    asked = session.post(request("tools/call", {"name": "stays"}, 5))
    staying = asyncio.create_task(asked)
    async with asyncio.timeout(120):
        await slow.begun.wait()
        method = "notifications/cancelled"
        await session.post(
            {"jsonrpc": "2.0", "method": method, "params": {"requestId": 5}}
        )
        answer = await staying
    assert (answer.status_code, answer.content) == (202, b"")
    slow.free.set()
    assert (await session.ask("ping"))["result"] == {}


@pytest.mark.conformance
async def test_what_nobody_should_send_is_refused_in_words(speaker: Speaker) -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = {"a": deep}
    lone = json.dumps(request("resources/read", {"uri": "\ud800"})).encode()
    for body in (
        request("tools/call", {"name": "calculate", "arguments": deep}),
        request("tools/call", {"name": "json_schema_2020_12_tool", "arguments": deep}),
        request("tools/call", {"name": "calculate", "arguments": [1]}),
        request("tools/call", {"name": {"a": 1}}),
        request("tools/list", {"cursor": "\u00e9"}),
        request("tools/list", {"cursor": ["x"]}),
        request("resources/read", {"uri": "x" * 1_000_000}),
        request("prompts/get", {"name": "test_prompt_with_arguments"}),
        request("completion/complete", {"ref": [], "argument": {}}),
        lone,
    ):
        answer = await speaker.post(body)
        told = answer.json()
        assert answer.status_code == 200, answer.text
        assert "error" in told or told["result"]["isError"], told
        assert len(answer.content) < 10_000
    able: dict[str, Any] = {"elicitation": {}}
    name = "test_input_required_result_request_state"
    wrong: tuple[dict[str, Any], ...] = (
        {"requestState": "\ud800.\ud800"},
        {"inputResponses": {"confirm": 3}},
        {"inputResponses": [], "requestState": {}},
    )
    for more in wrong:
        message = modern("tools/call", able, name=name, **more)
        sent = json.dumps(message).encode()
        answer = await speaker.post(sent, **headers_of(message))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
    assert speaker.daemon.daemon.panics == 0


async def test_so_many_requests_of_a_session_are_under_way_and_no_more(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legacy, "MOST_AT_ONCE", 2)
    slow = Slow()
    session = await Speaker(await daemons.start(plugins=[slow]), {}).begin("2025-03-26")
    asked = session.post(request("tools/call", {"name": "stays"}, 5))
    staying = asyncio.create_task(asked)
    async with asyncio.timeout(120):
        await slow.begun.wait()
    try:
        assert (await session.ask("ping"))["result"] == {}
        pings = [request("ping", {}, number) for number in (6, 7)]
        refused = await session.post(pings)
    finally:
        slow.free.set()
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
    assert (await staying).json()["id"] == 5
    assert len((await session.post(pings)).json()) == 2


async def test_what_a_client_says_of_itself_is_bounded(speaker: Speaker) -> None:
    for count, fine in ((64, True), (65, False)):
        able: dict[str, Any] = {f"c{n}": {} for n in range(count)}
        params = {"protocolVersion": "2025-11-25", "capabilities": able}
        answer = await speaker.post(request("initialize", params))
        assert ("mcp-session-id" in answer.headers) is fine
        assert ("there are more than 64" in answer.text) is not fine
    uris = [f"test://{n}" for n in range(257)]
    wanted = {"resourceSubscriptions": uris}
    message = modern("subscriptions/listen", notifications=wanted)
    async with asyncio.timeout(120):
        answer = await speaker.post(message, **headers_of(message), accept=BOTH)
    assert answer.json()["error"]["code"] == -32602


async def test_two_requests_of_a_batch_have_two_ids(speaker: Speaker) -> None:
    session = await speaker.begin("2025-03-26")
    refused = await session.post([request("ping", {}, 1), request("tools/list", {}, 1)])
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)


async def test_of_a_flood_before_an_answer_the_first_thousand_are_told() -> None:
    told = Told(streams=True)
    for number in range(1_500):
        told({"number": number})
    assert [each["number"] for each in told.waiting] == list(range(1_000))
