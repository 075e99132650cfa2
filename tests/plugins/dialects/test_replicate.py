"""Replicate's predictions are streamed, waited for and cancelled."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from agenthost import (
    ChatRequest,
    Completion,
    Delta,
    Endpoint,
    InvalidInput,
    Message,
    ModelCall,
    ProviderError,
    ProviderFault,
    Reasoning,
    Secret,
    Text,
    Usage,
)
from agenthost.testing import installed_exchange
from agenthost.testing.simulators import (
    ReplicateSimulator,
    ReplicateWire,
    Reply,
    Turn,
)
from agenthost_dialects.replicate import Replicate

QUICK = Replicate.from_quirks({"poll_seconds": 0.001})
MODEL = "meta/llama-3-70b-instruct"


@pytest.fixture
async def upstream() -> AsyncIterator[ReplicateSimulator]:
    async with ReplicateSimulator(ReplicateWire()) as simulator:
        yield simulator


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


def call_of(
    upstream: ReplicateSimulator,
    http: httpx.AsyncClient,
    *messages: Message,
    stream: bool = True,
) -> ModelCall:
    asked = ChatRequest(MODEL, "Be brief.", messages, stream=stream)
    where = Endpoint("replicate", upstream.base_url, Secret("r8_x"))
    return ModelCall(asked, where, http, installed_exchange())


async def ask(dialect: Replicate, call: ModelCall) -> list[Delta]:
    return [delta async for delta in dialect.stream(call)]


async def test_a_prediction_is_asked_about_until_it_ends(
    upstream: ReplicateSimulator, http: httpx.AsyncClient, conversation: ChatRequest
) -> None:
    for stream in (True, False):
        upstream.waits = 3
        usage = Usage(100, 7)
        upstream.play(Turn("sunny", "hm", usage=usage))
        call = call_of(upstream, http, conversation.messages[0], stream=stream)
        last = (await ask(QUICK, call))[-1]
        assert isinstance(last, Completion)
        assert last.message.parts == (Reasoning("hm"), Text("sunny"))
        assert last.usage == usage
    assert upstream.cancelled == 0


async def test_a_call_that_nobody_reads_on_is_cancelled(
    upstream: ReplicateSimulator, http: httpx.AsyncClient, conversation: ChatRequest
) -> None:
    upstream.play(Turn("a long answer"))
    stream = QUICK.stream(call_of(upstream, http, conversation.messages[0]))
    await anext(stream)
    await stream.aclose()
    assert upstream.cancelled == 1


async def test_a_call_that_breaks_off_is_cancelled(
    upstream: ReplicateSimulator, http: httpx.AsyncClient, conversation: ChatRequest
) -> None:
    upstream.play(Reply((b"event: output\ndata: x\n\n",)))
    with pytest.raises(ProviderError):
        await ask(QUICK, call_of(upstream, http, conversation.messages[0]))
    assert upstream.cancelled == 1


async def test_a_prediction_that_does_not_end_is_given_up(
    upstream: ReplicateSimulator, http: httpx.AsyncClient, conversation: ChatRequest
) -> None:
    upstream.waits = 1_000_000
    upstream.play(Turn("never"))
    hasty = Replicate.from_quirks({"poll_seconds": 0.001, "longest": 0.05})
    call = call_of(upstream, http, conversation.messages[0], stream=False)
    with pytest.raises(ProviderError) as caught:
        await ask(hasty, call)
    assert caught.value.fault is ProviderFault.TIMEOUT
    assert upstream.cancelled == 1


class Misleading(ReplicateSimulator):
    """A service whose predictions name addresses that are not its own."""

    place: str | None = None

    def begun(self) -> dict[str, Any]:
        urls = {"get": self.place, "stream": self.place, "cancel": self.place}
        return {**super().begun(), "urls": urls}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "place",
    ["http://evil.example/p1", "file:///etc/passwd", "", "ftp://127.0.0.1/x", None],
)
async def test_the_key_goes_to_no_other_host(
    http: httpx.AsyncClient,
    conversation: ChatRequest,
    place: str | None,
    *,
    stream: bool,
) -> None:
    async with Misleading(ReplicateWire(), waits=1) as upstream:
        upstream.place = place
        upstream.play(Turn("x"))
        call = call_of(upstream, http, conversation.messages[0], stream=stream)
        with pytest.raises(ProviderError, match="no usable") as caught:
            await ask(QUICK, call)
        assert caught.value.fault is ProviderFault.MALFORMED


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        ({"status": "failed", "error": "CUDA out of memory"}, "CUDA"),
        ({"status": "canceled"}, "canceled"),
    ],
)
async def test_a_prediction_that_fails_is_an_error(
    upstream: ReplicateSimulator,
    http: httpx.AsyncClient,
    conversation: ChatRequest,
    prediction: dict[str, str],
    words: str,
) -> None:
    upstream.play(Reply((json.dumps({"id": "p1", **prediction}).encode(),)))
    call = call_of(upstream, http, conversation.messages[0], stream=False)
    with pytest.raises(ProviderError, match=words):
        await ask(QUICK, call)


@pytest.mark.parametrize("reason", ["error", "canceled", "something_new"])
async def test_a_stream_may_end_in_failure(
    upstream: ReplicateSimulator,
    http: httpx.AsyncClient,
    conversation: ChatRequest,
    reason: str,
) -> None:
    end = f'event: done\ndata: {{"reason": "{reason}"}}\n\n'.encode()
    upstream.play(Reply((b"event: output\ndata: x\n\n", end)))
    with pytest.raises(ProviderError):
        await ask(QUICK, call_of(upstream, http, conversation.messages[0]))


async def test_a_conversation_becomes_a_transcript(
    upstream: ReplicateSimulator, http: httpx.AsyncClient, conversation: ChatRequest
) -> None:
    upstream.play(Turn("ok"))
    await ask(QUICK, call_of(upstream, http, *conversation.messages))
    (prompt,) = upstream.heard[0].said
    assert prompt.startswith("User: hello\n\nAssistant: hi\n\nUser: where?")
    assert "[an image that this model cannot see]" in prompt
    assert '[called look with {"city":"Évora"}]' in prompt
    assert "Tool: [look returned] white walls" in prompt
    assert prompt.endswith("\n\nAssistant:")


async def test_lines_of_an_output_stay_lines(
    upstream: ReplicateSimulator, http: httpx.AsyncClient, conversation: ChatRequest
) -> None:
    upstream.play(Turn("one\n two\n\n  three"))
    last = (await ask(QUICK, call_of(upstream, http, conversation.messages[0])))[-1]
    assert isinstance(last, Completion)
    assert last.message.text == "one\n two\n\n  three"


def test_a_wrong_quirk_names_itself() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'longest'"):
        Replicate.from_quirks({"longst": 1})
