"""Tools of the client's, beside those that the agent has."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import File, Image, InvalidInput, Role, ToolOutput, ToolUse
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_openai_compat.messages.asking import tools_of
from agenthost_openai_compat.messages.reading import Reader
from agenthost_openai_compat.messages.shapes import Conversation

from .asking import (
    BOTH,
    CITY,
    HELLO,
    PATH,
    SCHEMA,
    WEATHER,
    answered,
    ask,
    asked,
    events_of,
    results,
)

KEY = "a-key-of-this-test-0123456"


async def test_a_call_of_the_clients_tool_is_returned(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls("weather", **CITY)
    answer = await answered(daemon, tools=[{**WEATHER, "type": "custom"}])
    assert answer["stop_reason"] == "tool_use"
    use = {"type": "tool_use", "id": "call_1", "name": "weather", "input": CITY}
    assert answer["content"] == [use]
    shown = {tool.name: tool for tool in daemon.model.requests[0].tools}
    assert shown["weather"].parameters == SCHEMA
    daemon.model.says("It is sunny.")
    messages = results(answer["content"], content="sunny")
    answer = await answered(daemon, tools=[WEATHER], messages=messages)
    assert answer["content"][0]["text"] == "It is sunny."
    _, called, result = daemon.model.requests[1].messages
    assert called.parts == (ToolUse("call_1", "weather", CITY),)
    assert result.parts == (ToolOutput("call_1", "weather", "sunny"),)


async def test_the_agents_own_tools_stay_hidden(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for stream in (False, True):
        daemon.model.calls("calculate", expression="6*7")
        daemon.model.says("It is 42.")
        answer = await ask(daemon, stream=stream)
        assert "calculate" not in answer.text
        assert "tool_use" not in answer.text
        assert "It is 42." in answer.text
    assert daemon.model.requests[-1].messages[-1].role is Role.TOOL


async def test_calls_of_both_kinds_go_on_in_their_place(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls_all(*BOTH)
    content = (await answered(daemon, tools=[WEATHER]))["content"]
    (use,) = content
    assert (use["name"], use["input"]) == ("weather", CITY)
    more = {"type": "text", "text": "and?"}
    messages = results(content, more, content="sunny")
    await answered(daemon, tools=[WEATHER], messages=messages)
    _, called, outputs, asked = daemon.model.requests[-1].messages
    assert [use.name for use in called.tool_uses] == ["calculate", "weather"]
    texts = [part.text for part in outputs.parts if isinstance(part, ToolOutput)]
    assert texts == ["42", "sunny"]
    assert asked.text == "and?"


@pytest.mark.conformance
async def test_what_the_model_thought_before_a_call_goes_back_to_it(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    daemon.model.thinks("hm", then="no call")
    content = (await answered(daemon, thinking=thinking))["content"]
    again = [*HELLO, {"role": "assistant", "content": content}, *HELLO]
    redacted = {"type": "redacted_thinking", "data": "x"}
    again[1]["content"] = [redacted, *content]
    await answered(daemon, messages=again)
    said = daemon.model.requests[-1].messages[1]
    assert [type(part).__name__ for part in said.parts] == ["Text"]


def test_a_result_has_words_pictures_and_documents() -> None:
    png = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    given = [
        {"type": "text", "text": "look"},
        {"type": "image", "source": png},
        {"type": "document", "source": pdf, "title": "plan"},
    ]
    messages = results([use()], content=given, is_error=True)
    (output,) = Reader({}, {}).read(None, messages).message.parts
    assert isinstance(output, ToolOutput)
    assert output.is_error
    assert output.text == "look\n[image: image/png]\n[document: plan, application/pdf]"
    assert output.media == (
        Image("image/png", "iVBORw0KGgo="),
        File("plan", "application/pdf", "JVBERi0="),
    )


@pytest.mark.conformance
async def test_a_result_may_be_nothing(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls("weather", **CITY)
    content = (await answered(daemon, tools=[WEATHER]))["content"]
    await answered(daemon, tools=[WEATHER], messages=results(content))
    (output,) = daemon.model.requests[-1].messages[-1].parts
    assert output == ToolOutput("call_1", "weather", "")


@pytest.mark.conformance
async def test_calls_that_nobody_answered_are_told_as_unknown(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    daemon.model.calls_all(*BOTH)
    content = (await answered(daemon, tools=[WEATHER]))["content"]
    said = [*HELLO, {"role": "assistant", "content": content}]
    await answered(daemon, messages=[*said, *HELLO])
    outputs = daemon.model.requests[-1].messages[2].parts
    assert [getattr(part, "is_error", None) for part in outputs] == [False, True]
    assert (await ask(daemon, messages=said)).status_code == 400


@pytest.mark.conformance
async def test_the_inner_part_is_its_askers_and_its_agents_alone(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    daemon.http.headers["authorization"] = f"Bearer {KEY}"
    await daemon.agent("ada")
    await daemon.agent("bob")
    made = await daemon.http.post(
        "/api/keys", json={"name": "other", "scopes": ["chat"]}
    )
    other = {"authorization": f"Bearer {made.json()['key']}"}
    daemon.model.calls_all(*BOTH)
    content = (await answered(daemon, tools=[WEATHER]))["content"]
    body = asked(tools=[WEATHER], messages=results(content, content="sunny"))
    for model, headers in (("bob", {}), ("ada", other)):
        again = {**body, "model": model}
        answer = await daemon.http.post(PATH, json=again, headers=headers)
        assert answer.status_code == 200, answer.text
        said = daemon.model.requests[-1].messages
        assert [use.name for use in said[1].tool_uses] == ["weather"]


CHOICES: tuple[tuple[dict[str, Any], str, bool | None], ...] = (
    ({"type": "auto"}, "auto", None),
    ({"type": "any", "disable_parallel_tool_use": True}, "required", False),
    (
        {"type": "tool", "name": "weather", "disable_parallel_tool_use": False},
        "weather",
        True,
    ),
)


def test_which_tool_is_called_may_be_chosen() -> None:
    for choice, name, parallel in CHOICES:
        body = Conversation(
            model="ada", messages=HELLO, tools=[WEATHER], tool_choice=choice
        )
        tools, chosen = tools_of(body)
        assert [tool.name for tool in tools] == ["weather"]
        assert chosen["tool_choice"] == name
        assert chosen.get("parallel_tool_calls") is parallel


@pytest.mark.conformance
async def test_the_chosen_tool_reaches_the_model(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls("weather")
    choice = {"type": "any", "disable_parallel_tool_use": True}
    await answered(daemon, tools=[WEATHER], tool_choice=choice)
    request = daemon.model.requests[-1]
    assert (request.tool_choice, request.parallel_tool_calls) == ("required", False)
    await answered(daemon, tools=[WEATHER], tool_choice={"type": "none"})
    request = daemon.model.requests[-1]
    assert request.tool_choice == ""
    names = [tool.name for tool in request.tools]
    assert "weather" not in names
    assert "calculate" in names


SEARCH = {"type": "web_search_20260318", "name": "web_search"}
BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"tools": [WEATHER, WEATHER]}, "tools: two have the same name"),
    ({"tools": [SEARCH]}, "tools.0.type: 'web_search_20260318' is not served"),
    ({"tools": [{**WEATHER, "type": 5}]}, "tools.0.type: "),
    ({"tools": [{"input_schema": {}}]}, "tools.0.name: "),
    ({"tools": [{"name": "x"}]}, "tools.0.input_schema: "),
    ({"tools": [{**WEATHER, "name": "über"}]}, "tools.0.name: "),
    ({"tools": [{**WEATHER, "name": "x" * 129}]}, "tools.0.name: "),
    ({"tools": [{**WEATHER, "description": 5}]}, "tools.0.description: "),
    ({"tool_choice": {"type": "any"}}, "tool_choice: any needs tools"),
    ({"tools": [WEATHER], "tool_choice": {"type": "some"}}, "tool_choice: "),
    ({"tools": [WEATHER], "tool_choice": {"type": ["any"]}}, "tool_choice: "),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "calculate"}},
        "tool_choice: ",
    ),
    (
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": 1}},
        "tool_choice.disable_parallel_tool_use: ",
    ),
)


def test_bad_tools_are_refused() -> None:
    for body, problem in BAD:
        with pytest.raises(InvalidInput) as refused:
            tools_of(Conversation(model="ada", messages=HELLO, **body))
        assert refused.value.message.startswith(problem)


@pytest.mark.conformance
async def test_a_name_that_the_agent_has_is_refused(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for stream in (False, True):
        answer = await ask(
            daemon, stream=stream, tools=[{**WEATHER, "name": "calculate"}]
        )
        assert answer.status_code == 400
        problem = "tools: the name 'calculate' is taken"
        assert answer.json()["error"]["message"].startswith(problem)
    assert daemon.model.requests == []


def use(**more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "a", "name": "weather", "input": {}, **more}


def result(**more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "a", "content": "x", **more}


BROKEN: tuple[tuple[list[Any], list[Any], str], ...] = (
    ([use()], [result(tool_use_id="b")], "messages.2.content.0.tool_use_id"),
    ([use()], [result(tool_use_id=5)], "messages.2.content.0.tool_use_id"),
    ([use()], [result(), result()], "messages.2.content.1.tool_use_id"),
    ([use()], [result(is_error=["no"])], "messages.2.content.0.is_error"),
    ([use()], [result(content=5)], "messages.2.content.0.content"),
    ([use()], [result(content=[{"type": "x"}])], "messages.2.content.0.content.0"),
    ([use(), use()], [result()], "messages.1.content"),
    ([use(input="{}")], [result()], "messages.1.content.0"),
    ([use(id="")], [result()], "messages.1.content.0.id"),
    ([use(type="server_tool_use")], [result()], "messages.1.content.0.type"),
    ([{"type": "text"}], [result()], "messages.1.content.0"),
    ([use()], [{"type": "audio"}], "messages.2.content.0.type"),
    ([use()], [{"type": ["text"]}], "messages.2.content.0.type"),
)


def test_broken_calls_and_results_are_refused() -> None:
    for said, given, field in BROKEN:
        messages: list[dict[str, Any]] = [
            *HELLO,
            {"role": "assistant", "content": said},
            {"role": "user", "content": given},
        ]
        with pytest.raises(InvalidInput) as refused:
            Reader({}, {}).read(None, messages)
        assert refused.value.message.startswith(field)


@pytest.mark.conformance
async def test_the_ids_of_a_streamed_call_lead_to_its_inner_part(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    daemon.model.calls_all(*BOTH)
    events = await events_of(daemon, tools=[WEATHER])
    (begun,) = [told for name, told in events if name == "content_block_start"]
    content = [{**begun["content_block"], "input": CITY}]
    messages = results(content, content="sunny")
    await answered(daemon, tools=[WEATHER], messages=messages)
    called = daemon.model.requests[-1].messages[1]
    assert [use.name for use in called.tool_uses] == ["calculate", "weather"]
