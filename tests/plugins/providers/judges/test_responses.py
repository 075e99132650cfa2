"""OpenAI's own client judges the responses dialect and its simulator."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    Completion,
    Endpoint,
    Message,
    Reasoning,
    Role,
    Text,
    ToolUse,
)
from agenthost.providers import Driver
from agenthost.testing.installed import provider_of
from agenthost.testing.simulators import (
    OpenAIResponsesWire,
    ProviderSimulator,
    Reply,
)
from pydantic import TypeAdapter

from .conversation import BROKEN_OFF, CALL, JSON, KEY, SAID, SCHEMA, WHY, our_body, ours

openai = pytest.importorskip("openai", reason=WHY)

pytestmark = pytest.mark.conformance

MODEL = "gpt-5.5-pro"
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eHg="}


def said(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def params() -> dict[str, Any]:
    """The conversation as the SDK's documentation writes it."""

    def call(call_id: str, arguments: str) -> dict[str, Any]:
        named = {"name": "get_weather", "arguments": arguments}
        return {"type": "function_call", "call_id": call_id, **named}

    def result(call_id: str, words: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call_id, "output": words}

    url = "data:image/png;base64,iVBORw0="
    asked = [
        {"type": "input_text", "text": "where?"},
        {"type": "input_image", "image_url": url, "detail": "auto"},
    ]
    return {
        "model": MODEL,
        "instructions": "Be brief.",
        "input": [
            said("user", "hello"),
            said("assistant", "hi"),
            said("user", asked),
            SEALED,
            said("assistant", "I look."),
            call("call_1", '{"city":"Lisbon"}') | {"id": "fc_1"},
            call("call_2", '{"city":"Porto"}'),
            result("call_1", "20 degrees"),
            result("call_2", "no such city"),
        ],
        "tools": [
            {
                "type": "function",
                "name": "get_weather",
                "description": "Tell the weather.",
                "parameters": SCHEMA,
                "strict": False,
            }
        ],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 2000,
    }


def asked(*, stream: bool) -> Any:
    """The conversation with sealed reasoning and an id of OpenAI's in its loop."""
    request = ours(MODEL, stream=stream)
    by = {"provider": "openai", "model": MODEL}
    own = {"openai-responses": {**by, "item": SEALED}}
    named = {"openai-responses": {**by, "id": "fc_1"}}
    first = ToolUse("call_1", "get_weather", {"city": "Lisbon"}, named)
    second = request.messages[3].tool_uses[1]
    parts = (Reasoning("", own), Text("I look."), first, second)
    messages = list(request.messages)
    messages[3] = Message(Role.ASSISTANT, parts)
    return replace(request, messages=tuple(messages))


@pytest.mark.judge("openai")
@pytest.mark.parametrize("stream", [True, False])
async def test_requests_equal_the_sdks(*, stream: bool) -> None:
    async with ProviderSimulator(OpenAIResponsesWire()) as upstream:
        upstream.play(SAID)
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=upstream.base_url, max_retries=0
        ) as client:
            extra = {"stream": True} if stream else {}
            answer = await client.responses.create(**params(), **extra)
            if stream:
                _ = [event async for event in answer]
    (heard,) = upstream.heard
    assert our_body("openai", asked(stream=stream)) == heard.body


@pytest.mark.judge("perplexity")
@pytest.mark.parametrize("stream", [True, False])
async def test_requests_equal_those_of_perplexitys_sdk(*, stream: bool) -> None:
    perplexity = pytest.importorskip("perplexity", reason=WHY)
    asking = params()
    asking["model"] = "perplexity/sonar"
    del asking["include"], asking["input"][2]["content"][1]["detail"]
    asking["input"].remove(SEALED)
    del asking["input"][4]["id"]
    async with ProviderSimulator(OpenAIResponsesWire()) as upstream:
        upstream.play(SAID)
        async with perplexity.AsyncPerplexity(
            api_key=KEY, base_url=upstream.base_url.removesuffix("/v1"), max_retries=0
        ) as client:
            answer = await client.responses.create(**asking, stream=stream)
            if stream:
                _ = [event async for event in answer]
    body = dict(upstream.heard[0].body)
    if not stream:
        assert body.pop("stream") is False
    asked_ours = replace(asked(stream=stream), model="perplexity/sonar")
    assert our_body("perplexity", asked_ours) == body


def test_bodies_are_of_the_sdks_types() -> None:
    kinds = openai.types.responses.response_create_params
    adapter: TypeAdapter[Any] = TypeAdapter(kinds.ResponseCreateParamsNonStreaming)
    adapter.validate_python(our_body("openai", asked(stream=False)))


async def test_the_sdk_reads_our_simulator() -> None:
    async with ProviderSimulator(OpenAIResponsesWire()) as upstream:
        upstream.play(SAID, SAID, BROKEN_OFF)
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=upstream.base_url, max_retries=0
        ) as client:
            async with client.responses.stream(model="m", input="hi") as events:
                streamed = await events.get_final_response()
            whole = await client.responses.create(model="m", input="hi")
            short = await client.responses.create(model="m", input="hi")
    for answer in (streamed, whole):
        thought, said, call = answer.output
        assert thought.summary[0].text == SAID.reasoning
        assert thought.encrypted_content
        assert said.content[0].text == SAID.text
        assert (call.call_id, call.arguments) == (CALL.id, CALL.arguments)
        assert answer.usage.input_tokens_details.cached_tokens == 40
        assert answer.usage.output_tokens_details.reasoning_tokens == 12
    assert short.incomplete_details.reason == "max_output_tokens"


async def test_the_sdk_reads_our_simulated_errors() -> None:
    wire = OpenAIResponsesWire()
    async with ProviderSimulator(wire) as upstream:
        upstream.play(Reply((wire.refusal(429, "slow down"),), 429, JSON))
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=upstream.base_url, max_retries=0
        ) as client:
            with pytest.raises(openai.RateLimitError, match="slow down"):
                await client.responses.create(model="m", input="hi")


@pytest.mark.judge("perplexity")
def test_pages_are_those_that_perplexitys_sdk_reads() -> None:
    types = pytest.importorskip("perplexity.types", reason=WHY)
    note = {"type": "url_citation", "url": "https://a.example", "title": "A page"}
    part = {"type": "output_text", "text": "so [1]", "annotations": [note]}
    page = {"id": 1, "url": "http://b.example", "title": "B", "snippet": "..."}
    words = {"id": "m", "role": "assistant", "status": "completed"}
    body = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "sonar",
        "status": "completed",
        "output": [
            {"type": "search_results", "results": [page], "queries": ["why"]},
            {"type": "message", "content": [part], **words},
        ],
    }
    adapter = TypeAdapter(types.ResponseCreateResponse)
    for notes in ([note], []):
        part["annotations"] = notes
        found, said = adapter.validate_python(body).output
        read = said.content[0].annotations or found.results
        asked = replace(ours("perplexity/sonar", stream=False), messages=())
        spoken = provider_of("perplexity").spoken_to("perplexity/sonar")
        assert not isinstance(spoken, Driver)
        decoder = spoken.decoder(asked, Endpoint("perplexity", "http://p.example"))
        deltas = [*decoder.feed(json.dumps(body).encode()), *decoder.close()]
        (whole,) = (delta for delta in deltas if isinstance(delta, Completion))
        cited = [(each.url, each.title) for each in whole.message.citations]
        assert cited == [(each.url, each.title) for each in read]
