"""What else OpenAI's official Python client asks, of agents and models themselves."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from agenthost import Image, ToolOutput
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from pydantic import BaseModel, TypeAdapter

from ..test_passthrough import DIRECT, ON, limited
from .test_python import HELLO, KEY, PIXEL, WHY, City

openai = pytest.importorskip("openai", reason=WHY)

pytestmark = pytest.mark.conformance

BOTH = pytest.mark.parametrize("model", ["ada", DIRECT])
PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7 x").decode()
LATER: Any = {"model": "ada", "input": "hi", "background": True, "stream": True}


class Weather(BaseModel):
    """A tool, as the client writes one of a model."""

    city: str


@pytest_asyncio.fixture
async def daemon(daemons: Daemons) -> RunningDaemon:
    config = f'api_key = "{KEY}"\n{ON}'
    running = await daemons.start(config=config, plugins=[limited()])
    running.http.headers["authorization"] = f"Bearer {KEY}"
    await running.agent("ada")
    return running


@pytest_asyncio.fixture
async def client(daemon: RunningDaemon) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(
        base_url=f"{daemon.url}/v1", api_key=KEY, max_retries=0
    ) as made:
        yield made


def check(told: BaseModel) -> None:
    """The client demands nothing of what it reads: a strict look at the same."""
    type(told).model_validate_json(told.model_dump_json(warnings=False))


@BOTH
async def test_logprobs_of_a_completion(
    client: Any, daemon: RunningDaemon, model: str
) -> None:
    daemon.model.scores(one=-0.5, two=-1.5)
    answer = await client.chat.completions.create(
        model=model, messages=HELLO, logprobs=True, top_logprobs=1
    )
    check(answer)
    first, second = answer.choices[0].logprobs.content
    assert (first.token, first.logprob, first.top_logprobs[0].token) == (
        "one",
        -0.5,
        "one",
    )
    assert bytes(second.bytes) == b"two"


@BOTH
async def test_logprobs_in_the_helper_of_streams(
    client: Any, daemon: RunningDaemon, model: str
) -> None:
    daemon.model.scores(one=-0.5, two=-1.5)
    async with client.chat.completions.stream(
        model=model, messages=HELLO, logprobs=True, top_logprobs=1
    ) as stream:
        kinds = {event.type async for event in stream}
        final = await stream.get_final_completion()
    assert {"logprobs.content.delta", "logprobs.content.done"} <= kinds
    told = final.choices[0].logprobs.content
    assert [token.token for token in told] == ["one", "two"]


@BOTH
async def test_logprobs_of_a_response(
    client: Any, daemon: RunningDaemon, model: str
) -> None:
    from openai.types.responses import ResponseStreamEvent

    asked = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
    daemon.model.scores(one=-0.5, two=-1.5)
    answer = await client.responses.create(model=model, input="hi", **asked)
    check(answer)
    (item,) = answer.output
    assert [each.token for each in item.content[0].logprobs] == ["one", "two"]
    assert answer.top_logprobs == 1
    daemon.model.scores(one=-0.5, two=-1.5)
    stream = await client.responses.create(
        model=model, input="hi", stream=True, **asked
    )
    known = TypeAdapter(ResponseStreamEvent)
    async for event in stream:
        read = known.validate_json(event.model_dump_json(warnings=False))
        assert type(read) is type(event), event.type


@BOTH
async def test_a_model_that_tells_no_logprobs(
    client: Any, daemons: Daemons, model: str
) -> None:
    running = await daemons.start(config=ON, environ={"ANTHROPIC_API_KEY": "sk-x"})
    claude = '[model]\nprovider = "anthropic"\nmodel = "claude-haiku-4-5"\n'
    await running.agent("ada", extra=claude)
    name = "anthropic/claude-haiku-4-5" if model == DIRECT else model
    there = client.with_options(base_url=f"{running.url}/v1")
    with pytest.raises(openai.BadRequestError) as refused:
        await there.chat.completions.create(model=name, messages=HELLO, logprobs=True)
    assert refused.value.response.json()["param"] == "logprobs"


@BOTH
async def test_documents_and_pictures(
    client: Any, daemon: RunningDaemon, model: str
) -> None:
    file = {"filename": "a.pdf", "file_data": PDF}
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
        {"type": "file", "file": file},
    ]
    message: Any = {"role": "user", "content": content}
    await client.chat.completions.create(model=model, messages=[message])
    said = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
        {"type": "input_file", **file},
    ]
    await client.responses.create(
        model=model, input=[{"role": "user", "content": said}]
    )
    for request in daemon.model.requests:
        _, picture, document = request.messages[0].parts
        assert isinstance(picture, Image)
        # This model reads no documents: it is told of it.
        assert "a.pdf" in str(document)


@BOTH
async def test_parse_of_forms_and_tools(
    client: Any, daemon: RunningDaemon, model: str
) -> None:
    parse = client.chat.completions.parse
    daemon.model.says('{"name": "Rome", "people": 3}')
    answer = await parse(model=model, messages=HELLO, response_format=City)
    assert answer.choices[0].message.parsed == City(name="Rome", people=3)
    daemon.model.calls("Weather", city="Rome")
    tool = openai.pydantic_function_tool(Weather)
    answer = await parse(model=model, messages=HELLO, tools=[tool])
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.parsed_arguments == Weather(city="Rome")
    daemon.model.says('{"name": "Rome", "people": 3}')
    response = await client.responses.parse(model=model, input="x", text_format=City)
    assert response.output_parsed == City(name="Rome", people=3)


@BOTH
async def test_names_and_later_instructions(
    client: Any, daemon: RunningDaemon, model: str
) -> None:
    messages: Any = [
        {"role": "user", "content": "hi", "name": "bob"},
        {"role": "assistant", "content": "hello", "name": "ada"},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "and?", "name": "eve"},
    ]
    answer = await client.chat.completions.create(model=model, messages=messages)
    assert answer.choices[0].message.content == "You said: [eve says:]\nand?"


@pytest.mark.parametrize("stream", [False, True])
@BOTH
async def test_keys_that_repeat(
    client: Any, daemon: RunningDaemon, model: str, *, stream: bool
) -> None:
    asked = {
        "model": model,
        "messages": HELLO,
        "stream": stream,
        "extra_headers": {"Idempotency-Key": "k"},
    }
    said = []
    for _ in range(2):
        answer = await client.chat.completions.create(**asked)
        chunks = [chunk async for chunk in answer] if stream else [answer]
        said.append(chunks[0].id)
    assert said[0] == said[1]
    assert len(daemon.model.requests) == 1
    with pytest.raises(openai.UnprocessableEntityError):
        await client.chat.completions.create(**asked, temperature=0.5)


async def test_a_background_stream_is_taken_up_again(
    client: Any, daemon: RunningDaemon
) -> None:
    from openai.types.responses import ResponseStreamEvent

    pause = Pause()
    daemon.model.says("one two ", pause, "three")
    seen: list[Any] = []
    stream = await client.responses.create(**LATER)
    async for event in stream:
        seen.append(event)
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    known, at = seen[0].response.id, seen[-1].sequence_number
    stream = await client.responses.retrieve(known, stream=True, starting_after=at)
    async for event in stream:
        seen.append(event)
        pause.go_on()
    assert [event.sequence_number for event in seen] == [*range(len(seen))]
    assert seen[-1].response.output_text == "one two three"
    kinds = TypeAdapter(ResponseStreamEvent)
    for event in seen:
        read = kinds.validate_json(event.model_dump_json(warnings=False))
        assert type(read) is type(event), event.type


async def test_the_helper_takes_up_a_background_stream(
    client: Any, daemon: RunningDaemon
) -> None:
    daemon.model.says("one two three")
    made = await client.responses.create(
        model="ada", input="hi", background=True, extra_headers={}
    )
    async with client.responses.stream(response_id=made.id) as stream:
        numbers = [event.sequence_number async for event in stream]
        final = await stream.get_final_response()
    assert final.output_text == "one two three"
    async with client.responses.stream(
        response_id=made.id, starting_after=numbers[4]
    ) as stream:
        rest = [event.sequence_number async for event in stream]
    assert rest == numbers[5:]


async def test_every_class_of_errors(client: Any, daemon: RunningDaemon) -> None:
    create = client.chat.completions.create
    chat = await daemon.http.post("/api/keys", json={"name": "c", "scopes": ["chat"]})
    weak = client.with_options(api_key=chat.json()["key"])
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="wrong").models.list()
    with pytest.raises(openai.PermissionDeniedError):
        await weak.chat.completions.create(model=DIRECT, messages=HELLO)
    with pytest.raises(openai.NotFoundError):
        await create(model="service:nobody", messages=HELLO)
    with pytest.raises(openai.BadRequestError):
        await create(model="ada", messages=[])
    with pytest.raises(openai.RateLimitError) as limits:
        await create(model="limited/small", messages=HELLO)
    assert int(limits.value.response.headers["retry-after"]) > 2_000
    form: Any = {"type": "json_object"}
    daemon.model.says("no")
    daemon.model.says("no")
    with pytest.raises(openai.UnprocessableEntityError):
        await create(model="ada", messages=HELLO, response_format=form)


async def test_a_raw_stream_of_chunks(client: Any, daemon: RunningDaemon) -> None:
    daemon.model.says("one ", "two")
    async with client.chat.completions.with_streaming_response.create(
        model="ada", messages=HELLO, stream=True
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-request-id"]
        lines = [line async for line in answer.iter_lines() if line]
    assert lines[0].startswith("data: {")
    assert lines[-1] == "data: [DONE]"


async def test_many_at_once(client: Any, daemon: RunningDaemon) -> None:
    async def ask(number: int) -> str:
        said: Any = [{"role": "user", "content": f"number {number}"}]
        model = "ada" if number % 2 else DIRECT
        answer = await client.chat.completions.create(model=model, messages=said)
        return str(answer.choices[0].message.content)

    told = await asyncio.gather(*map(ask, range(10)))
    assert told == [f"You said: number {number}" for number in range(10)]


async def test_embeddings_in_both_formats(client: Any) -> None:
    create, model = client.embeddings.create, "offline/words"
    floats = await create(model=model, input=["one", "two"], encoding_format="float")
    coded = await create(model=model, input=["one", "two"], encoding_format="base64")
    assert isinstance(coded.data[0].embedding, str)
    short = await create(model=model, input="one", dimensions=8)
    assert len(short.data[0].embedding) == 8
    assert [row.index for row in floats.data] == [0, 1]
    check(floats)
    assert floats.usage.total_tokens == floats.usage.prompt_tokens
    for wrong in ([[1, 2]], [1, 2], "", [""], []):
        with pytest.raises(openai.BadRequestError):
            await create(model=model, input=wrong)
    with pytest.raises(openai.BadRequestError):
        await create(model=model, input="one", dimensions=100_000)


async def test_results_of_tools_with_pictures(
    client: Any, daemon: RunningDaemon
) -> None:
    called = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
    ]
    result = {"type": "function_call_output", "call_id": "c", "output": output}
    items = [{"role": "user", "content": "hi"}, called, result]
    await client.responses.create(model=DIRECT, input=items)
    (told,) = daemon.model.requests[0].messages[-1].parts
    assert isinstance(told, ToolOutput)
    # This model sees no pictures there: it is told of it.
    assert told.text == "see\n[image/png]"
