"""A response of a model itself: nothing of it is kept, and all is told."""

from __future__ import annotations

import asyncio

import pytest
from agenthost import ProviderFault, Text, ToolOutput, ToolUse
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons
from agenthost.testing.scripted import Answer

from ..test_passthrough import DIRECT, KEY, ON, usage_rows
from .asking import (
    CITY,
    WEATHER,
    ask,
    calls_of,
    made,
    results,
    streamed,
    texts_of,
)


async def test_a_named_model_answers_without_an_agent(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    answer = await made(
        daemon,
        model=DIRECT,
        instructions="Be brief.",
        temperature=0.5,
        top_p=0.25,
        max_output_tokens=9,
        prompt_cache_key="c",
        safety_identifier="u",
        parallel_tool_calls=False,
        tools=[WEATHER],
        tool_choice="none",
        reasoning={"effort": "minimal"},
        text={"verbosity": "low", "format": {"type": "json_object"}},
    )
    (request,) = daemon.model.requests
    assert (request.system, request.temperature, request.top_p) == (
        "Be brief.",
        0.5,
        0.25,
    )
    assert (request.max_tokens, request.cache_key, request.user) == (9, "c", "u")
    assert [tool.name for tool in request.tools] == ["weather"]
    assert (request.tool_choice, request.parallel_tool_calls) == ("none", False)
    assert (request.response_format, request.stream) == ({"type": "object"}, False)
    assert request.thinking_budget == 1_024
    words = {"reasoning_effort": "minimal", "verbosity": "low"}
    assert request.native == {"openai-chat": words}
    assert (answer["model"], answer["status"], answer["store"]) == (
        DIRECT,
        "completed",
        False,
    )
    assert texts_of(answer) == ["You said: hello"]
    assert answer["usage"]["total_tokens"] == 15
    ((agent, session, turn, *_),) = await usage_rows(daemon)
    assert (agent, session) == ("", "")
    assert answer["id"] == f"resp_{turn.replace('-', '')}"
    assert (await daemon.http.get(f"/v1/responses/{answer['id']}")).status_code == 404


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_are_the_clients_under_the_models_own_ids(
    daemons: Daemons, *, stream: bool
) -> None:
    daemon = await daemons.start(config=ON)
    daemon.model.calls("weather", **CITY)
    asked = {"model": DIRECT, "tools": [WEATHER]}
    if stream:
        events = await streamed(daemon, **asked)
        answer = events[-1]["response"]
        assert events[-1]["type"] == "response.completed"
    else:
        answer = await made(daemon, **asked)
    (call,) = calls_of(answer)
    assert (call["call_id"], call["name"]) == ("call_1", "weather")
    said = [{"role": "user", "content": "hello"}, *answer["output"], *results(answer)]
    await made(daemon, said, **asked)
    messages = daemon.model.requests[-1].messages
    assert messages[1].parts == (ToolUse("call_1", "weather", CITY),)
    assert messages[2].parts == (ToolOutput("call_1", "weather", "sunny"),)


async def test_words_are_streamed_as_they_come_also_of_a_form(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    text = {"format": {"type": "json_object"}}
    asking = asyncio.create_task(streamed(daemon, model=DIRECT, text=text))
    await pause.reached.wait()
    pause.go_on()
    events = await asking
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [e["delta"] for e in events if "delta" in e] == ["one ", "two"]
    assert events[-1]["response"]["model"] == DIRECT
    assert texts_of(events[-1]["response"]) == ["one two"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous_response_id", "resp_0a6f1c9e7d1b4a559d0c3b1f3f6f2a10"),
        ("background", True),
        ("store", True),
    ],
)
async def test_what_nobody_keeps_is_refused_with_the_remedy(
    daemons: Daemons, field: str, value: object
) -> None:
    daemon = await daemons.start(config=ON)
    answer = await ask(daemon, model=DIRECT, **{field: value})
    assert answer.status_code == 400
    assert "keeps nothing" in answer.json()["error"]
    assert field in answer.json()["error"]
    wrong = await ask(daemon, model=DIRECT, text={"verbosity": "sk-1234"})
    assert "text.verbosity: must be one of low" in wrong.json()["error"]
    assert not daemon.model.requests


async def test_who_may_speak_to_agents_alone_is_refused(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n{ON}')
    daemon.http.headers["authorization"] = f"Bearer {KEY}"
    made_key = await daemon.http.post(
        "/api/keys", json={"name": "chat", "scopes": ["chat"]}
    )
    daemon.http.headers["authorization"] = f"Bearer {made_key.json()['key']}"
    answer = await ask(daemon, model=DIRECT)
    assert answer.status_code == 403
    assert "models:use" in answer.text
    assert not daemon.model.requests


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_has_its_status(daemons: Daemons, *, stream: bool) -> None:
    daemon = await daemons.start(config=ON)
    daemon.model.fails(ProviderFault.AUTH)
    answer = await ask(daemon, model=DIRECT, stream=stream)
    assert (answer.status_code, answer.json()["code"]) == (500, "auth")


async def test_a_stream_that_breaks_off_says_so_at_its_end(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    pause = Pause()
    broken = Answer(("one ", pause), fault=ProviderFault.SERVER)
    daemon.model._answers.append(broken)
    asking = asyncio.create_task(streamed(daemon, model=DIRECT))
    await pause.reached.wait()
    pause.go_on()
    last = (await asking)[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["code"] == "server_error"


async def test_pictures_go_along(daemons: Daemons) -> None:
    daemon = await daemons.start(config=ON)
    url = "data:image/png;base64,iVBORw0KGgo="
    content = [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": url},
    ]
    await made(daemon, [{"role": "user", "content": content}], model=DIRECT)
    (request,) = daemon.model.requests
    text, picture = request.messages[0].parts
    assert text == Text("see")
    assert getattr(picture, "media_type", "") == "image/png"
