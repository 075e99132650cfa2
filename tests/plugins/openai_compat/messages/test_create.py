"""Messages: the history, the answer, and what is asked of it."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import Finish, Message, ModelSettings, Role, Text, ToolUse, Usage
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.scripted import Answer

from .asking import HELLO, PATH, SCHEMA, WEATHER, answered, ask, asked


async def test_an_answer_is_a_message(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    answer = await answered(daemon)
    assert answer.pop("id").startswith("msg_")
    assert answer == {
        "type": "message",
        "role": "assistant",
        "model": "service:ada",
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


async def test_the_whole_history_is_honoured_and_nothing_is_kept(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent("ada")
    await agent.send("kept")
    text = {"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}
    messages = [
        {"role": "user", "content": [text]},
        {"role": "assistant", "content": "two"},
        {"role": "assistant", "content": [{"type": "text", "text": "and"}]},
        {"role": "system", "content": "Be loud."},
        {"role": "user", "content": "three"},
    ]
    await answered(daemon, messages=messages)
    said = daemon.model.requests[-1].messages
    assert said[:3] == (
        Message(Role.USER, (Text("one"),)),
        Message(Role.ASSISTANT, (Text("two"),)),
        Message(Role.ASSISTANT, (Text("and"),)),
    )
    assert said[3].role is Role.USER
    assert said[3].text.endswith("\nBe loud.")
    assert said[4] == Message(Role.USER, (Text("three"),))
    assert len((await agent.session())["messages"]) == 2


async def test_the_system_prompt_stands_behind_the_agents_own(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent("ada")
    await agent.send("native")
    cached = {"type": "text", "text": "Be brief.", "cache_control": {}}
    systems = ("Be brief.", [cached, {"type": "text", "text": "Be kind."}])
    for system in systems:
        await answered(daemon, system=system)
    native, one, two = [request.system for request in daemon.model.requests]
    assert one == f"{native}\n\nBe brief."
    assert two == f"{native}\n\nBe brief.\n\nBe kind."


async def test_what_is_asked_of_the_answer_reaches_the_model(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    await answered(
        daemon,
        max_tokens=7,
        temperature=0.5,
        top_p=0.4,
        top_k=5,
        stop_sequences=["END", "STOP"],
        metadata={"user_id": "somebody"},
        service_tier="auto",
        cache_control={"type": "ephemeral"},
        context_management={"edits": []},
    )
    request = daemon.model.requests[0]
    assert (request.temperature, request.top_p, request.max_tokens) == (0.5, 0.4, 7)
    assert (request.stop, request.user) == (("END", "STOP"), "somebody")
    await answered(daemon)
    assert daemon.model.requests[1].asked == ModelSettings().asked


@pytest.mark.conformance
async def test_an_answer_has_the_form_that_is_asked_for(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.says('{"city": "Rome"}')
    form = {"format": {"type": "json_schema", "schema": SCHEMA}}
    answer = await answered(daemon, output_config=form)
    assert answer["content"] == [{"type": "text", "text": '{"city": "Rome"}'}]
    assert daemon.model.requests[-1].response_format == SCHEMA


THINKING: tuple[tuple[dict[str, Any], int | None], ...] = (
    ({}, 2_000),
    ({"thinking": {"type": "disabled"}}, 0),
    ({"thinking": {"type": "enabled", "budget_tokens": 5_000}}, 5_000),
    ({"thinking": {"type": "adaptive"}}, 10_000),
    ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, 4_096),
    ({"output_config": {"effort": "max"}}, 2_000),
)


async def test_how_much_the_model_thinks_may_be_asked_for(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada", extra="[thinking]\nbudget_tokens = 2000\n")
    for body, budget in THINKING:
        await answered(daemon, **body)
        assert daemon.model.requests[-1].thinking_budget == budget, body


@pytest.mark.conformance
async def test_thoughts_are_shown_to_who_asks_for_them(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    shown = {"type": "enabled", "budget_tokens": 1_024}
    for thinking, seen in (
        (shown, ["thinking", "text"]),
        ({**shown, "display": "omitted"}, ["text"]),
        (None, ["text"]),
        ({"type": "disabled"}, ["text"]),
    ):
        daemon.model.thinks("hm, ", "well", then="yes")
        content = (await answered(daemon, thinking=thinking))["content"]
        assert [block["type"] for block in content] == seen
        if thinking == shown:
            assert content[0]["thinking"] == "hm, well"
            assert content[0]["signature"]


@pytest.mark.conformance
async def test_a_manifest_may_show_thoughts_to_who_says_nothing_of_them(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada", extra="[thinking]\nstream_thinking = true\n")
    daemon.model.thinks("hm", then="yes")
    content = (await answered(daemon))["content"]
    assert content[0]["thinking"] == "hm"


@pytest.mark.conformance
async def test_words_before_the_agents_own_tools_are_a_block_of_their_own(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    use = ToolUse("call_1", "calculate", {"expression": "6*7"})
    daemon.model._answers.append(Answer(("Let me see.",), calls=(use,)))
    daemon.model.says("It is 42.")
    answer = await answered(daemon)
    assert [block["text"] for block in answer["content"]] == [
        "Let me see.",
        "It is 42.",
    ]
    assert answer["usage"]["input_tokens"] == 20


@pytest.mark.conformance
async def test_the_stop_sequence_that_ended_it_is_named(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.stops_before("END", "so far")
    answer = await answered(daemon, stop_sequences=["STOP", "END"])
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("stop_sequence", "END")


async def test_why_an_answer_ended_early_is_told(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.is_blocked("I can")
    daemon.model.is_cut("half an")
    daemon.model.is_cut("")
    for reason, words in (
        ("refusal", ["I can"]),
        ("max_tokens", ["half an"]),
        ("max_tokens", []),
    ):
        answer = await answered(daemon, max_tokens=3)
        assert answer["stop_reason"] == reason
        assert [block["text"] for block in answer["content"]] == words


@pytest.mark.conformance
async def test_a_cut_call_ends_with_the_words_before_it(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.is_cut("I call", in_call=True)
    answer = await answered(daemon)
    assert answer["stop_reason"] == "max_tokens"
    assert answer["content"] == [{"type": "text", "text": "I call"}]


@pytest.mark.conformance
async def test_cached_tokens_stand_beside_the_input(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    took = Usage(100, 9, cached_tokens=60, cache_write_tokens=30, reasoning_tokens=4)
    daemon.model.says("yes", usage=took)
    assert (await answered(daemon))["usage"] == {
        "input_tokens": 10,
        "output_tokens": 9,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 4},
    }


def refused(**body: Any) -> tuple[dict[str, Any], str]:
    (field,) = body
    return body, field


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    refused(model=5),
    refused(max_tokens=0),
    refused(tools=[WEATHER] * 129),
    refused(max_tokens=None),
    refused(messages=[]),
    refused(temperature=1.5),
    refused(top_p=2),
    refused(top_k="many"),
    refused(stream="yes"),
    ({"system": 5}, "system.str"),
    ({"system": [{"type": "image"}]}, "system.0"),
    ({"stop_sequences": [""]}, "stop_sequences.0"),
    ({"metadata": {"user_id": 5}}, "metadata.user_id"),
    ({"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role"),
    ({"messages": [{"role": ["user"], "content": "x"}]}, "messages.0.role"),
    ({"messages": [{"role": "user"}]}, "messages.0.content"),
    ({"messages": [{"role": "user", "content": " "}]}, "messages.0.content"),
    ({"messages": [{"role": "user", "content": []}]}, "messages.0.content"),
    ({"messages": [{"role": "user", "content": ["x"]}]}, "messages.0.content.0"),
    ({"messages": [{"role": "assistant", "content": [{}]}]}, "messages.0.content.0"),
    ({"messages": [{"role": "assistant", "content": 5}]}, "messages.0.content"),
    ({"messages": [*HELLO, {"role": "assistant", "content": "The"}]}, "messages"),
    ({"messages": [{"role": "assistant", "content": ""}]}, "messages"),
    ({"thinking": {}}, "thinking.type"),
    ({"thinking": {"type": ["enabled"]}}, "thinking.type"),
    ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
    (
        {"thinking": {"type": "enabled", "budget_tokens": 5}},
        "thinking.budget_tokens",
    ),
    ({"output_config": {"effort": "some"}}, "output_config.effort"),
    ({"output_config": {"effort": ["low"]}}, "output_config.effort"),
    ({"output_config": {"format": {"type": "yaml"}}}, "output_config.format"),
    ({"output_config": {"format": 5}}, "output_config.format"),
    refused(mcp_servers=[{"type": "url", "url": "https://example.org"}]),
    refused(container="container_1"),
    refused(thread={"type": "create"}),
)


async def test_a_bad_request_names_its_field(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for body, field in BAD:
        answer = await ask(daemon, **body)
        assert answer.status_code == 400, (body, answer.text)
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert error["message"].startswith(f"{field}: "), (body, error)
    assert daemon.model.requests == []


@pytest.mark.conformance
async def test_an_answer_of_no_words_has_no_block(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model._answers.append(Answer((), finish=Finish.STOP))
    assert (await answered(daemon))["content"] == []


@pytest.mark.conformance
async def test_any_version_and_any_beta_is_taken(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for headers, status in (
        ({"anthropic-version": "2023-06-01", "anthropic-beta": "a,b"}, 200),
        ({"anthropic-version": "2099-01-01"}, 200),
        ({"anthropic-version": "new"}, 400),
        ({"anthropic-version": ""}, 400),
    ):
        url = f"{PATH}?beta=true"
        answer = await daemon.http.post(url, json=asked(), headers=headers)
        assert answer.status_code == status, headers
