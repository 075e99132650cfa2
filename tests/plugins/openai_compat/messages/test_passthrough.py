"""A model that is named itself, asked in Anthropic's words."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import Image, ProviderFault, Text, ToolOutput, ToolUse
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import Answer

from ..test_passthrough import DIRECT, ON, PIXEL, usage_rows
from .asking import CITY, PATH, WEATHER, answered, ask, asked, events_of, results

PICTURE = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/png",
        "data": PIXEL.partition(",")[2],
    },
}


async def direct(daemon: RunningDaemon, **body: Any) -> dict[str, Any]:
    return await answered(daemon, **{"model": DIRECT, **body})


async def test_a_named_model_answers_without_an_agent(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    answer = await direct(daemon, system="Be brief.")
    (request,) = daemon.model.requests
    assert (request.system, request.tools, request.stream) == ("Be brief.", (), False)
    (row,) = await usage_rows(daemon)
    assert answer.pop("id") == f"msg_{row[2]}"
    assert (row[0], row[5]) == ("", "loopback:loopback")
    assert answer == {
        "type": "message",
        "role": "assistant",
        "model": DIRECT,
        "content": [{"type": "text", "text": "You said: hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        },
    }


async def test_what_is_asked_goes_on_as_it_is(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    content = [{"type": "text", "text": "see"}, PICTURE]
    await direct(
        daemon,
        messages=[{"role": "user", "content": content}],
        max_tokens=9,
        temperature=0.5,
        top_p=0.25,
        top_k=5,
        stop_sequences=["x"],
        metadata={"user_id": "u"},
        thinking={"type": "enabled", "budget_tokens": 2_000},
        tools=[WEATHER],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
    )
    (request,) = daemon.model.requests
    parts = request.messages[0].parts
    assert parts == (Text("see"), Image("image/png", PICTURE["source"]["data"]))  # type: ignore[index]  # reason: a block of JSON
    assert (request.temperature, request.top_p, request.max_tokens) == (0.5, 0.25, 9)
    assert (request.stop, request.user, request.thinking_budget) == (("x",), "u", 2_000)
    assert (request.parallel_tool_calls, request.tool_choice) == (False, "auto")
    assert [tool.name for tool in request.tools] == ["weather"]
    assert request.native == {"anthropic-messages": {"top_k": 5}}


@pytest.mark.parametrize("stream", [False, True])
async def test_thoughts_words_and_calls_are_told_under_the_models_own_ids(
    daemons: Daemons, *, stream: bool
) -> None:
    daemon = await daemons.start(config=ON)
    use = ToolUse("call_1", "weather", CITY)
    said = Answer(("Let me ", "see."), calls=(use,), thoughts=("hm",))
    daemon.model._answers.append(said)
    told: dict[str, Any] = {
        "thinking": {"type": "enabled", "budget_tokens": 1_024},
        "tools": [WEATHER],
    }
    if stream:
        events = await events_of(daemon, model=DIRECT, **told)
        blocks = [
            e["content_block"] for name, e in events if name == "content_block_start"
        ]
        deltas = [e["delta"] for name, e in events if name == "content_block_delta"]
        assert [each["type"] for each in blocks] == ["thinking", "text", "tool_use"]
        assert deltas[0] == {"type": "thinking_delta", "thinking": "hm"}
        words = "".join(each.get("text", "") for each in deltas)
        assert events[-2][1]["delta"]["stop_reason"] == "tool_use"
        assert blocks[2]["id"] == "call_1"
        assert daemon.model.requests[0].stream
    else:
        answer = await direct(daemon, **told)
        thought, text, call = answer["content"]
        assert (thought["thinking"], call["id"]) == ("hm", "call_1")
        assert (call["input"], answer["stop_reason"]) == (CITY, "tool_use")
        words = text["text"]
        again = results(answer["content"], content="sunny")
        await direct(daemon, messages=again, tools=[WEATHER])
        result = daemon.model.requests[1].messages[-1]
        assert result.parts == (ToolOutput("call_1", "weather", "sunny"),)
    assert words == "Let me see."


async def test_thoughts_are_not_told_unasked(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    for stream in (False, True):
        daemon.model.thinks("hm", then="yes")
        answer = await ask(daemon, model=DIRECT, stream=stream)
        assert "yes" in answer.text
        assert "hm" not in answer.text


async def test_it_is_refused_as_chat_completions_refuse(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    threaded = await ask(daemon, model=DIRECT, thread={"id": "t"})
    assert threaded.status_code == 400
    assert daemon.model.requests == []
    for stream in (False, True):
        daemon.model.fails(ProviderFault.AUTH)
        refused = await ask(daemon, model=DIRECT, stream=stream)
        assert refused.json()["error"]["details"]["error_code"] == "auth"
    assert (await ask(daemon)).status_code == 404


async def test_the_tokens_of_a_models_prompt_are_counted(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    path = f"{PATH}/count_tokens"
    body = {"model": DIRECT, "messages": asked()["messages"]}
    bare = (await daemon.http.post(path, json=body)).json()["input_tokens"]
    more = {**body, "system": "x" * 400, "tools": [WEATHER]}
    whole = (await daemon.http.post(path, json=more)).json()["input_tokens"]
    assert 0 < bare < 10
    assert whole > bare + 100
    assert daemon.model.requests == []
