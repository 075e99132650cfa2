"""Tools of the client's, beside those that the agent has."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from agenthost import Role, ToolOutput, ToolUse
from agenthost.testing import ManualClock
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_openai_compat.tools import turn_of

from .test_chat import HELLO, PATH, ask, chunks_of

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "description": "To.", "parameters": PARAMETERS},
}
CITY = {"city": "Rome"}
BOTH = (("calculate", {"expression": "6*7"}), ("weather", CITY))


def choice_of(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    (choice,) = answer.json()["choices"]
    return dict(choice)


def answered(message: dict[str, Any], text: str = "sunny") -> list[dict[str, Any]]:
    """Go on with a conversation once the client has made its calls."""
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": text}
        for call in message["tool_calls"]
    ]
    return [*HELLO, message, *results]


async def test_a_call_of_the_clients_tool_is_returned(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls("weather", **CITY)
    choice = choice_of(await ask(daemon, tools=[WEATHER]))
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
    }
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": None, "tool_calls": [call]},
        "finish_reason": "tool_calls",
    }
    shown = {tool.name: tool for tool in daemon.model.requests[0].tools}
    assert shown["weather"].parameters == PARAMETERS
    daemon.model.says("It is sunny.")
    choice = choice_of(
        await ask(daemon, tools=[WEATHER], messages=answered(choice["message"]))
    )
    assert choice["message"]["content"] == "It is sunny."
    _, asked, result = daemon.model.requests[1].messages
    assert asked.parts == (ToolUse("call_1", "weather", CITY),)
    assert result.parts == (ToolOutput("call_1", "weather", "sunny"),)


async def test_a_call_is_streamed(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls_all(("weather", CITY), ("weather", {}))
    chunks = await chunks_of(daemon, tools=[WEATHER])
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": None}
    calls = [delta["tool_calls"][0] for delta in deltas[1:3]]
    assert [(c["index"], c["id"], c["type"]) for c in calls] == [
        (0, "call_1", "function"),
        (1, "call_2", "function"),
    ]
    assert calls[0]["function"] == {"name": "weather", "arguments": json.dumps(CITY)}
    assert chunks[-1]["choices"][0] == {
        "index": 0,
        "delta": {},
        "finish_reason": "tool_calls",
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_of_both_kinds_the_agents_own_run_first_and_stay_hidden(
    daemon: RunningDaemon, *, stream: bool
) -> None:
    await daemon.agent("ada")
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.calls_all(*BOTH)
    answer = await ask(daemon, tools=[WEATHER], stream=stream)
    assert "calculate" not in answer.text
    if stream:
        data = [json.loads(line[6:]) for line in answer.text.split("\n\n")[:-2]]
        deltas = [chunk["choices"][0]["delta"] for chunk in data]
        (call,) = (use for each in deltas for use in each.get("tool_calls", ()))
        del call["index"]
    else:
        (call,) = choice_of(answer)["message"]["tool_calls"]
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    daemon.model.says("42, and sunny.")
    await ask(daemon, tools=[WEATHER], messages=answered(message))
    said = daemon.model.requests[-1].messages
    assert [m.role for m in said] == [
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
        Role.ASSISTANT,
        Role.TOOL,
    ]
    assert [use.name for use in said[3].tool_uses] == ["calculate", "weather"]
    outputs = {p.name: p.text for p in said[4].parts if isinstance(p, ToolOutput)}
    assert outputs == {"calculate": "42", "weather": "sunny"}
    assert len(call["id"]) <= 40


async def test_the_inner_part_is_there_after_a_restart(
    daemons: Daemons, tmp_path: Any
) -> None:
    daemon = await daemons.start(home=tmp_path / "home")
    await daemon.agent("ada")
    daemon.model.calls_all(*BOTH)
    message = choice_of(await ask(daemon, tools=[WEATHER]))["message"]
    await daemon.daemon.stop()
    daemon = await daemons.start(home=tmp_path / "home")
    await ask(daemon, tools=[WEATHER], messages=answered(message))
    said = daemon.model.requests[-1].messages
    assert [use.name for use in said[1].tool_uses] == ["calculate", "weather"]


async def test_the_inner_part_is_kept_for_an_hour(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    await daemon.agent("ada")
    daemon.model.calls_all(*BOTH)
    message = choice_of(await ask(daemon, tools=[WEATHER]))["message"]
    # Nobody may ask for it again by a key: its rows go, too.
    turn = turn_of(message["tool_calls"][0]["id"])
    assert (await daemon.daemon.sessions.get(turn)).key == f"turn:left:{turn}"
    seen = []
    for seconds in (3_599, 1):
        await clock.advance(seconds)
        await ask(daemon, tools=[WEATHER], messages=answered(message))
        said = daemon.model.requests[-1].messages
        seen.append([use.name for use in said[1].tool_uses])
    assert seen == [["calculate", "weather"], ["weather"]]


async def test_the_inner_part_is_its_askers_and_its_agents_alone(
    daemons: Daemons,
) -> None:
    key = "a-key-of-this-test-0123456"
    daemon = await daemons.start(config=f'api_key = "{key}"\n')
    daemon.http.headers["authorization"] = f"Bearer {key}"
    await daemon.agent("ada")
    await daemon.agent("bob")
    made = await daemon.http.post(
        "/api/keys", json={"name": "other", "scopes": ["chat"]}
    )
    other = {"authorization": f"Bearer {made.json()['key']}"}
    daemon.model.calls_all(*BOTH)
    message = choice_of(await ask(daemon, tools=[WEATHER]))["message"]
    asked = {"model": "ada", "messages": answered(message), "tools": [WEATHER]}
    for model, headers in (("bob", {}), ("ada", other)):
        answer = await daemon.http.post(
            PATH, json={**asked, "model": model}, headers=headers
        )
        assert answer.status_code == 200, answer.text
        said = daemon.model.requests[-1].messages
        assert [use.name for use in said[1].tool_uses] == ["weather"]


async def test_with_a_key_the_same_calls_come_again(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls_all(*BOTH)
    body = {"model": "ada", "messages": HELLO, "tools": [WEATHER]}
    key = {"Idempotency-Key": "k"}
    first, again = [
        choice_of(await daemon.http.post(PATH, json=body, headers=key))
        for _ in range(2)
    ]
    assert first == again
    assert first["finish_reason"] == "tool_calls"
    assert len(daemon.model.requests) == 1


async def test_which_tool_is_called_may_be_chosen(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    named = {"type": "function", "function": {"name": "weather"}}
    for choice, asked in (
        ("auto", "auto"),
        ("required", "required"),
        (named, "weather"),
    ):
        daemon.model.calls("weather")
        await ask(daemon, tools=[WEATHER], tool_choice=choice)
        assert daemon.model.requests[-1].tool_choice == asked
    await ask(daemon, tools=[WEATHER], tool_choice="none")
    request = daemon.model.requests[-1]
    assert request.tool_choice == ""
    names = [tool.name for tool in request.tools]
    assert "weather" not in names
    assert "calculate" in names


async def test_an_answer_in_a_form_may_call_first(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.calls("weather")
    form = {"type": "json_object"}
    choice = choice_of(await ask(daemon, tools=[WEATHER], response_format=form))
    assert choice["finish_reason"] == "tool_calls"


def tool(**function: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": function}]}


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"tools": [WEATHER, WEATHER]}, "tools"),
    (tool(name="calculate"), "tools"),
    ({"tools": [{"type": "custom", "name": "x"}]}, "tools.0"),
    (tool(), "tools.0"),
    (tool(name="über"), "tools.0.function.name"),
    (tool(name="x" * 65), "tools.0.function.name"),
    (tool(name="x", parameters=[]), "tools.0.function.parameters"),
    (tool(name="x", description=5), "tools.0.function.description"),
    ({"tools": [WEATHER], "tool_choice": "weather"}, "tool_choice"),
    (
        {
            "tools": [WEATHER],
            "tool_choice": {
                "type": "function",
                "function": {"name": "calculate"},
            },
        },
        "tool_choice",
    ),
    ({"tools": [tool(name=f"t{n}")["tools"][0] for n in range(129)]}, "tools"),
)


async def test_bad_tools_are_refused(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for body, param in BAD:
        for stream in (False, True):
            answer = await ask(daemon, stream=stream, **body)
            assert answer.status_code == 400, answer.text
            assert answer.json()["param"] == param
    assert daemon.model.requests == []


async def test_calls_that_nobody_answered_are_told_as_unknown(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    daemon.model.calls_all(*BOTH)
    message = choice_of(await ask(daemon, tools=[WEATHER]))["message"]
    later = [*HELLO, message, {"role": "user", "content": "never mind"}]
    assert (await ask(daemon, messages=later)).status_code == 200
    outputs = daemon.model.requests[-1].messages[2].parts
    assert [getattr(p, "is_error", None) for p in outputs] == [False, True]
    refused = await ask(daemon, messages=[*HELLO, message])
    assert refused.status_code == 400
