"""How a model call meets HTTP: how much is read, what is reused."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from agenthost import (
    ChatRequest,
    Completion,
    Delta,
    Endpoint,
    Message,
    ModelCall,
    ProviderError,
    ProviderFault,
    ProviderSpec,
    ReasoningChunk,
    Role,
    Secret,
    Text,
    TextChunk,
)
from agenthost.testing import installed_exchange
from agenthost.testing.installed import provider_of
from agenthost.testing.simulators import (
    OpenAIChatWire,
    OpenAIResponsesWire,
    ProviderSimulator,
    Reply,
    Turn,
)
from agenthost_egress.exchange import ERROR_BYTES, HttpExchange, joined

KEY = Secret("sk-1")


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


async def ask(
    spec: ProviderSpec, model: str, upstream: ProviderSimulator, http: httpx.AsyncClient
) -> list[Delta]:
    asked = ChatRequest(model, "", (Message(Role.USER, (Text("hi"),)),))
    where = Endpoint(spec.facts.slug, upstream.base_url, KEY)
    exchange = HttpExchange()
    call = ModelCall(asked, where, http, exchange)
    return [delta async for delta in exchange.open(spec, call)]


async def test_a_model_is_spoken_to_in_the_dialect_it_asks_for(
    http: httpx.AsyncClient,
) -> None:
    spec = provider_of("openai")
    async with ProviderSimulator(OpenAIResponsesWire()) as upstream:
        upstream.play(Turn("hello"))
        deltas = await ask(spec, "gpt-5.5-pro", upstream, http)
    assert isinstance(deltas[-1], Completion)
    assert spec.spoken_to("gpt-5.5").name == "openai-responses"
    assert spec.spoken_to("gpt-5.2").name == "openai-chat"
    assert spec.spoken_to("gpt-nobody-lists").name == "openai-chat"


async def test_the_connection_is_used_again(http: httpx.AsyncClient) -> None:
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        upstream.play(Turn("one"), Turn("two"), Turn("three"))
        for _ in range(3):
            await ask(provider_of("openai"), "gpt-4o", upstream, http)
        assert upstream.connections == 1


async def test_an_answer_that_goes_on_and_on_is_left(http: httpx.AsyncClient) -> None:
    wire = OpenAIChatWire()
    noise = b": " + b"x" * 20_000 + b"\n\n"
    async with ProviderSimulator(wire) as upstream:
        upstream.play(Reply((*wire.events(Turn("one")), *[noise] * 50)), Turn("two"))
        for _ in range(2):
            deltas = await ask(provider_of("openai"), "gpt-4o", upstream, http)
            assert isinstance(deltas[-1], Completion)


async def test_an_answer_that_never_ends_is_left(http: httpx.AsyncClient) -> None:
    wire = OpenAIChatWire()
    async with ProviderSimulator(wire) as upstream:
        upstream.play(Reply(tuple(wire.events(Turn("one"))), stall=True))
        deltas = await ask(provider_of("openai"), "gpt-4o", upstream, http)
        assert isinstance(deltas[-1], Completion)


async def test_an_endless_error_is_cut(http: httpx.AsyncClient) -> None:
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        body = b'{"error": {"message": "no"}}'.ljust(ERROR_BYTES - 1000)
        upstream.play(Reply((body, *[b"x" * 65536] * 100), 400, stall=True))
        with pytest.raises(ProviderError) as caught:
            await ask(provider_of("openai"), "gpt-4o", upstream, http)
    assert caught.value.fault is ProviderFault.BAD_REQUEST


def test_the_installed_exchange_is_the_one_of_the_way_out() -> None:
    assert isinstance(installed_exchange(), HttpExchange)


def test_words_that_came_together_are_joined_and_lose_nothing() -> None:
    one, two = {"token": "a"}, {"token": "b"}
    sealed = ReasoningChunk("", {"a-dialect": {"signature": "s"}})
    came: list[Delta] = [
        ReasoningChunk("h"),
        ReasoningChunk("m"),
        TextChunk("a", (one,)),
        TextChunk("b", (two,)),
        ReasoningChunk("x"),
        sealed,
        sealed,
    ]
    assert joined(came) == [
        ReasoningChunk("hm"),
        TextChunk("ab", (one, two)),
        ReasoningChunk("x"),
        sealed,
        sealed,
    ]
