"""Questions of servers: a person answers them, or nobody is asked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agenthost import Asked, InvalidInput, ToolOutput
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_mcp.client.asking import responses

from .servers import PATIENCE, Fake, start, until

MCP = 'mcp_servers = ["*"]'


class Here:
    """As much of a context as is asked for."""

    agent: Any = "agent"
    turn_id: str | None = "turn"

    def __init__(self, **answers: Any) -> None:
        self.answers = answers


def request(message: str = "Who?", mode: str = "form", **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": []}
    params = {"mode": mode, "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def asked_by(requests: Any, **answers: Any) -> dict[str, Any]:
    """The schema that a person is asked with."""
    here: Any = Here(**answers)
    with pytest.raises(Asked) as raised:
        responses("s", "t", here, requests)
    (ask,) = raised.value.asks
    assert ask.question.schema is not None
    return dict(ask.question.schema["properties"])


async def pending(daemon: RunningDaemon) -> list[dict[str, Any]]:
    answer = await daemon.http.get("/api/approvals?state=pending")
    return list(answer.json()["approvals"])


async def waiting(daemon: RunningDaemon) -> dict[str, Any]:
    """The one question that is open."""
    async with asyncio.timeout(PATIENCE):
        # A question is open a little after its server has heard that it must wait.
        while not (rows := await pending(daemon)):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
    (row,) = rows
    found = await daemon.http.get(f"/api/approvals/{row['id']}")
    return dict(found.json())


@pytest.mark.setting("mcp_servers[].elicitation")
async def test_a_person_answers_what_a_server_asks(
    daemons: Daemons, tmp_path: Path
) -> None:
    fake = Fake(tmp_path, "s", "wonder", modern=True)
    daemon = await start(daemons, fake, elicitation=True)
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    daemon.model.calls("mcp_s_wonder", a=1)
    sent = await daemon.http.post(
        f"/api/agents/{agent.id}/message", json={"message": "go"}
    )
    assert sent.status_code == 202, sent.text
    row = await waiting(daemon)
    question = row["question"]
    assert "The MCP server s asks, before wonder answers: Who are you?" in str(question)
    names = {name.split("_")[0]: name for name in row["schema"]["properties"]}
    values = {names["send"]: True, names["name"]: "Ada"}
    path = f"/api/approvals/{row['id']}/approve"
    said = await daemon.http.post(path, json={"values": values})
    assert said.status_code == 200, said.text
    await until(lambda: len(daemon.model.requests) == 2)
    (output,) = daemon.model.requests[-1].messages[-1].parts
    assert isinstance(output, ToolOutput)
    content = {"name": "Ada", "age": 30}
    told = {"who": {"action": "accept", "content": content}}
    assert json.loads(output.text) == [told, "kept"]
    calls = [m for m in fake.heard() if m["method"] == "tools/call"]
    meta = calls[0]["params"]["_meta"]
    able = meta["io.modelcontextprotocol/clientCapabilities"]
    assert able == {"elicitation": {"form": {}}}
    assert len({call["id"] for call in calls}) == len(calls)


async def test_a_server_that_may_not_ask_is_told_so_and_refused(
    daemons: Daemons, tmp_path: Path
) -> None:
    fake = Fake(tmp_path, "s", "wonder", modern=True)
    daemon = await start(daemons, fake)
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    daemon.model.calls("mcp_s_wonder")
    await agent.ask("go")
    (output,) = daemon.model.requests[-1].messages[-1].parts
    assert isinstance(output, ToolOutput)
    assert output.is_error
    assert "not offered" in output.text
    (call,) = (m for m in fake.heard() if m["method"] == "tools/call")
    meta = call["params"]["_meta"]
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}


def test_an_answer_to_one_question_is_none_to_another() -> None:
    first = asked_by({"k": request("Who?", name={"type": "string"})})
    values = {name: True if name.startswith("send") else "Ada" for name in first}
    second = asked_by({"k": request("Where?", name={"type": "string"})}, **values)
    assert not first.keys() & second.keys()


@pytest.mark.parametrize(
    "items",
    [
        {"type": "string", "enum": ["a", "b", "c"]},
        {"anyOf": [{"const": each, "title": each.upper()} for each in "abc"]},
    ],
)
def test_several_values_are_chosen_one_by_one(items: dict[str, Any]) -> None:
    field = {"type": "array", "title": "Letters", "items": items, "default": ["b"]}
    requests = {"k": request(letters=field)}
    asked = asked_by(requests)
    send, *boxes = asked
    titles = [asked[box]["title"] for box in boxes]
    assert [title.lower() for title in titles] == [f"letters: {c}" for c in "abc"]
    assert ("anyOf" in items) == titles[0].endswith("A")
    assert [asked[box]["default"] for box in boxes] == [False, True, False]
    for said, letters in (
        ({}, ["b"]),
        ({boxes[0]: True}, ["a", "b"]),
        ({boxes[1]: False, boxes[2]: True}, ["c"]),
        ({boxes[1]: False}, []),
    ):
        here: Any = Here(**{send: True, **said})
        answer = {"action": "accept", "content": {"letters": letters}}
        assert responses("s", "t", here, requests) == {"k": answer}


def test_what_is_not_sent_is_declined_and_so_is_a_call_nobody_can_wait_for() -> None:
    requests = {"k": request(name={"type": "string"})}
    (send,) = (name for name in asked_by(requests) if name.startswith("send"))
    refused: Any = Here(**{send: False})
    declined = {"k": {"action": "decline"}}
    assert responses("s", "t", refused, requests) == declined
    alone: Any = Here()
    alone.turn_id = None
    assert responses("s", "t", alone, requests) == declined


@pytest.mark.parametrize(
    "requests",
    [
        None,
        {},
        {"k": 1},
        {"k": {"method": "sampling/createMessage", "params": {}}},
        {"k": request(mode="url")},
        {"k": {"method": "elicitation/create", "params": {"message": "Who?"}}},
        {"k": request(name=1)},
        {"k": request(of={"type": "array", "items": {"type": "string"}})},
        {"k": request(of={"type": "array", "items": {"enum": []}})},
        {"k": request(of={"type": "array", "items": {"enum": [1]}})},
        {"k": request(of={"type": "array", "items": {"enum": ["a"] * 51}})},
    ],
)
def test_what_is_not_offered_is_refused(requests: Any) -> None:
    here: Any = Here()
    with pytest.raises(InvalidInput):
        responses("s", "t", here, requests)
