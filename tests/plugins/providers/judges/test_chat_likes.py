"""Clients of vendors that speak chat completions in their own way judge our bodies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost import ChatRequest
from agenthost.testing.simulators import (
    OpenAIChatWire,
    ProviderSimulator,
    ReplicateSimulator,
    ReplicateWire,
    Turn,
)

from .conversation import KEY, SAID, WHY, chat_messages, chat_tools, our_body, ours

pytestmark = pytest.mark.conformance

BOTH = pytest.mark.parametrize("stream", [True, False])


def params(model: str, limit: str, *, stream: bool, usage: bool) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model": model,
        "messages": chat_messages(),
        "tools": chat_tools(),
        limit: 2000,
        "temperature": 0.5,
    }
    if stream:
        asked["stream"] = True
        if usage:
            asked["stream_options"] = {"include_usage": True}
    return asked


async def heard_from(
    client: Any, upstream: ProviderSimulator, asked: dict[str, Any]
) -> dict[str, Any]:
    """Let an SDK of OpenAI's make ask, and read what it sent."""
    upstream.play(SAID)
    async with client:
        answer = await client.chat.completions.create(**asked)
        if asked.get("stream"):
            _ = [chunk async for chunk in answer]
    return dict(upstream.heard[-1].body)


@pytest.mark.judge("groq")
@BOTH
async def test_groq(*, stream: bool) -> None:
    groq = pytest.importorskip("groq", reason=WHY)
    model, limit = "openai/gpt-oss-120b", "max_completion_tokens"
    wire = OpenAIChatWire(base="", path="/openai/v1/chat/completions")
    async with ProviderSimulator(wire) as upstream:
        client = groq.AsyncGroq(api_key=KEY, base_url=upstream.base_url, max_retries=0)
        # The client knows no stream_options; the service documents them.
        asked = params(model, limit, stream=stream, usage=False)
        body = await heard_from(client, upstream, asked)
    written = our_body("groq", ours(model, stream=stream))
    options = written.pop("stream_options", None)
    assert options == ({"include_usage": True} if stream else None)
    assert written == body


@pytest.mark.judge("together")
@BOTH
async def test_together(*, stream: bool) -> None:
    together = pytest.importorskip("together", reason=WHY)
    model = "openai/gpt-oss-120b"
    async with ProviderSimulator(OpenAIChatWire(base="")) as upstream:
        client = together.AsyncTogether(
            api_key=KEY, base_url=upstream.base_url, max_retries=0
        )
        asked = params(model, "max_tokens", stream=stream, usage=False)
        body = await heard_from(client, upstream, asked)
    assert our_body("together", ours(model, stream=stream)) == body


@pytest.mark.judge("cerebras")
@BOTH
async def test_cerebras(*, stream: bool) -> None:
    cloud = pytest.importorskip("cerebras.cloud.sdk", reason=WHY)
    model, limit = "gpt-oss-120b", "max_completion_tokens"
    wire = OpenAIChatWire(base="")
    async with ProviderSimulator(wire) as upstream:
        client = cloud.AsyncCerebras(
            api_key=KEY,
            base_url=upstream.base_url,
            max_retries=0,
            warm_tcp_connection=False,
        )
        asked = params(model, limit, stream=stream, usage=False)
        body = await heard_from(client, upstream, asked)
    assert our_body("cerebras", ours(model, stream=stream)) == body


@pytest.mark.judge("mistral")
@BOTH
async def test_mistral(*, stream: bool) -> None:
    mistral = pytest.importorskip("mistralai.client", reason=WHY)
    model = "codestral-latest"
    asked = params(model, "max_tokens", stream=False, usage=False)
    ids = {"call_1": "a00000001", "call_2": "a00000002"}
    for message in asked["messages"]:
        for call in message.get("tool_calls", ()):
            call["id"] = ids[call["id"]]
        if "tool_call_id" in message:
            message["tool_call_id"] = ids[message["tool_call_id"]]
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        upstream.play(Turn("ok"))
        root = upstream.base_url.removesuffix("/v1")
        async with mistral.Mistral(api_key=KEY, server_url=root) as client:
            if stream:
                events = await client.chat.stream_async(**asked)
                _ = [event async for event in events]
            else:
                await client.chat.complete_async(**asked)
        body = dict(upstream.heard[0].body)
    # The client writes this default out.
    if not stream:
        assert body.pop("stream") is False
    written = our_body("mistral", ours(model, stream=stream))
    _without_defaults(body)
    _same_calls(written, body)
    assert written == body


def _without_defaults(body: dict[str, Any]) -> None:
    """Take out what the client writes though nobody asked for it."""
    for message in body["messages"]:
        assert message.pop("prefix", False) is False
        for call in message.get("tool_calls", ()):
            assert call.pop("index", 0) == 0


def _same_calls(written: dict[str, Any], body: dict[str, Any]) -> None:
    """Take the ids out: ours are made of the conversation's, nine letters long."""
    for sent in (written, body):
        for message in sent["messages"]:
            calls = message.get("tool_calls", [])
            for found in [*calls, *([message] if "tool_call_id" in message else [])]:
                name = "id" if "id" in found else "tool_call_id"
                assert len(found.pop(name)) == 9


@pytest.mark.judge("replicate")
async def test_replicate() -> None:
    replicate = pytest.importorskip("replicate", reason=WHY)
    model = "meta/llama-3-70b-instruct"
    fields = {
        "prompt": "hello",
        "system_prompt": "Be brief.",
        "max_tokens": 2000,
        "temperature": 0.5,
    }
    async with ReplicateSimulator(ReplicateWire()) as upstream:
        upstream.play(Turn("ok"))
        root = upstream.base_url.removesuffix("/v1")
        client = replicate.Client(api_token=KEY, base_url=root)
        created = await asyncio.to_thread(
            lambda: client.models.predictions.create(model, input=fields, stream=True)
        )
        client._client.close()
        assert created.urls["stream"].endswith("/p1/stream")
        sent = dict(upstream.heard[0].body)
        upstream.play(Turn("ok"))
        await _ask_ours(upstream, ours(model, stream=True))
    assert upstream.heard[1].body == sent


async def _ask_ours(upstream: ProviderSimulator, asked: ChatRequest) -> None:
    from dataclasses import replace

    import httpx
    from agenthost import Endpoint, ModelCall, Secret
    from agenthost.testing import installed_exchange
    from agenthost.testing.installed import provider_of

    short = replace(asked, messages=asked.messages[:1])
    where = Endpoint("replicate", upstream.base_url, Secret(KEY))
    async with httpx.AsyncClient() as http:
        exchange = installed_exchange()
        call = ModelCall(short, where, http, exchange)
        _ = [delta async for delta in exchange.open(provider_of("replicate"), call)]
