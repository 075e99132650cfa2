"""Cohere's own client judges its dialect and our simulator."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost.testing.simulators import CohereWire, ProviderSimulator, Reply

from .conversation import (
    BROKEN_OFF,
    CALL,
    JSON,
    KEY,
    SAID,
    WHY,
    chat_messages,
    chat_tools,
    our_body,
    ours,
)

cohere = pytest.importorskip("cohere", reason=WHY)

pytestmark = pytest.mark.conformance

MODEL = "command-a-03-2025"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def client_of(upstream: ProviderSimulator) -> Any:
    return cohere.AsyncClientV2(api_key=KEY, base_url=upstream.base_url)


def params() -> dict[str, Any]:
    return {
        "model": MODEL,
        "messages": chat_messages(),
        "tools": chat_tools(),
        "max_tokens": 2000,
        "temperature": 0.5,
    }


@pytest.mark.judge("cohere")
@pytest.mark.parametrize("stream", [True, False])
async def test_requests_equal_the_sdks(*, stream: bool) -> None:
    async with ProviderSimulator(CohereWire()) as upstream:
        upstream.play(SAID)
        async with client_of(upstream) as client:
            if stream:
                _ = [event async for event in client.chat_stream(**params())]
            else:
                await client.chat(**params())
    (heard,) = upstream.heard
    assert our_body("cohere", ours(MODEL, stream=stream)) == heard.body


async def test_the_sdk_reads_our_simulator() -> None:
    async with ProviderSimulator(CohereWire()) as upstream:
        upstream.play(SAID, SAID, BROKEN_OFF)
        async with client_of(upstream) as client:
            events = [event async for event in client.chat_stream(**ASKED)]
            whole = await client.chat(**ASKED)
            short = await client.chat(**ASKED)
    kinds = [event.type for event in events]
    assert kinds[0] == "message-start"
    assert kinds[-1] == "message-end"
    plan = [e.delta.message.tool_plan for e in events if e.type == "tool-plan-delta"]
    assert "".join(plan) == whole.message.tool_plan == SAID.reasoning
    said = [e.delta.message.content.text for e in events if e.type == "content-delta"]
    assert "".join(said) == whole.message.content[0].text == SAID.text
    (begun,) = [e for e in events if e.type == "tool-call-start"]
    assert (
        begun.delta.message.tool_calls.id == whole.message.tool_calls[0].id == CALL.id
    )
    assert whole.message.tool_calls[0].function.arguments == CALL.arguments
    assert events[-1].delta.usage.tokens.input_tokens == 100
    assert short.finish_reason == "MAX_TOKENS"


async def test_the_sdk_reads_our_simulated_errors() -> None:
    wire = CohereWire()
    async with ProviderSimulator(wire) as upstream:
        refusal = Reply((wire.refusal(429, "slow down"),), 429, JSON)
        upstream.play(*[refusal] * 3)
        async with client_of(upstream) as client:
            with pytest.raises(cohere.TooManyRequestsError, match="slow down"):
                await client.chat(**ASKED, request_options={"max_retries": 0})
