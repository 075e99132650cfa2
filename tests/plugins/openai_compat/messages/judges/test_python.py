"""Anthropic's official Python client, unchanged, against a running daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from agenthost import Image, ProviderFault, ToolOutput, Usage
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_turns.engine import TurnEngine
from pydantic import BaseModel

anthropic = pytest.importorskip("anthropic", reason="needs agenthost[judges]")

pytestmark = pytest.mark.conformance

KEY = "a-key-of-this-judge-0123456"
HELLO: Any = [{"role": "user", "content": "hello"}]
ASKED: Any = {"model": "service:ada", "max_tokens": 2_000}
WEATHER: Any = {
    "name": "weather",
    "description": "Tell the weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
PNG = "iVBORw0KGgo="
SEARCH: Any = {"type": "web_search_20250305", "name": "web_search"}
CACHED: Any = {"type": "ephemeral"}
THINKS: Any = {"type": "enabled", "budget_tokens": 1_024}


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
    async with anthropic.AsyncAnthropic(
        base_url=daemon.url, api_key=KEY, max_retries=0
    ) as made:
        yield made


def strictly(answer: Any) -> Any:
    """Look at what the client read: it demands nothing of it by itself."""
    return type(answer).model_validate(answer.model_dump(), strict=True)


async def test_a_message(client: Any, daemon: RunningDaemon) -> None:
    daemon.model.says("hi", usage=Usage(20, 5, 8, 4, 2))
    answer = await client.messages.create(
        **ASKED,
        messages=HELLO,
        system=[{"type": "text", "text": "Be brief.", "cache_control": CACHED}],
        stop_sequences=["END"],
        metadata={"user_id": "somebody"},
        extra_body={"unheard_of": True, "temperature": 0.1, "top_k": 5},
    )  # fmt: skip
    strictly(answer)
    assert (answer.type, answer.role, answer.model) == (
        "message",
        "assistant",
        "service:ada",
    )
    assert [block.text for block in answer.content] == ["hi"]
    assert (answer.stop_reason, answer.stop_sequence) == ("end_turn", None)
    took = answer.usage
    assert (took.input_tokens, took.output_tokens) == (8, 5)
    assert took.cache_read_input_tokens == 8
    assert took.cache_creation_input_tokens == 4
    assert took.output_tokens_details.thinking_tokens == 2
    again = [*HELLO, answer.to_param(), *HELLO]
    await client.messages.create(**ASKED, messages=again)


async def test_the_client_that_blocks(daemon: RunningDaemon) -> None:
    def ask() -> Any:
        with anthropic.Anthropic(
            base_url=daemon.url, api_key=KEY, max_retries=0
        ) as client:
            with client.messages.stream(**ASKED, messages=HELLO) as stream:
                said = "".join(stream.text_stream)
            return client.messages.create(**ASKED, messages=HELLO), said

    answer, said = await asyncio.to_thread(ask)
    assert answer.content[0].text == said == "You said: hello"


async def test_a_token_in_place_of_a_key(daemon: RunningDaemon) -> None:
    async with anthropic.AsyncAnthropic(
        base_url=daemon.url, auth_token=KEY, max_retries=0
    ) as client:
        answer = await client.messages.create(**ASKED, messages=HELLO)
        assert answer.content[0].text == "You said: hello"


async def test_a_plain_stream(client: Any, daemon: RunningDaemon) -> None:
    daemon.model.says("one ", "two ", "three")
    stream = await client.messages.create(**ASKED, messages=HELLO, stream=True)
    events = [strictly(event) async for event in stream]
    kinds = [event.type for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    deltas = [e.delta.text for e in events if e.type == "content_block_delta"]
    assert "".join(deltas) == "one two three"
    assert events[-2].usage.output_tokens == 5


async def test_the_helper_of_streams(client: Any, daemon: RunningDaemon) -> None:
    daemon.model.thinks("hm, ", "well", then="yes")
    async with client.messages.stream(
        **ASKED, messages=HELLO, thinking=THINKS
    ) as stream:
        kinds = {event.type async for event in stream}
        final = await stream.get_final_message()
    assert {"thinking", "signature", "text"} <= kinds
    thought, said = strictly(final).content
    assert (thought.thinking, said.text) == ("hm, well", "yes")
    assert thought.signature
    assert (final.usage.input_tokens, final.stop_reason) == (10, "end_turn")
    whole = await client.messages.create(
        **ASKED, messages=[*HELLO, final.to_param(), *HELLO]
    )
    assert whole.content[0].text == "You said: hello"


async def test_calls_in_the_helper_of_streams(
    client: Any, daemon: RunningDaemon
) -> None:
    daemon.model.calls_all(("weather", {"city": "Rome"}), ("weather", {}))
    async with client.messages.stream(
        **ASKED, messages=HELLO, tools=[WEATHER]
    ) as stream:
        snapshots = [e.snapshot async for e in stream if e.type == "input_json"]
        final = await stream.get_final_message()
    assert {"city": "Rome"} in snapshots
    assert [block.input for block in final.content] == [{"city": "Rome"}, {}]
    assert final.stop_reason == "tool_use"


@pytest.mark.parametrize("both", [True, False])
async def test_tools(client: Any, daemon: RunningDaemon, *, both: bool) -> None:
    own = [("calculate", {"expression": "6*7"})] if both else []
    daemon.model.calls_all(*own, ("weather", {"city": "Rome"}))
    choice = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
    asked = {**ASKED, "tools": [WEATHER], "tool_choice": choice}
    answer = await client.messages.create(**asked, messages=HELLO)
    (call,) = strictly(answer).content
    assert (call.type, call.name, call.input) == (
        "tool_use",
        "weather",
        {"city": "Rome"},
    )
    daemon.model.says("done")
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    given = [{"type": "text", "text": "sunny"}, {"type": "image", "source": source}]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": given}
    messages = [*HELLO, answer.to_param(), {"role": "user", "content": [result]}]
    answer = await client.messages.create(**asked, messages=messages)
    assert answer.content[0].text == "done"
    parts = daemon.model.requests[-1].messages[-1].parts
    texts = [part.text.split("\n")[0] for part in parts if isinstance(part, ToolOutput)]
    assert texts == (["42", "sunny"] if both else ["sunny"])


async def test_the_runner_of_tools(client: Any, daemon: RunningDaemon) -> None:
    if not hasattr(client.beta.messages, "tool_runner"):
        pytest.skip("this client has none")

    async def weather(city: str) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        return f"sunny in {city}"

    daemon.model.calls_all(
        ("calculate", {"expression": "6*7"}), ("weather", {"city": "Rome"})
    )
    runner = client.beta.messages.tool_runner(
        **ASKED, messages=HELLO, tools=[anthropic.beta_async_tool(weather)]
    )
    final = await runner.until_done()
    assert final.stop_reason == "end_turn"
    parts = daemon.model.requests[-1].messages[-1].parts
    texts = [part.text for part in parts if isinstance(part, ToolOutput)]
    assert texts == ["42", "sunny in Rome"]


async def test_images_and_documents(client: Any, daemon: RunningDaemon) -> None:
    picture = {"type": "base64", "media_type": "image/png", "data": PNG}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    text = {"type": "text", "media_type": "text/plain", "data": "the plan"}
    blocks: Any = [
        {"type": "text", "text": "look"},
        {"type": "image", "source": picture},
        {"type": "document", "source": pdf, "title": "one"},
        {"type": "document", "source": text, "context": "of today"},
    ]
    messages: Any = [{"role": "user", "content": blocks}]
    await client.messages.create(**ASKED, messages=messages)
    message = daemon.model.requests[0].messages[0]
    assert [part for part in message.parts if isinstance(part, Image)]
    assert "the plan" in message.text
    assert "of today" in message.text
    assert "application/pdf" in message.text


async def test_structured_output(client: Any, daemon: RunningDaemon) -> None:
    daemon.model.says('{"name": "Rome", "people": 3}')
    answer = await client.messages.parse(**ASKED, messages=HELLO, output_format=City)
    assert answer.parsed_output == City(name="Rome", people=3)


async def test_a_stop_sequence(client: Any, daemon: RunningDaemon) -> None:
    daemon.model.stops_before("END", "so far")
    answer = await client.messages.create(
        **ASKED, messages=HELLO, stop_sequences=["END"]
    )
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "END")


async def test_counting(client: Any) -> None:
    counted = await client.messages.count_tokens(
        model="ada", messages=HELLO, system="Be brief.", tools=[WEATHER]
    )
    assert strictly(counted).input_tokens > 10


async def test_leaving_a_stream(client: Any, daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    stream = await client.messages.create(**ASKED, messages=HELLO, stream=True)
    async for event in stream:
        if event.type == "content_block_delta":
            break
    engine = daemon.daemon.turns
    assert isinstance(engine, TurnEngine)
    running = [work.task for work in engine._live.values() if work.task]
    await stream.close()
    await asyncio.wait(running, timeout=30)
    assert engine.running == 0
    answer = await client.messages.create(**ASKED, messages=HELLO)
    assert answer.content[0].text == "You said: hello"


async def test_errors(client: Any, daemon: RunningDaemon) -> None:
    create = client.messages.create
    with pytest.raises(anthropic.BadRequestError, match=r"tools\.0\.type") as refused:
        await create(**ASKED, messages=HELLO, tools=[SEARCH])
    error = refused.value
    assert error.type == "invalid_request_error"
    assert error.request_id == error.body["request_id"]
    assert error.error_code == "invalid_input"
    with pytest.raises(anthropic.NotFoundError) as missing:
        await create(**{**ASKED, "model": "service:nobody"}, messages=HELLO)
    assert missing.value.type == "not_found_error"
    other = client.with_options(api_key="wrong")
    with pytest.raises(anthropic.AuthenticationError) as wrong:
        await other.messages.create(**ASKED, messages=HELLO)
    assert wrong.value.type == "authentication_error"
    daemon.model.fails(ProviderFault.BILLING)
    with pytest.raises(anthropic.InternalServerError) as failed:
        await create(**ASKED, messages=HELLO, stream=True)
    assert (failed.value.type, failed.value.error_code) == ("api_error", "billing")
    daemon.model.fails(ProviderFault.BILLING, "half")
    with pytest.raises(anthropic.APIStatusError) as broken:
        async for _ in await create(**ASKED, messages=HELLO, stream=True):
            pass
    assert (broken.value.type, broken.value.error_code) == ("api_error", "billing")


async def test_a_provider_that_has_too_much_to_do(daemons: Daemons) -> None:
    daemon = await daemons.start(config="[attempts]\nmost_calls = 1\n")
    await daemon.agent("ada")
    async with anthropic.AsyncAnthropic(
        base_url=daemon.url, api_key="any", max_retries=0
    ) as client:
        daemon.model.fails(ProviderFault.OVERLOADED)
        with pytest.raises(anthropic.APIStatusError) as busy:
            await client.messages.create(**ASKED, messages=HELLO)
        assert (busy.value.status_code, busy.value.type) == (529, "overloaded_error")


async def test_raw_headers(client: Any) -> None:
    raw = await client.messages.with_raw_response.create(**ASKED, messages=HELLO)
    assert raw.headers["request-id"] == raw.headers["x-request-id"]
    assert (await raw.parse())._request_id == raw.headers["request-id"]
    streaming = client.messages.with_streaming_response.create(**ASKED, messages=HELLO)
    async with streaming as answer:
        assert answer.headers["request-id"]
        assert (await answer.parse()).content[0].text == "You said: hello"


async def test_models(client: Any) -> None:
    listed = [model async for model in client.models.list(limit=1)]
    assert [(m.id, m.display_name) for m in listed] == [("service:ada", "ada")]
    one = await client.models.retrieve("service:ada")
    assert (one.type, one.lifecycle) == ("model", "active")
    with pytest.raises(anthropic.NotFoundError) as missing:
        await client.models.retrieve("service:nobody")
    assert missing.value.type == "not_found_error"


async def test_the_beta_of_messages(client: Any) -> None:
    answer = await client.beta.messages.create(
        **ASKED, messages=HELLO, betas=["files-api-2025-04-14"]
    )
    assert answer.content[0].text == "You said: hello"
