"""What else is asked of an answer is written as the vendors' own clients write it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from agenthost import ChatRequest, ModelSettings, ToolDefinition, user_message
from agenthost.testing.simulators import (
    AnthropicMessagesWire,
    BedrockWire,
    CohereWire,
    GeminiWire,
    OpenAIChatWire,
    OpenAIResponsesWire,
    ProviderSimulator,
    Turn,
)

from .conversation import KEY, SCHEMA, WHY, chat_tools, our_body
from .test_gemini import camel

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore:Inheritance class Aiohttp"),
]

FORM = {**SCHEMA, "additionalProperties": False}
TOOL = ToolDefinition("get_weather", "Tell the weather.", SCHEMA)
STOP = ("END", "\n\n")
Body = Mapping[str, Any]


def written(slug: str, model: str, **asked: Any) -> dict[str, Any]:
    """Give what settings add to one of our requests, or change in it."""
    tools = () if asked.pop("bare", False) else (TOOL,)
    plain = ChatRequest(model, "", (user_message("hi"),), tools, 100, stream=False)
    return added(our_body(slug, replace(plain, **asked)), our_body(slug, plain))


def added(body: Body, plain: Body) -> dict[str, Any]:
    """What stands in one body and not in the other, one table deep."""
    found = {name: value for name, value in body.items() if plain.get(name) != value}
    for name, value in found.items():
        if isinstance(value, dict) and isinstance(plain.get(name), dict):
            found[name] = added(value, plain[name])
    return found


MANNERS: dict[str, Any] = {"parallel_tool_calls": False, "top_p": 0.5, "user": "u-1"}
ALL: dict[str, Any] = {**MANNERS, "stop": STOP, "seed": 7}
NAMED = {"type": "function", "function": {"name": "get_weather"}}


@pytest.mark.parametrize(
    ("choice", "theirs"),
    [("none", "none"), ("required", "required"), ("get_weather", NAMED)],
)
async def test_openai_chat(choice: str, theirs: Any) -> None:
    openai = pytest.importorskip("openai", reason=WHY)
    form = {"name": "answer", "schema": FORM, "strict": True}
    told = {
        "tool_choice": theirs,
        "parallel_tool_calls": False,
        "stop": list(STOP),
        "top_p": 0.5,
        "seed": 7,
        "safety_identifier": "u-1",
        "response_format": {"type": "json_schema", "json_schema": form},
    }
    plain = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        upstream.play(Turn("ok"), Turn("ok"))
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=upstream.base_url
        ) as client:
            await client.chat.completions.create(**plain, tools=chat_tools())
            await client.chat.completions.create(**plain, tools=chat_tools(), **told)
    first, second = upstream.heard
    ours = written("openai", "gpt-4o", tool_choice=choice, response_format=FORM, **ALL)
    assert ours == added(second.body, first.body)


async def test_openai_responses() -> None:
    openai = pytest.importorskip("openai", reason=WHY)
    form = {"type": "json_schema", "name": "answer", "schema": FORM, "strict": True}
    told = {
        "tool_choice": {"type": "function", "name": "get_weather"},
        "parallel_tool_calls": False,
        "safety_identifier": "u-1",
        "text": {"format": form},
    }
    plain = {"model": "gpt-5.5", "input": "hi"}
    async with ProviderSimulator(OpenAIResponsesWire()) as upstream:
        upstream.play(Turn("ok"), Turn("ok"))
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=upstream.base_url
        ) as client:
            await client.responses.create(**plain)
            await client.responses.create(**plain, **told)
    first, second = upstream.heard
    asked = {**MANNERS, "tool_choice": "get_weather", "response_format": FORM}
    assert written("openai", "gpt-5.5", **asked) == added(second.body, first.body)


@pytest.mark.parametrize(
    ("choice", "theirs"),
    [
        ("required", {"type": "any", "disable_parallel_tool_use": True}),
        (
            "get_weather",
            {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True},
        ),
        ("", {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", {"type": "none"}),
    ],
)
async def test_anthropic(choice: str, theirs: Any) -> None:
    anthropic = pytest.importorskip("anthropic", reason=WHY)
    told = {
        "tool_choice": theirs,
        "stop_sequences": list(STOP),
        "metadata": {"user_id": "u-1"},
        "output_config": {"format": {"type": "json_schema", "schema": FORM}},
    }
    model = "claude-sonnet-4-6"
    said = [{"role": "user", "content": "hi"}]
    plain: dict[str, Any] = {"model": model, "messages": said, "max_tokens": 100}
    # The SDK takes no sampling by name any longer, since new models refuse it.
    extra = {"thinking": {"type": "disabled"}} if choice in FORCED else {}
    async with ProviderSimulator(AnthropicMessagesWire()) as upstream:
        upstream.play(Turn("ok"), Turn("ok"))
        async with anthropic.AsyncAnthropic(
            api_key=KEY, base_url=upstream.base_url
        ) as client:
            await client.messages.create(**plain)
            await client.messages.create(**plain, **told, **extra)
    first, second = upstream.heard
    asked = {"tool_choice": choice, "response_format": FORM, **ALL}
    ours = written("anthropic", model, **asked)
    assert ours.pop("top_p") == 0.5
    assert ours == added(second.body, first.body)


FORCED = ("required", "get_weather")


async def test_gemini() -> None:
    genai = pytest.importorskip("google.genai", reason=WHY)
    types = genai.types
    calling = types.FunctionCallingConfig(
        mode="ANY", allowed_function_names=["get_weather"]
    )
    forced = types.GenerateContentConfig(
        stop_sequences=list(STOP),
        top_p=0.5,
        seed=7,
        tool_config=types.ToolConfig(function_calling_config=calling),
    )
    formed = types.GenerateContentConfig(
        response_mime_type="application/json", response_json_schema=FORM
    )
    async with ProviderSimulator(GeminiWire()) as upstream:
        upstream.play(Turn("ok"), Turn("ok"), Turn("{}"))
        options = types.HttpOptions(base_url=upstream.base_url, api_version="v1beta")
        async with genai.Client(api_key=KEY, http_options=options).aio as client:
            asked = {"model": "gemini-2.5-pro", "contents": "hi"}
            await client.models.generate_content(**asked)
            await client.models.generate_content(**asked, config=forced)
            await client.models.generate_content(**asked, config=formed)
    plain, *told = [camel(heard.body) for heard in upstream.heard]
    bare = {"generationConfig": {}, **plain}
    model = "gemini-2.5-pro"
    ours = written("gemini", model, tool_choice="get_weather", **ALL)
    assert ours == added(told[0], bare)
    ours = written("gemini", model, response_format=FORM, bare=True)
    assert ours == added(told[1], bare)


async def test_cohere() -> None:
    cohere = pytest.importorskip("cohere", reason=WHY)
    manners = {"stop_sequences": list(STOP), "p": 0.5, "seed": 7}
    form = {"type": "json_object", "json_schema": FORM}
    plain = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with ProviderSimulator(CohereWire()) as upstream:
        upstream.play(Turn("ok"), Turn("ok"), Turn("{}"))
        async with cohere.AsyncClientV2(
            api_key=KEY, base_url=upstream.base_url
        ) as client:
            await client.chat(**plain)
            await client.chat(**plain, **manners, tool_choice="REQUIRED")
            await client.chat(**plain, response_format=form)
    first, *told = [heard.body for heard in upstream.heard]
    model = "command-a-03-2025"
    ours = written("cohere", model, tool_choice="required", **ALL)
    assert ours == added(told[0], first)
    ours = written("cohere", model, response_format=FORM, bare=True)
    assert ours == added(told[1], first)


async def test_bedrock() -> None:
    boto3 = pytest.importorskip("boto3", reason=WHY)
    model = "anthropic.claude-haiku-4-5-20251001-v1:0"
    schema = {"name": "answer", "schema": json.dumps(FORM, separators=(",", ":"))}
    structure = {"jsonSchema": schema}
    spec = {"name": "get_weather", "inputSchema": {"json": SCHEMA}}
    plain: dict[str, Any] = {
        "modelId": model,
        "messages": [{"role": "user", "content": [{"text": "hi"}]}],
        "inferenceConfig": {"maxTokens": 100},
        "toolConfig": {"tools": [{"toolSpec": spec}]},
    }
    told = {
        "inferenceConfig": {"maxTokens": 100, "topP": 0.5, "stopSequences": list(STOP)},
        "toolConfig": {
            "tools": plain["toolConfig"]["tools"],
            "toolChoice": {"tool": {"name": "get_weather"}},
        },
        "outputConfig": {"textFormat": {"type": "json_schema", "structure": structure}},
    }
    async with ProviderSimulator(BedrockWire()) as upstream:
        upstream.play(Turn("ok"), Turn("ok"))
        client = boto3.client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=upstream.base_url,
            aws_access_key_id="AKIAIOSFODNN7EXAMPLE",
            aws_secret_access_key="x" * 40,
        )
        await asyncio.to_thread(lambda: client.converse(**plain))
        await asyncio.to_thread(lambda: client.converse(**{**plain, **told}))
        await asyncio.to_thread(client.close)
    first, second = upstream.heard
    asked = {"tool_choice": "get_weather", "response_format": FORM, **ALL}
    ours = written("bedrock", model, **asked)
    ours.pop("additionalModelRequestFields", None)
    assert ours == added(second.body, first.body)


async def test_mistral() -> None:
    mistral = pytest.importorskip("mistralai.client", reason=WHY)
    form = {"name": "answer", "schema": FORM, "strict": True}
    told = {
        "tool_choice": NAMED,
        "parallel_tool_calls": False,
        "stop": list(STOP),
        "top_p": 0.5,
        "random_seed": 7,
        "response_format": {"type": "json_schema", "json_schema": form},
    }
    plain = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        upstream.play(Turn("ok"), Turn("ok"))
        root = upstream.base_url.removesuffix("/v1")
        async with mistral.Mistral(api_key=KEY, server_url=root) as client:
            await client.chat.complete_async(**plain)
            await client.chat.complete_async(**plain, **told)
    first, second = [heard.body for heard in upstream.heard]
    asked = {"tool_choice": "get_weather", "response_format": FORM, **ALL}
    ours = written("mistral", "mistral-large-latest", **asked)
    assert ours == added(second, first)


async def test_groq() -> None:
    groq = pytest.importorskip("groq", reason=WHY)
    told = {
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "stop": list(STOP),
        "top_p": 0.5,
        "seed": 7,
        "user": "u-1",
    }
    plain = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    wire = OpenAIChatWire(base="", path="/openai/v1/chat/completions")
    async with ProviderSimulator(wire) as upstream:
        upstream.play(Turn("ok"), Turn("ok"))
        async with groq.AsyncGroq(api_key=KEY, base_url=upstream.base_url) as client:
            await client.chat.completions.create(**plain)
            await client.chat.completions.create(**plain, **told)
    first, second = [heard.body for heard in upstream.heard]
    ours = written("groq", "openai/gpt-oss-120b", tool_choice="required", **ALL)
    assert ours == added(second, first)


@pytest.mark.parametrize("beside", [0, 2])
async def test_openai_chat_on_how_likely_tokens_are(beside: int) -> None:
    openai = pytest.importorskip("openai", reason=WHY)
    told = {"logprobs": True, **({"top_logprobs": beside} if beside else {})}
    plain = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        upstream.play(Turn("ok"), Turn("ok"))
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=upstream.base_url
        ) as client:
            await client.chat.completions.create(**plain)
            await client.chat.completions.create(**plain, **told)
    first, second = [heard.body for heard in upstream.heard]
    assert written("openai", "gpt-4o", logprobs=beside) == added(second, first)


@pytest.mark.parametrize("beside", [0, 2])
async def test_gemini_on_how_likely_tokens_are(beside: int) -> None:
    genai = pytest.importorskip("google.genai", reason=WHY)
    types = genai.types
    config = types.GenerateContentConfig(
        response_logprobs=True, logprobs=beside or None
    )
    async with ProviderSimulator(GeminiWire()) as upstream:
        upstream.play(Turn("ok"), Turn("ok"))
        options = types.HttpOptions(base_url=upstream.base_url, api_version="v1beta")
        async with genai.Client(api_key=KEY, http_options=options).aio as client:
            asked = {"model": "gemini-2.5-pro", "contents": "hi"}
            await client.models.generate_content(**asked)
            await client.models.generate_content(**asked, config=config)
    plain, told = [camel(heard.body) for heard in upstream.heard]
    ours = written("gemini", "gemini-2.5-pro", logprobs=beside)
    assert ours == added(told, {"generationConfig": {}, **plain})


def test_every_setting_is_judged() -> None:
    judged = {*ALL, "tool_choice", "response_format", "logprobs"}
    assert judged == set(ModelSettings.__dataclass_fields__)
