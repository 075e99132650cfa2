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
