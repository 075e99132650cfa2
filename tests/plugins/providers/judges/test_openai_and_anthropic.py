"""The vendors' own clients judge our requests and our simulators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from agenthost.testing.simulators import (
    AnthropicMessagesWire,
    OpenAIChatWire,
    ProviderSimulator,
    Reply,
)
from pydantic import TypeAdapter

from .conversation import BROKEN_OFF, CALL, JSON, SAID, SCHEMA, WHY, our_body, ours

openai = pytest.importorskip("openai", reason=WHY)
anthropic = pytest.importorskip("anthropic", reason=WHY)

pytestmark = pytest.mark.conformance

HAIKU = "claude-haiku-4-5-20251001"


def openai_params(model: str) -> dict[str, Any]:
    """The same conversation, as the OpenAI SDK's documentation writes it."""

    def call(call_id: str, arguments: str) -> dict[str, Any]:
        function = {"name": "get_weather", "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}

    calls = [call("call_1", '{"city":"Lisbon"}'), call("call_2", '{"city":"Porto"}')]
    picture = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,iVBORw0="},
    }
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "hi"},
            {"role": "user", "content": [{"type": "text", "text": "where?"}, picture]},
            {"role": "assistant", "content": "I look.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1", "content": "20 degrees"},
            {"role": "tool", "tool_call_id": "call_2", "content": "no such city"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_weather",
                    "description": "Tell the weather.",
                    "parameters": SCHEMA,
                },
            }
        ],
        "max_completion_tokens": 2000,
        "temperature": 0.5,
    }


def anthropic_params(model: str) -> dict[str, Any]:
    """The same conversation, as the Anthropic SDK's documentation writes it."""
    cached = {"cache_control": {"type": "ephemeral"}}

    def text(words: str) -> dict[str, Any]:
        return {"type": "text", "text": words}

    def use(call_id: str, city: str) -> dict[str, Any]:
        return {
            "type": "tool_use",
            "id": call_id,
            "name": "get_weather",
            "input": {"city": city},
        }

    def result(call_id: str, words: str, **more: Any) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": call_id, "content": words, **more}

    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    looking = [
        thought,
        text("I look."),
        use("call_1", "Lisbon"),
        use("call_2", "Porto"),
    ]
    found = [
        result("call_1", "20 degrees"),
        result("call_2", "no such city", is_error=True) | cached,
    ]
    return {
        "model": model,
        "max_tokens": 2000,
        "system": [text("Be brief.") | cached],
        "messages": [
            {"role": "user", "content": [text("hello")]},
            {"role": "assistant", "content": [text("hi")]},
            {
                "role": "user",
                "content": [
                    text("where?"),
                    {"type": "image", "source": source} | cached,
                ],
            },
            {"role": "assistant", "content": looking},
            {"role": "user", "content": found},
        ],
        "tools": [
            {
                "name": "get_weather",
                "description": "Tell the weather.",
                "input_schema": SCHEMA,
            }
            | cached
        ],
        "temperature": 0.5,
    }


@pytest.mark.judge("openai")
@pytest.mark.parametrize("stream", [True, False])
async def test_openai_requests_equal_the_sdks(*, stream: bool) -> None:
    params = openai_params("gpt-4o")
    if stream:
        params |= {"stream": True, "stream_options": {"include_usage": True}}
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        upstream.play(SAID)
        async with openai.AsyncOpenAI(
            api_key="sk-x", base_url=upstream.base_url, max_retries=0
        ) as client:
            answer = await client.chat.completions.create(**params)
            if stream:
                _ = [chunk async for chunk in answer]
    (heard,) = upstream.heard
    assert our_body("openai", ours("gpt-4o", stream=stream)) == heard.body


@pytest.mark.judge("anthropic")
@pytest.mark.parametrize("stream", [True, False])
async def test_anthropic_requests_equal_the_sdks(*, stream: bool) -> None:
    params = anthropic_params(HAIKU)
    # The SDK takes a temperature no longer by name, since new models refuse one.
    extra = {"temperature": params.pop("temperature")}
    async with ProviderSimulator(AnthropicMessagesWire()) as upstream:
        upstream.play(SAID)
        async with anthropic.AsyncAnthropic(
            api_key="sk-x", base_url=upstream.base_url, max_retries=0
        ) as client:
            if stream:
                async with client.messages.stream(**params, extra_body=extra) as events:
                    await events.get_final_message()
            else:
                await client.messages.create(**params, extra_body=extra)
    (heard,) = upstream.heard
    asked = ours(HAIKU, stream=stream)
    assert our_body("anthropic", asked) == heard.body


def drain(value: Any) -> None:
    """Walk a validated body: pydantic checks iterables only as they are read."""
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, str):
        for item in value:
            drain(item)


def test_bodies_are_of_the_sdks_types() -> None:
    chat = openai.types.chat.completion_create_params
    adapter: TypeAdapter[Any] = TypeAdapter(chat.CompletionCreateParamsNonStreaming)
    asked = ours("gpt-5.2", stream=False)
    drain(adapter.validate_python(our_body("openai", asked)))
    messages = anthropic.types.message_create_params
    adapter = TypeAdapter(messages.MessageCreateParamsStreaming)
    for model, budget in (("claude-opus-5", 9000), (HAIKU, 1500)):
        asked = replace(ours(model, stream=True), thinking_budget=budget)
        drain(adapter.validate_python(our_body("anthropic", asked)))


async def test_the_openai_sdk_reads_our_simulator() -> None:
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        upstream.play(SAID, SAID, BROKEN_OFF)
        async with openai.AsyncOpenAI(
            api_key="sk-x", base_url=upstream.base_url, max_retries=0
        ) as client:
            asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            options = {"include_usage": True}
            async with client.chat.completions.stream(
                **asked, stream_options=options
            ) as events:
                streamed = await events.get_final_completion()
            whole = await client.chat.completions.create(**asked)
            short = await client.chat.completions.create(**asked)
    for answer in (streamed, whole):
        choice = answer.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content == "Let me look."
        assert choice.message.tool_calls[0].id == "call_7"
        assert choice.message.tool_calls[0].function.arguments == CALL.arguments
        assert answer.usage.prompt_tokens_details.cached_tokens == 40
    assert short.choices[0].finish_reason == "length"


async def test_the_anthropic_sdk_reads_our_simulator() -> None:
    async with ProviderSimulator(AnthropicMessagesWire()) as upstream:
        upstream.play(SAID, SAID)
        async with anthropic.AsyncAnthropic(
            api_key="sk-x", base_url=upstream.base_url, max_retries=0
        ) as client:
            said = [{"role": "user", "content": "hi"}]
            asked = {"model": "m", "max_tokens": 9, "messages": said}
            async with client.messages.stream(**asked) as events:
                streamed = await events.get_final_message()
            whole = await client.messages.create(**asked)
    for answer in (streamed, whole):
        thinking, text, use = answer.content
        assert thinking.thinking == "Which city?"
        assert thinking.signature
        assert text.text == "Let me look."
        assert (use.id, use.input) == ("call_7", {"city": "Lisbon"})
        assert answer.stop_reason == "tool_use"
        assert answer.usage.cache_read_input_tokens == 40
        assert answer.usage.input_tokens == 60


async def test_the_sdks_read_our_simulated_errors() -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": "a"}]
    chat, messages = OpenAIChatWire(), AnthropicMessagesWire()
    async with (
        ProviderSimulator(chat) as one,
        openai.AsyncOpenAI(
            api_key="sk-x", base_url=one.base_url, max_retries=0
        ) as client,
    ):
        one.play(Reply((chat.refusal(429, "slow down"),), 429, JSON))
        with pytest.raises(openai.RateLimitError, match="slow down"):
            await client.chat.completions.create(model="m", messages=said)
    async with (
        ProviderSimulator(messages) as two,
        anthropic.AsyncAnthropic(
            api_key="sk-x", base_url=two.base_url, max_retries=0
        ) as client,
    ):
        two.play(Reply((messages.refusal(429, "slow down"),), 429, JSON))
        with pytest.raises(anthropic.RateLimitError, match="slow down") as caught:
            await client.messages.create(model="m", max_tokens=9, messages=said)
    assert caught.value.body["error"]["type"] == "rate_limit_error"
