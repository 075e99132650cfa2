"""Servers that offer tools of their own to the model they have asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    InvalidInput,
    Role,
    Text,
    ToolOutput,
    ToolUse,
    Unavailable,
)
from agenthost.testing.daemons import Daemons
from agenthost_mcp.client.sampling import request_of
from agenthost_mcp.client.sampling_tools import told_of

from .test_sampling import ASKED, DOT, HI, dreaming, outcome, target

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER: dict[str, Any] = {
    "name": "weather",
    "description": "Tells it.",
    "inputSchema": SCHEMA,
}
USE: dict[str, Any] = {
    "type": "tool_use",
    "id": "c1",
    "name": "weather",
    "input": {"city": "Rom"},
}
FINE = {"type": "text", "text": "sunny"}
RESULT: dict[str, Any] = {"type": "tool_result", "toolUseId": "c1", "content": [FINE]}
CALLED = {"role": "assistant", "content": [FINE, USE]}
DONE = {"role": "user", "content": [RESULT]}
LOOP: dict[str, Any] = {**ASKED, "tools": [WEATHER], "messages": [HI, CALLED, DONE]}


async def test_a_model_calls_the_servers_tools_and_not_the_agents(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, _ = await dreaming(daemons, tmp_path, sampling=True)
    first = {**ASKED, "tools": [WEATHER], "toolChoice": {"mode": "required"}}
    daemon.model.calls("mcp_s_dream", ask={"one": first})
    daemon.model.calls("weather", city="Rom")
    daemon.model.says("done")
    await agent.ask("go")
    request = daemon.model.requests[1]
    assert request.tool_choice == "required"
    (shown,) = request.tools
    assert (shown.name, shown.description) == ("weather", "Tells it.")
    assert shown.parameters == SCHEMA
    told = json.loads(outcome(daemon).text)["one"]
    (use,) = told["content"]
    assert (use["type"], use["name"]) == ("tool_use", "weather")
    assert use["input"] == {"city": "Rom"}
    assert use["id"]
    assert (told["role"], told["stopReason"]) == ("assistant", "toolUse")
    rows = await daemon.daemon.store.read("SELECT agent_id, turn_id FROM usage")
    assert len(rows) == 3
    assert len({tuple(row) for row in rows}) == 1


async def test_a_call_of_what_was_not_offered_reaches_no_server(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, fake = await dreaming(daemons, tmp_path, sampling=True)
    daemon.model.calls("mcp_s_dream", ask={"one": {**ASKED, "tools": [WEATHER]}})
    daemon.model.calls("mcp_s_dream", ask={})
    daemon.model.says("then not")
    await agent.ask("go")
    assert "was not offered" in outcome(daemon).text
    assert len([m for m in fake.heard() if m["method"] == "tools/call"]) == 1


def test_what_was_called_before_is_read_with_its_results() -> None:
    more: dict[str, Any] = {**RESULT, "isError": True, "structuredContent": {"t": 30}}
    more["content"] = [FINE, DOT]
    messages = [HI, CALLED, by("user", more)]
    request = request_of({**LOOP, "messages": messages}, target(vision=True))
    roles = [each.role for each in request.messages]
    assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert request.messages[1].parts == (
        Text("sunny"),
        ToolUse("c1", "weather", {"city": "Rom"}),
    )
    (output,) = request.messages[2].parts
    assert isinstance(output, ToolOutput)
    assert (output.id, output.name, output.is_error) == ("c1", "weather", True)
    assert output.text == 'sunny\n[image: image/png]\n{"t": 30}'
    assert output.structured == {"t": 30}
    assert len(output.images) == 1


def test_a_model_chooses_by_itself_where_nothing_is_said() -> None:
    assert request_of(LOOP, target()).tool_choice == "auto"
    none = {**LOOP, "toolChoice": {"mode": "none"}}
    assert request_of(none, target()).tool_choice == "none"
    assert request_of({**ASKED, "toolChoice": {}}, target()).tool_choice == ""


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"tools": "weather"}, "tools"),
        ({"tools": [WEATHER] * 2}, "tools"),
        ({"tools": [{**WEATHER, "name": f"w{n}"} for n in range(65)]}, "tools"),
        ({"tools": [{"name": "x"}]}, "tools"),
        ({"tools": [{**WEATHER, "name": "no name"}]}, "tools"),
        ({"tools": [{**WEATHER, "name": "x" * 65}]}, "tools"),
        ({"tools": [{**WEATHER, "description": 7}]}, "tools"),
        ({"tools": [{**WEATHER, "description": "x" * 100_001}]}, "messages"),
        ({"toolChoice": {"mode": "weather"}}, "toolChoice"),
        ({"toolChoice": {"mode": ["auto"]}}, "toolChoice"),
        ({"toolChoice": "some"}, "toolChoice"),
        ({"tools": [], "toolChoice": {"mode": "required"}}, "toolChoice"),
    ],
)
def test_tools_that_are_asked_for_wrongly_are_refused(said: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        request_of({**LOOP, **said}, target())
    assert raised.value.field == field


def by(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


LONG = "x" * 100_000


@pytest.mark.parametrize(
    "messages",
    [
        [HI, CALLED],
        [HI, CALLED, HI],
        [HI, CALLED, CALLED, DONE],
        [HI, DONE],
        [DONE],
        [HI, CALLED, DONE, DONE],
        [HI, CALLED, by("user", RESULT, FINE)],
        [HI, CALLED, by("user", RESULT, RESULT)],
        [HI, CALLED, by("user", {**RESULT, "toolUseId": 1})],
        [HI, CALLED, by("user", {**RESULT, "toolUseId": "c2"})],
        [HI, by("assistant", USE, USE), by("user", RESULT, RESULT)],
        [HI, by("assistant", USE, USE), DONE],
        [
            HI,
            by("assistant", {**USE, "id": ""}),
            by("user", {**RESULT, "toolUseId": ""}),
        ],
        [HI, by("assistant", {**USE, "name": "a b"}), DONE],
        [HI, by("assistant", {**USE, "input": "Rom"}), DONE],
        [by("user", USE)],
        [HI, by("assistant", RESULT), HI],
        [HI, CALLED, by("user", {**RESULT, "content": [{"type": "audio"}]})],
        [HI, by("assistant", {**USE, "input": {"a": LONG}}), DONE],
        [HI, CALLED, by("user", {**RESULT, "structuredContent": LONG})],
    ],
)
def test_calls_and_results_that_do_not_belong_together_are_refused(
    messages: Any,
) -> None:
    with pytest.raises(InvalidInput) as raised:
        request_of({**LOOP, "messages": messages}, target())
    assert raised.value.field == "messages"


def test_a_model_that_calls_no_tools_is_given_none() -> None:
    with pytest.raises(InvalidInput, match="calls none"):
        request_of(LOOP, target(supports_tools=False))


@pytest.mark.parametrize(
    "use", [ToolUse("1", "other", {}), ToolUse("1", "weather", {}, malformed="no JSON")]
)
def test_a_call_that_cannot_be_made_is_not_told(use: ToolUse) -> None:
    tools = request_of(LOOP, target()).tools
    assert told_of([], tools) == []
    with pytest.raises(Unavailable):
        told_of([use], tools)
