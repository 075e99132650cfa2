"""Responses: what comes back, what is kept, and what is gone on from."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import Message, ProviderFault, Role, Text, ToolOutput, ToolUse, Usage
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import Answer

from .asking import (
    CITY,
    PATH,
    WEATHER,
    ask,
    calls_of,
    made,
    read,
    results,
    streamed,
    texts_of,
)


async def test_an_answer_is_a_response(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.says("You said: hello", usage=Usage(10, 5, 4, 3, 2))
    answer = await made(daemon, metadata={"a": "b"}, instructions="Be brief.")
    known = answer.pop("id").removeprefix("resp_")
    assert isinstance(answer.pop("created_at"), int)
    assert isinstance(answer.pop("completed_at"), int)
    text = {"type": "output_text", "text": "You said: hello"}
    assert answer == {
        "object": "response",
        "status": "completed",
        "model": "service:ada",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": "Be brief.",
        "max_output_tokens": None,
        "metadata": {"a": "b"},
        "output": [
            {
                "id": f"msg_{known}_0",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{**text, "annotations": [], "logprobs": []}],
            }
        ],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "store": True,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": None,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 15,
        },
        "user": None,
    }
    assert daemon.model.requests[0].system.endswith("\n\nBe brief.")


async def test_what_is_kept_is_what_came_back(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.says("You said: hello", usage=Usage(10, 5, 4, 3, 2))
    answer = await made(daemon)
    assert (await read(daemon, answer)).json() == answer


@pytest.mark.conformance
async def test_with_store_false_nothing_is_kept(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    answer = await made(daemon, store=False)
    assert answer["store"] is False
    assert (await read(daemon, answer)).status_code == 404


async def test_the_whole_conversation_goes_on_behind_a_response(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    one = await made(daemon, "one", instructions="Be brief.")
    two = await made(daemon, "two", previous_response_id=one["id"])
    three = await made(daemon, "three", previous_response_id=two["id"])
    # From the first on it branches.
    await made(daemon, "other", previous_response_id=one["id"])
    assert three["previous_response_id"] == two["id"]
    said = [[m.text for m in r.messages] for r in daemon.model.requests]
    begun = ["one", "You said: one"]
    assert said[2] == [*begun, "two", "You said: two", "three"]
    assert said[3] == [*begun, "other"]
    # Instructions are those of the request alone.
    assert not daemon.model.requests[1].system.endswith("Be brief.")


async def test_what_the_agent_did_inside_is_remembered(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("It is 42.")
    one = await made(daemon)
    assert texts_of(one) == ["It is 42."]
    await made(daemon, "again", previous_response_id=one["id"])
    said = daemon.model.requests[-1].messages
    outputs = [part for m in said for part in m.parts if isinstance(part, ToolOutput)]
    assert [each.text for each in outputs] == ["42"]


@pytest.mark.conformance
async def test_another_agent_is_told_what_the_client_saw(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    await daemon.agent("bob")
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("It is 42.")
    one = await made(daemon)
    await made(daemon, "again", model="bob", previous_response_id=one["id"])
    said = daemon.model.requests[-1].messages
    assert [m.text for m in said] == ["hello", "It is 42.", "again"]


@pytest.mark.conformance
@pytest.mark.parametrize("store", [True, False])
async def test_calls_of_the_clients_are_answered(
    daemon: RunningDaemon, *, store: bool
) -> None:
    await daemon.agent("ada")
    daemon.model.calls_all(("calculate", {"expression": "6*7"}), ("weather", CITY))
    one = await made(daemon, tools=[WEATHER], store=store)
    (call,) = calls_of(one)
    assert (call["name"], call["arguments"]) == ("weather", '{"city": "Rome"}')
    daemon.model.says("sunny")
    if store:
        two = await made(
            daemon, results(one), tools=[WEATHER], previous_response_id=one["id"]
        )
    else:
        hello = {"role": "user", "content": "hello"}
        items = [hello, *one["output"], *results(one)]
        two = await made(daemon, items, tools=[WEATHER], store=False)
    assert texts_of(two) == ["sunny"]
    last = daemon.model.requests[-1].messages
    assert [m.role for m in last] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert [part.text for part in last[-1].parts if isinstance(part, ToolOutput)] == [
        "42",
        "sunny",
    ]


@pytest.mark.conformance
async def test_items_are_read_as_a_conversation(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    items = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_text", "text": "one"}]},
        {"role": "assistant", "content": "two"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "system", "content": "Be loud."},
        {"type": "message", "role": "user", "content": "three"},
    ]
    await made(daemon, items)
    request = daemon.model.requests[-1]
    assert request.system.endswith("\n\nBe kind.")
    assert request.messages[:2] == (
        Message(Role.USER, (Text("one"),)),
        Message(Role.ASSISTANT, (Text("two"),)),
    )
    assert request.messages[2].text.endswith("Be loud.")
    assert request.messages[3].text == "three"


async def test_an_answer_that_its_limit_cut_is_incomplete(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    daemon.model.is_cut("half")
    answer = await made(daemon, max_output_tokens=20)
    assert answer["status"] == "incomplete"
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert answer["output"][0]["status"] == "incomplete"
    assert (await read(daemon, answer)).json() == answer
    await made(daemon, "go on", previous_response_id=answer["id"])
    assert daemon.model.requests[-1].messages[1].text == "half"


@pytest.mark.conformance
async def test_an_answer_that_was_blocked_is_incomplete(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.is_blocked("no")
    answer = await made(daemon)
    assert answer["incomplete_details"] == {"reason": "content_filter"}


@pytest.mark.conformance
async def test_a_failure_has_its_status(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.fails(ProviderFault.AUTH)
    answer = await ask(daemon)
    assert (answer.status_code, answer.json()["code"]) == (500, "auth")


async def test_a_deleted_response_is_gone_and_nothing_goes_on_behind_it(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    one = await made(daemon, "one")
    two = await made(daemon, "two", previous_response_id=one["id"])
    gone = await daemon.http.delete(f"{PATH}/{one['id']}")
    assert gone.json() == {"id": one["id"], "object": "response", "deleted": True}
    assert (await daemon.http.delete(f"{PATH}/{one['id']}")).status_code == 404
    assert (await read(daemon, one)).status_code == 404
    for known in (one, two):
        answer = await ask(daemon, "three", previous_response_id=known["id"])
        assert (answer.status_code, answer.json()["param"]) == (
            404,
            "previous_response_id",
        )
        assert one["id"] in answer.json()["error"]


async def test_input_items_are_listed_in_pages(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    items = [{"role": "user", "content": word} for word in ("one", "two", "three")]
    answer = await made(daemon, items)
    path = f"{PATH}/{answer['id']}/input_items"
    first = (await daemon.http.get(path, params={"limit": "2"})).json()
    words = [item["content"][0]["text"] for item in first["data"]]
    assert (words, first["has_more"]) == (["three", "two"], True)
    rest = (await daemon.http.get(path, params={"after": first["last_id"]})).json()
    assert [item["content"][0]["text"] for item in rest["data"]] == ["one"]
    assert rest["has_more"] is False
    up = (await daemon.http.get(path, params={"order": "asc"})).json()
    assert [i["content"][0]["text"] for i in up["data"]] == ["one", "two", "three"]
    wrong = await daemon.http.get(path, params={"after": "nothing"})
    assert (wrong.status_code, wrong.json()["param"]) == (400, "after")


async def test_a_stream_tells_all_in_order(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.says("one ", "two")
    events = await streamed(daemon)
    kinds = [event["type"].removeprefix("response.") for event in events]
    deltas = kinds.count("output_text.delta")
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        *["output_text.delta"] * deltas,
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    said = [e["delta"] for e in events if e["type"].endswith("output_text.delta")]
    assert "".join(said) == "one two"
    last = events[-1]["response"]
    assert texts_of(last) == ["one two"]
    assert events[-2]["item"] == last["output"][0]
    assert (await read(daemon, last)).json() == last
    assert events[0]["response"]["status"] == "in_progress"
    assert events[0]["response"]["id"] == last["id"]


@pytest.mark.conformance
async def test_a_stream_tells_calls_behind_words(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls_all(("weather", CITY), ("weather", {}))
    events = await streamed(daemon, tools=[WEATHER])
    last = events[-1]["response"]
    done = [e["item"] for e in events if e["type"].endswith("output_item.done")]
    assert done == last["output"] == calls_of(last)
    arguments = [e["arguments"] for e in events if e["type"].endswith("arguments.done")]
    assert arguments == ['{"city": "Rome"}', "{}"]


@pytest.mark.conformance
async def test_words_before_a_tool_of_the_agents_are_a_message_of_their_own(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    use = ToolUse("1", "calculate", {"expression": "6*7"})
    daemon.model._answers.append(Answer(("Let me see.",), calls=(use,)))
    daemon.model.says("It is 42.")
    events = await streamed(daemon)
    last = events[-1]["response"]
    done = [e["item"] for e in events if e["type"].endswith("output_item.done")]
    assert texts_of(last) == ["Let me see.", "It is 42."]
    assert done == last["output"]


async def test_a_stream_that_breaks_off_has_failed(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.fails(ProviderFault.BAD_REQUEST, "one")
    events = await streamed(daemon)
    assert events[-1]["type"] == "response.failed"
    last = events[-1]["response"]
    assert last["status"] == "failed"
    assert last["error"]["code"] == "server_error"
    assert (await read(daemon, last)).json() == last
    answer = await ask(daemon, previous_response_id=last["id"])
    assert (answer.status_code, answer.json()["param"]) == (400, "previous_response_id")


FORM = {
    "type": "json_schema",
    "name": "city",
    "schema": {"type": "object", "required": ["name"]},
}


@pytest.mark.conformance
@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_has_the_form_that_was_asked_for(
    daemon: RunningDaemon, *, stream: bool
) -> None:
    await daemon.agent("ada")
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says('{"name": "Rome"}')
    body: Any = {"text": {"format": FORM}}
    if stream:
        answer = (await streamed(daemon, **body))[-1]["response"]
    else:
        answer = await made(daemon, **body)
    assert texts_of(answer) == ['{"name": "Rome"}']
    assert daemon.model.requests[0].response_format == FORM["schema"]
    assert answer["text"] == body["text"]


@pytest.mark.conformance
async def test_settings_reach_the_model(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    answer = await made(
        daemon,
        temperature=0.3,
        top_p=0.5,
        max_output_tokens=77,
        parallel_tool_calls=False,
        safety_identifier="somebody",
        tools=[WEATHER],
        tool_choice={"type": "function", "name": "weather"},
        reasoning={"effort": "high", "summary": "auto"},
    )
    request = daemon.model.requests[0]
    assert request.thinking_budget == 32_768
    assert answer["reasoning"] == {"effort": "high", "summary": None}
    assert (request.temperature, request.top_p, request.max_tokens) == (0.3, 0.5, 77)
    assert (request.parallel_tool_calls, request.user) == (False, "somebody")
    assert request.tool_choice == "weather"


@pytest.mark.conformance
async def test_allowed_tools_are_those_that_the_model_sees(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    other = {**WEATHER, "name": "tides"}
    allowed = [{"type": "function", "name": "tides"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": allowed}
    await made(daemon, tools=[WEATHER, other], tool_choice=choice)
    names = {tool.name for tool in daemon.model.requests[0].tools}
    assert "tides" in names
    assert "weather" not in names


async def test_who_asks_with_another_key_finds_nothing(daemons: Daemons) -> None:
    daemon = await daemons.start(config='api_key = "a-key-0123456789abcdef"\n')
    daemon.http.headers["authorization"] = "Bearer a-key-0123456789abcdef"
    await daemon.agent("ada")
    mine = await made(daemon)
    asked = {"name": "other", "scopes": ["chat"]}
    key = (await daemon.http.post("/api/keys", json=asked)).json()["key"]
    daemon.http.headers["authorization"] = f"Bearer {key}"
    path = f"{PATH}/{mine['id']}"
    answers = [
        await daemon.http.get(path),
        await daemon.http.get(f"{path}/input_items"),
        await daemon.http.post(f"{path}/cancel"),
        await daemon.http.delete(path),
        await ask(daemon, previous_response_id=mine["id"]),
    ]
    assert [answer.status_code for answer in answers] == [404] * 5
    daemon.http.headers["authorization"] = "Bearer a-key-0123456789abcdef"
    assert (await daemon.http.get(path)).status_code == 200
