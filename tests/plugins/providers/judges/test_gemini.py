"""Google's own client judges the Gemini dialect and its simulator."""

from __future__ import annotations

import re
from typing import Any

import pytest
from agenthost.testing.simulators import GeminiWire, ProviderSimulator, Reply

from .conversation import BROKEN_OFF, CALL, JSON, KEY, SAID, SCHEMA, WHY, our_body, ours

genai = pytest.importorskip("google.genai", reason=WHY)
types = genai.types

MODEL = "gemini-2.5-pro"

# The client inherits from a class of aiohttp that does not want it.
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore:Inheritance class Aiohttp"),
]


def client_of(upstream: ProviderSimulator) -> Any:
    options = types.HttpOptions(base_url=upstream.base_url, api_version="v1beta")
    return genai.Client(api_key=KEY, http_options=options)


def contents() -> list[Any]:
    """The conversation as the SDK's types write it."""

    def call(call_id: str, city: str) -> Any:
        args = {"city": city}
        made = types.FunctionCall(id=call_id, name="get_weather", args=args)
        return types.Part(function_call=made)

    def result(call_id: str, response: dict[str, Any]) -> Any:
        told = types.FunctionResponse(id=call_id, name="get_weather", response=response)
        return types.Part(function_response=told)

    # These bytes are the picture of the conversation: iVBORw0= in base64.
    picture = types.Blob(mime_type="image/png", data=b"\x89PNG\r")
    return [
        types.Content(role="user", parts=[types.Part(text="hello")]),
        types.Content(role="model", parts=[types.Part(text="hi")]),
        types.Content(
            role="user",
            parts=[types.Part(text="where?"), types.Part(inline_data=picture)],
        ),
        types.Content(
            role="model",
            parts=[
                types.Part(text="I look."),
                call("call_1", "Lisbon"),
                call("call_2", "Porto"),
            ],
        ),
        types.Content(
            role="user",
            parts=[
                result("call_1", {"output": "20 degrees"}),
                result("call_2", {"error": "no such city"}),
            ],
        ),
    ]


def config() -> Any:
    declared = types.FunctionDeclaration(
        name="get_weather",
        description="Tell the weather.",
        parameters_json_schema=SCHEMA,
    )
    return types.GenerateContentConfig(
        system_instruction=types.Content(parts=[types.Part(text="Be brief.")]),
        tools=[types.Tool(function_declarations=[declared])],
        max_output_tokens=2000,
        temperature=0.5,
    )


def camel(value: Any) -> Any:
    """Write names as the reference does; the client mixes both forms, as JSON may."""
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("_([a-z])", lambda found: found[1].upper(), name): camel(item)
        for name, item in value.items()
    }


@pytest.mark.judge("gemini")
@pytest.mark.parametrize("stream", [True, False])
async def test_requests_equal_the_sdks(*, stream: bool) -> None:
    async with ProviderSimulator(GeminiWire()) as upstream:
        upstream.play(SAID)
        async with client_of(upstream).aio as client:
            asked = {"model": MODEL, "contents": contents(), "config": config()}
            if stream:
                chunks = await client.models.generate_content_stream(**asked)
                _ = [chunk async for chunk in chunks]
            else:
                await client.models.generate_content(**asked)
    (heard,) = upstream.heard
    assert our_body("gemini", ours(MODEL, stream=stream)) == camel(heard.body)
    assert (heard.model, heard.stream, heard.key) == (MODEL, stream, KEY)


async def test_the_sdk_reads_our_simulator() -> None:
    async with ProviderSimulator(GeminiWire()) as upstream:
        upstream.play(SAID, SAID, BROKEN_OFF)
        async with client_of(upstream).aio as client:
            asked = {"model": MODEL, "contents": "hi"}
            chunks = await client.models.generate_content_stream(**asked)
            streamed = [chunk async for chunk in chunks]
            whole = await client.models.generate_content(**asked)
            short = await client.models.generate_content(**asked)
    parts = [p for c in streamed for p in c.candidates[0].content.parts or ()]
    for found in (parts, whole.candidates[0].content.parts):
        thought = "".join(p.text for p in found if p.thought)
        said = "".join(p.text or "" for p in found if not p.thought)
        assert (thought, said) == (SAID.reasoning, SAID.text)
        (call,) = [p for p in found if p.function_call]
        assert call.function_call.args == {"city": "Lisbon"}
        assert call.function_call.id == CALL.id
        assert call.thought_signature
    for usage in (streamed[-1].usage_metadata, whole.usage_metadata):
        assert usage.candidates_token_count + usage.thoughts_token_count == 30
        assert usage.cached_content_token_count == 40
    assert short.candidates[0].finish_reason == "MAX_TOKENS"


async def test_the_sdk_reads_our_simulated_errors() -> None:
    wire = GeminiWire()
    async with ProviderSimulator(wire) as upstream:
        upstream.play(Reply((wire.refusal(429, "slow down"),), 429, JSON))
        async with client_of(upstream).aio as client:
            with pytest.raises(genai.errors.ClientError, match="slow down") as caught:
                await client.models.generate_content(model=MODEL, contents="hi")
    assert caught.value.status == "RESOURCE_EXHAUSTED"
