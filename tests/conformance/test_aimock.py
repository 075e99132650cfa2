"""A tool loop against aimock, a scripted model upstream that is not ours.

``make conformance`` installs it: ``npm i @copilotkit/aimock@1.43.0`` in .cache/npm.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost import (
    ChatRequest,
    Completion,
    Delta,
    Endpoint,
    Finish,
    Message,
    ModelCall,
    Role,
    Secret,
    Text,
    TextChunk,
    ToolDefinition,
    ToolOutput,
)
from agenthost.testing import installed_exchange
from agenthost.testing.installed import provider_of

ROOT = Path(__file__).parents[2]
CLI = ROOT / ".cache/npm/node_modules/@copilotkit/aimock/dist/cli.js"
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        NODE is None or not CLI.exists(),
        reason="needs node and `npm i @copilotkit/aimock@1.43.0` in .cache/npm",
    ),
]

FIXTURES = {
    "fixtures": [
        {
            "match": {"userMessage": "weather", "hasToolResult": False},
            "response": {
                "toolCalls": [
                    {"name": "get_weather", "arguments": '{"city": "Lisbon"}'},
                    {"name": "get_weather", "arguments": '{"city": "Porto"}'},
                ]
            },
        },
        {
            "match": {"hasToolResult": True},
            "response": {"content": "It is warm in both cities."},
        },
    ]
}
WEATHER = ToolDefinition(
    "get_weather",
    "Tell the weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}},
)


@asynccontextmanager
async def serving(folder: Path, fixtures: dict[str, Any]) -> AsyncIterator[str]:
    """Run an aimock that knows these; give its address."""
    path = folder / "fixtures.json"
    path.write_text(json.dumps(fixtures))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(CLI), "-p", port, "--strict", "-f", str(path),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while b"listening" not in (line := await process.stdout.readline()).lower():
                assert line, "aimock ended before it listened"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.communicate()


@pytest.fixture
async def aimock(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a running aimock."""
    async with serving(tmp_path, FIXTURES) as url:
        yield url


@dataclass(frozen=True)
class Service:
    """One way of asking aimock: a provider, the path it expects, a model of it."""

    slug: str
    base: str = "/v1"
    model: str = ""
    stream: bool = True


SERVICES = [
    Service("openai"),
    Service("openai", model="gpt-4o"),
    Service("openai", model="gpt-5.5-pro"),
    Service("anthropic", ""),
    Service("ollama", ""),
    Service("gemini", ""),
    Service("cohere", ""),
    Service("perplexity"),
    # Its Converse streams are not read by AWS's own client either.
    Service("bedrock", "", stream=False),
    Service("deepseek", ""),
    Service("groq", "/openai/v1"),
    Service("openrouter", "/api/v1"),
    Service("mistral"),
    Service("together"),
    Service("fireworks", "/inference/v1"),
    Service("cerebras"),
    Service("sambanova"),
    Service("huggingface"),
    Service("xai"),
    Service("vllm"),
    Service("lmstudio"),
]


async def deltas(service: Service, url: str, *messages: Message) -> list[Delta]:
    """Ask the provider, whose service is aimock."""
    spec = provider_of(service.slug)
    model = service.model or spec.facts.models[0].upstream_id
    request = ChatRequest(
        model, "Be brief.", messages, (WEATHER,), 1000, stream=service.stream
    )
    where = Endpoint(service.slug, url + service.base, Secret("sk-x"))
    async with httpx.AsyncClient() as http:
        exchange = installed_exchange()
        call = ModelCall(request, where, http, exchange)
        return [delta async for delta in exchange.open(spec, call)]


@pytest.mark.parametrize(
    "service", SERVICES, ids=lambda service: f"{service.slug}{service.model}"
)
@pytest.mark.judge(
    "openai",
    "anthropic",
    "ollama",
    "gemini",
    "cohere",
    "perplexity",
    "bedrock",
    "deepseek",
    "groq",
    "openrouter",
    "mistral",
    "together",
    "fireworks",
    "cerebras",
    "sambanova",
    "huggingface",
    "xai",
    "vllm",
    "lmstudio",
)
async def test_a_tool_loop(aimock: str, service: Service) -> None:
    asked = Message(Role.USER, (Text("what is the weather?"),))
    called = (await deltas(service, aimock, asked))[-1]
    assert isinstance(called, Completion)
    assert called.finish is Finish.TOOL_USE
    uses = called.message.tool_uses
    assert [use.arguments for use in uses] == [{"city": "Lisbon"}, {"city": "Porto"}]
    outputs = tuple(ToolOutput(use.id, use.name, "20 degrees") for use in uses)
    results = Message(Role.TOOL, outputs)
    said = await deltas(service, aimock, asked, called.message, results)
    last = said[-1]
    assert isinstance(last, Completion)
    assert last.finish is Finish.STOP
    assert last.message.text == "It is warm in both cities."
    assert not service.stream or sum(isinstance(d, TextChunk) for d in said) > 1
