"""OpenAI's official Python client, unchanged, against a running daemon."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from agenthost import Image, ProviderFault, ToolOutput
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_turns.engine import TurnEngine
from pydantic import BaseModel

WHY = "needs agenthost[judges]"
openai = pytest.importorskip("openai", reason=WHY)
anthropic = pytest.importorskip("anthropic", reason=WHY)

pytestmark = pytest.mark.conformance

KEY = "a-key-of-this-judge-0123456"
HELLO: Any = [{"role": "user", "content": "hello"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
PIXEL = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\npixel").decode()


class City(BaseModel):
    """A form for answers."""

    name: str
    people: int


@pytest_asyncio.fixture
async def daemon(daemons: Daemons) -> RunningDaemon:
    running = await daemons.start(config=f'api_key = "{KEY}"\n')
    running.http.headers["authorization"] = f"Bearer {KEY}"
    await running.agent("ada")
    return running


@pytest_asyncio.fixture
async def client(daemon: RunningDaemon) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(
        base_url=f"{daemon.url}/v1", api_key=KEY, max_retries=0
    ) as made:
        yield made


async def test_models(client: Any) -> None:
    listed = [model async for model in client.models.list()]
    assert [model.id for model in listed] == ["service:ada"]
    one = await client.models.retrieve("service:ada")
    assert (one.id, one.owned_by, one.created > 1_700_000_000) == (
        "service:ada",
        "agenthost",
        True,
    )
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("service:nobody")


async def test_models_for_anthropics_client(daemon: RunningDaemon) -> None:
    async with anthropic.AsyncAnthropic(base_url=daemon.url, api_key=KEY) as client:
        listed = [model async for model in client.models.list()]
        assert [(m.id, m.display_name) for m in listed] == [("service:ada", "ada")]
        one = await client.models.retrieve("service:ada")
        assert one.type == "model"


async def test_chat(client: Any) -> None:
    answer = await client.chat.completions.create(
        model="service:ada",
        messages=[{"role": "developer", "content": "Be brief."}, *HELLO],
        temperature=0.1,
        max_completion_tokens=50,
        user="somebody",
        extra_body={"unheard_of": True},
    )
    assert answer.choices[0].message.content == "You said: hello"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == 15
    # The client demands nothing of what it reads: a strict look at the same.
    type(answer).model_validate(answer.model_dump(), strict=True)


async def test_chat_of_the_client_that_blocks(daemon: RunningDaemon) -> None:
    def ask() -> Any:
        with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=KEY) as client:
            return client.chat.completions.create(model="ada", messages=HELLO)

    answer = await asyncio.to_thread(ask)
    assert answer.choices[0].message.content == "You said: hello"


@pytest.mark.parametrize("asked", [True, False])
async def test_stream(client: Any, daemon: RunningDaemon, *, asked: bool) -> None:
    daemon.model.says("one ", "two ", "three")
    more = {"stream_options": {"include_usage": True}} if asked else {}
    stream = await client.chat.completions.create(
        model="ada", messages=HELLO, stream=True, **more
    )
    chunks = [chunk async for chunk in stream]
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert said == "one two three"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].usage.total_tokens == 15
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"


async def test_the_helper_of_streams(client: Any, daemon: RunningDaemon) -> None:
    daemon.model.calls("weather", city="Rome")
    async with client.chat.completions.stream(
        model="ada", messages=HELLO, tools=[WEATHER]
    ) as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Rome"}


async def test_leaving_a_stream(client: Any, daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    stream = await client.chat.completions.create(
        model="ada", messages=HELLO, stream=True
    )
    async for _ in stream:
        break
    engine = daemon.daemon.turns
    assert isinstance(engine, TurnEngine)
    running = [work.task for work in engine._live.values() if work.task]
    await stream.close()
    await asyncio.wait(running, timeout=30)
    assert engine.running == 0
    answer = await client.chat.completions.create(model="ada", messages=HELLO)
    assert answer.choices[0].message.content == "You said: hello"


@pytest.mark.parametrize("both", [True, False])
async def test_tools(client: Any, daemon: RunningDaemon, *, both: bool) -> None:
    own = [("calculate", {"expression": "6*7"})] if both else []
    daemon.model.calls_all(*own, ("weather", {"city": "Rome"}))
    asked = {"model": "ada", "tools": [WEATHER]}
    answer = await client.chat.completions.create(messages=HELLO, **asked)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    (call,) = message.tool_calls
    assert call.function.name == "weather"
    daemon.model.says("done")
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    answer = await client.chat.completions.create(
        messages=[*HELLO, message, result], **asked
    )
    assert answer.choices[0].message.content == "done"
    parts = daemon.model.requests[-1].messages[-1].parts
    texts = [part.text for part in parts if isinstance(part, ToolOutput)]
    assert texts == (["42", "sunny"] if both else ["sunny"])


async def test_images(client: Any, daemon: RunningDaemon) -> None:
    look = {"type": "text", "text": "look"}
    picture = {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}
    message: Any = {"role": "user", "content": [look, picture]}
    await client.chat.completions.create(model="ada", messages=[message])
    parts = daemon.model.requests[0].messages[0].parts
    assert [part for part in parts if isinstance(part, Image)]


async def test_structured_output(client: Any, daemon: RunningDaemon) -> None:
    daemon.model.says('{"name": "Rome", "people": 3}')
    answer = await client.chat.completions.parse(
        model="ada", messages=HELLO, response_format=City
    )
    assert answer.choices[0].message.parsed == City(name="Rome", people=3)


async def test_errors(client: Any, daemon: RunningDaemon, daemons: Daemons) -> None:
    create = client.chat.completions.create
    with pytest.raises(openai.BadRequestError) as refused:
        await create(model="ada", messages=HELLO, n=2)
    assert "n: must be 1" in str(refused.value.body)
    with pytest.raises(openai.NotFoundError):
        await create(model="service:nobody", messages=HELLO)
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="wrong").models.list()
    daemon.model.fails(ProviderFault.BILLING)
    with pytest.raises(openai.InternalServerError):
        await create(model="ada", messages=HELLO, stream=True)
    daemon.model.fails(ProviderFault.BILLING, "half")
    with pytest.raises(openai.APIError):
        async for _ in await create(model="ada", messages=HELLO, stream=True):
            pass
    config = "[openai]\nerror_objects = true\n"
    other = await daemons.start(config=config)
    async with openai.AsyncOpenAI(base_url=f"{other.url}/v1", api_key="x") as nested:
        with pytest.raises(openai.NotFoundError, match="gpt-4o") as caught:
            await nested.models.retrieve("gpt-4o")
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


async def test_raw_headers(client: Any) -> None:
    raw = await client.chat.completions.with_raw_response.create(
        model="ada", messages=HELLO
    )
    assert raw.headers["x-request-id"]
    assert raw.headers["content-type"] == "application/json"
    answer = raw.parse()
    assert answer._request_id == raw.headers["x-request-id"]


async def test_embeddings(client: Any) -> None:
    coded = await client.embeddings.create(model="default", input=["one", "two"])
    plain = await client.embeddings.create(
        model="default", input="one", encoding_format="float"
    )
    assert len(coded.data) == 2
    assert coded.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)
    with pytest.raises(openai.BadRequestError):
        await client.embeddings.create(model="default", input=[[1, 2]])
