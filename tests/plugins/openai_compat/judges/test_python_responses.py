"""OpenAI's official Python client, unchanged, at ``/v1/responses``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from agenthost import Image, ProviderFault, ToolOutput
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from pydantic import BaseModel, TypeAdapter

from ..test_passthrough import DIRECT, ON
from .test_python import PIXEL, WHY, City

openai = pytest.importorskip("openai", reason=WHY)

pytestmark = pytest.mark.conformance

KEY = "a-key-of-this-judge-0123456"
WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}


class Weather(BaseModel):
    """A tool, as the client writes one of a model."""

    city: str


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


def check(model: type[BaseModel], told: Any) -> None:
    """The client demands nothing of what it reads: a strict look at the same."""
    model.model_validate_json(told.model_dump_json(warnings=False))


async def test_create_and_retrieve(client: Any) -> None:
    from openai.types.responses import Response

    answer = await client.responses.create(
        model="service:ada",
        input="hello",
        instructions="Be brief.",
        temperature=0.1,
        max_output_tokens=50,
        metadata={"a": "b"},
        safety_identifier="somebody",
        include=["reasoning.encrypted_content"],
        reasoning={"effort": "low"},
        service_tier="auto",
        extra_body={"unheard_of": True},
    )
    check(Response, answer)
    assert (answer.status, answer.output_text) == ("completed", "You said: hello")
    assert answer.usage.total_tokens == 15
    assert answer._request_id
    again = await client.responses.retrieve(answer.id)
    assert again.model_dump() == answer.model_dump()
    listed = [item async for item in client.responses.input_items.list(answer.id)]
    assert [item.content[0].text for item in listed] == ["hello"]
    await client.responses.delete(answer.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(answer.id)


async def test_pages_of_input_items(client: Any) -> None:
    from openai.types.responses import ResponseItem

    called = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    said = [{"role": "user", "content": str(n)} for n in range(5)]
    told = [{"role": "assistant", "content": "hm"}, called, output]
    answer = await client.responses.create(model="ada", input=[*said, *told])
    pages = client.responses.input_items.list(answer.id, limit=3, order="asc")
    items = [item async for item in pages]
    assert [item.type for item in items] == [
        *["message"] * 6,
        "function_call",
        "function_call_output",
    ]
    for item in items:
        TypeAdapter(ResponseItem).validate_json(item.model_dump_json(warnings=False))


def test_the_client_that_blocks(daemon_of_its_own: str) -> None:
    with openai.OpenAI(base_url=f"{daemon_of_its_own}/v1", api_key=KEY) as client:
        answer = client.responses.create(model="ada", input="hello")
        assert answer.output_text == "You said: hello"
        with client.responses.stream(model="ada", input="hello") as stream:
            said = "".join(
                e.delta for e in stream if e.type == "response.output_text.delta"
            )
            assert stream.get_final_response().output_text == said


@pytest.fixture
def daemon_of_its_own() -> Any:
    """A daemon whose loop runs beside the test."""
    import tempfile
    import threading
    from pathlib import Path

    ready, stop = threading.Event(), asyncio.Event()
    found: list[Any] = []

    def run() -> None:
        async def serve() -> None:
            with tempfile.TemporaryDirectory() as folder:
                daemons = Daemons(Path(folder))
                running = await daemons.start()
                await running.agent("ada")
                found.extend((running.url, asyncio.get_running_loop()))
                ready.set()
                await stop.wait()
                await daemons.close()

        asyncio.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(30)
    yield found[0]
    found[1].call_soon_threadsafe(stop.set)
    thread.join(30)


async def test_every_event_of_a_stream(client: Any, daemon: RunningDaemon) -> None:
    from openai.types.responses import ResponseStreamEvent

    daemon.model.says("one ", "two ", "three")
    stream = await client.responses.create(model="ada", input="hi", stream=True)
    events = [event async for event in stream]
    daemon.model.calls("weather", city="Rome")
    stream = await client.responses.create(
        model="ada", input="hi", stream=True, tools=[WEATHER]
    )
    events += [event async for event in stream]
    daemon.model.is_cut("half")
    stream = await client.responses.create(model="ada", input="hi", stream=True)
    events += [event async for event in stream]
    assert events[-1].type == "response.incomplete"
    daemon.model.fails(ProviderFault.BAD_REQUEST, "one")
    stream = await client.responses.create(model="ada", input="hi", stream=True)
    events += [event async for event in stream]
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.message
    known = TypeAdapter(ResponseStreamEvent)
    for event in events:
        read = known.validate_json(event.model_dump_json(warnings=False))
        assert type(read) is type(event), event.type


async def test_the_helper_of_streams(client: Any, daemon: RunningDaemon) -> None:
    tool = openai.pydantic_function_tool(Weather, name="weather")["function"]
    daemon.model.says("Let me ", "see.")
    async with client.responses.stream(model="ada", input="hi") as stream:
        async for _ in stream:
            pass
        first = await stream.get_final_response()
    assert first.output_text == "Let me see."
    daemon.model.calls_all(
        ("calculate", {"expression": "6*7"}), ("weather", {"city": "Rome"})
    )
    tools = [{"type": "function", **tool}]
    async with client.responses.stream(model="ada", input="hi", tools=tools) as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_response()
    (call,) = final.output
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Rome"})
    daemon.model.says("sunny")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sun"}
    after = await client.responses.create(
        model="ada", input=[output], tools=[WEATHER], previous_response_id=final.id
    )
    assert after.output_text == "sunny"
    outputs = daemon.model.requests[-1].messages[-1].parts
    assert [p.text for p in outputs if isinstance(p, ToolOutput)] == ["42", "sun"]


async def test_a_loop_that_keeps_its_own_history(
    client: Any, daemon: RunningDaemon
) -> None:
    daemon.model.calls_all(
        ("calculate", {"expression": "6*7"}), ("weather", {"city": "Rome"})
    )
    items: list[Any] = [{"role": "user", "content": "hi"}]
    asked = {"model": "ada", "tools": [WEATHER], "store": False}
    answer = await client.responses.create(input=items, **asked)
    items += answer.output
    items += [
        {"type": "function_call_output", "call_id": each.call_id, "output": "sun"}
        for each in answer.output
        if each.type == "function_call"
    ]
    daemon.model.says("sunny")
    answer = await client.responses.create(input=items, **asked)
    assert answer.output_text == "sunny"
    items += answer.output
    items.append({"role": "user", "content": "and?"})
    await client.responses.create(input=items, **asked)
    assert [m.text for m in daemon.model.requests[-1].messages][-2:] == [
        "sunny",
        "and?",
    ]


@pytest.mark.parametrize("inside", [False, True])
async def test_parse(client: Any, daemon: RunningDaemon, *, inside: bool) -> None:
    if inside:
        daemon.model.calls("calculate", expression="6*7")
    daemon.model.says('{"name": "Rome", "people": 3}')
    answer = await client.responses.parse(model="ada", input="x", text_format=City)
    assert answer.output_parsed == City(name="Rome", people=3)
    daemon.model.says('{"name": "Rome", ', '"people": 3}')
    async with client.responses.stream(
        model="ada", input="x", text_format=City
    ) as stream:
        final = await stream.get_final_response()
    assert final.output_parsed == City(name="Rome", people=3)


async def test_raw_responses_and_headers(client: Any) -> None:
    raw = await client.responses.with_raw_response.create(model="ada", input="hello")
    assert raw.status_code == 200
    assert raw.headers["x-request-id"]
    assert raw.parse().output_text == "You said: hello"
    async with client.responses.with_streaming_response.create(
        model="ada", input="hello", stream=True
    ) as answer:
        lines = [line async for line in answer.iter_lines()]
    assert lines[0] == "event: response.created"


async def test_pictures(client: Any, daemon: RunningDaemon) -> None:
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
    ]
    await client.responses.create(
        model="ada", input=[{"role": "user", "content": content}]
    )
    assert any(isinstance(p, Image) for p in daemon.model.requests[0].messages[0].parts)


async def test_background(client: Any, daemon: RunningDaemon) -> None:
    answer = await client.responses.create(model="ada", input="hi", background=True)
    async with asyncio.timeout(20):
        while answer.status in {"queued", "in_progress"}:
            answer = await client.responses.retrieve(answer.id)
    assert (answer.status, answer.output_text) == ("completed", "You said: hi")
    pause = Pause()
    daemon.model.says(pause, "late")
    slow = await client.responses.create(model="ada", input="hi", background=True)
    await pause.reached.wait()
    cancelled = await client.responses.cancel(slow.id)
    again = await client.responses.cancel(slow.id)
    assert cancelled.status == again.status == "cancelled"


async def test_errors_are_those_of_the_client(client: Any) -> None:
    with pytest.raises(openai.NotFoundError) as gone:
        await client.responses.create(
            model="ada", input="x", previous_response_id="resp_x"
        )
    assert "resp_x" in gone.value.response.json()["error"]
    with pytest.raises(openai.BadRequestError) as wrong:
        await client.responses.create(model="ada", input="x", truncation="auto")
    assert "truncation" in wrong.value.response.json()["error"]
    with pytest.raises(openai.BadRequestError):
        await client.responses.create(model="ada", input="x", conversation="conv_1")


async def test_leaving_a_stream(client: Any, daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    stream = await client.responses.create(model="ada", input="x", stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    async with asyncio.timeout(20):
        while daemon.daemon.turns.running:
            await client.models.list()


async def test_a_model_itself(daemons: Daemons) -> None:
    from openai.types.responses import Response

    running = await daemons.start(config=ON)
    async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="x") as client:
        whole = await client.responses.create(model=DIRECT, input="hello")
        check(Response, whole)
        assert whole.output_text == "You said: hello"
        async with client.responses.stream(model=DIRECT, input="hello") as stream:
            said = [each.delta async for each in stream if "text.delta" in each.type]
            last = await stream.get_final_response()
        assert "".join(said) == last.output_text == "You said: hello"
        assert last.usage.total_tokens == 15
        running.model.calls("weather", city="Rome")
        asked = await client.responses.create(
            model=DIRECT, input="Is it nice?", tools=[WEATHER]
        )
        (call,) = asked.output
        result = {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": "sunny",
        }
        question = {"role": "user", "content": "Is it nice?"}
        await client.responses.create(
            model=DIRECT, input=[question, call, result], tools=[WEATHER]
        )
    assert running.model.requests[-1].messages[-1].parts == (
        ToolOutput("call_1", "weather", "sunny"),
    )
