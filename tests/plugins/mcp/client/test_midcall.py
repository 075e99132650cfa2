"""Questions of older servers, which come in the midst of a call."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import ProviderFault, ToolOutput, Unavailable
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_mcp.client.inbox import Inbox, Pulse
from agenthost_mcp.client.midcall import Midcall
from agenthost_mcp.client.settings import McpServer

from .servers import NOBODY, PATIENCE, Fake, start, until
from .test_asking import MCP, request, waiting
from .test_sampling import ASKED

SAMPLE = {"method": "sampling/createMessage", "params": ASKED}
NAME = request(name={"type": "string"})
NO_METHOD, BAD_PARAMS, INTERNAL = -32601, -32602, -32603


async def older(
    daemons: Daemons, folder: Path, *tools: str, **more: Any
) -> tuple[RunningDaemon, Any, Fake]:
    fake = Fake(folder, "s", *(tools or ("interview",)))
    daemon = await start(daemons, fake, **more)
    made = await daemon.agent(tools=["mcp_*"], extra=MCP)
    return daemon, made, fake


def told(daemon: RunningDaemon) -> Any:
    """What the server heard to its questions, as it says."""
    (output,) = daemon.model.requests[-1].messages[-1].parts
    assert isinstance(output, ToolOutput)
    return json.loads(output.text)


async def answered(daemon: RunningDaemon, name: str) -> None:
    """Answer the open question with a name."""
    row = await waiting(daemon)
    keys = {key.split("_")[0]: key for key in row["schema"]["properties"]}
    values = {keys["send"]: True, keys["name"]: name}
    path = f"/api/approvals/{row['id']}/approve"
    said = await daemon.http.post(path, json={"values": values})
    assert said.status_code == 200, said.text


def calls(fake: Fake) -> list[dict[str, Any]]:
    return [each for each in fake.heard() if each.get("method") == "tools/call"]


def accepted(name: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


async def test_a_person_answers_and_the_call_is_made_anew(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, fake = await older(daemons, tmp_path, elicitation=True)
    daemon.model.calls("mcp_s_interview", ask=[NAME])
    path = f"/api/agents/{agent.id}/message"
    sent = await daemon.http.post(path, json={"message": "go"})
    assert sent.status_code == 202, sent.text
    first, *rest = [m for m in fake.heard() if m.get("method") == "initialize"]
    assert first["params"]["capabilities"] == {"elicitation": {"form": {}}}
    assert rest == []
    (call,) = calls(fake)
    await until(lambda: fake.heard()[-1].get("id") == 0)
    cancelled, dismissed = fake.heard()[-2:]
    assert cancelled["params"]["requestId"] == call["id"]
    assert dismissed["result"] == {"action": "cancel"}
    await answered(daemon, "Ada")
    await until(lambda: len(daemon.model.requests) == 2)
    assert told(daemon) == [accepted("Ada")]
    assert len(calls(fake)) == 2


async def test_the_same_words_twice_are_two_questions(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, fake = await older(daemons, tmp_path, elicitation=True)
    daemon.model.calls("mcp_s_interview", ask=[NAME, NAME])
    path = f"/api/agents/{agent.id}/message"
    sent = await daemon.http.post(path, json={"message": "go"})
    assert sent.status_code == 202, sent.text
    await answered(daemon, "Ada")
    await until(lambda: fake.heard()[-1].get("id") == 1)
    await answered(daemon, "Grace")
    await until(lambda: len(daemon.model.requests) == 2)
    assert told(daemon) == [accepted("Ada"), accepted("Grace")]


async def test_a_model_answers_while_the_call_waits_and_the_agent_pays(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, fake = await older(daemons, tmp_path, sampling=True)
    daemon.model.calls("mcp_s_interview", ask=[SAMPLE])
    daemon.model.says("Paris")
    daemon.model.says("It is Paris.")
    path = f"/api/agents/{agent.id}/message"
    sent = await daemon.http.post(path, json={"message": "canary"})
    assert sent.json()["response"] == "It is Paris."
    (answer,) = told(daemon)
    assert answer["content"] == {"type": "text", "text": "Paris"}
    assert (answer["role"], answer["stopReason"]) == ("assistant", "endTurn")
    assert "canary" not in str(daemon.model.requests[1].messages)
    rows = await daemon.daemon.store.read("SELECT agent_id, turn_id FROM usage")
    assert len(rows) == 3
    assert len({tuple(row) for row in rows}) == 1
    assert len(calls(fake)) == 1


async def test_a_model_may_take_longer_than_a_server_may_be_silent(
    daemons: Daemons, tmp_path: Path
) -> None:
    keys: dict[str, Any] = {"sampling": True, "timeout_secs": 1.5}
    daemon, agent, _ = await older(daemons, tmp_path, **keys)
    pause = Pause()
    daemon.model.calls("mcp_s_interview", ask=[SAMPLE])
    daemon.model.says(pause, "Paris")
    daemon.model.says("done")
    turn = asyncio.create_task(agent.ask("go"))
    await pause.reached.wait()
    await asyncio.sleep(1.6)
    pause.go_on()
    await turn
    assert told(daemon)[0]["content"]["text"] == "Paris"


async def test_what_is_not_offered_or_asked_wrongly_is_refused_by_its_code(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, _ = await older(daemons, tmp_path, sampling=True)
    tools = {**ASKED, "tools": [{"name": "x"}]}
    wrong = {"method": "sampling/createMessage", "params": tools}
    odd = {"method": ["sampling/createMessage"], "params": {}}
    daemon.model.calls("mcp_s_interview", ask=[NAME, wrong, odd])
    await agent.ask("go")
    codes = [each["code"] for each in told(daemon)]
    assert codes == [NO_METHOD, BAD_PARAMS, NO_METHOD]
    assert len(daemon.model.requests) == 2


async def test_a_page_to_visit_is_refused(daemons: Daemons, tmp_path: Path) -> None:
    daemon, agent, _ = await older(daemons, tmp_path, elicitation=True)
    daemon.model.calls("mcp_s_interview", ask=[request(mode="url"), SAMPLE])
    await agent.ask("go")
    assert [each["code"] for each in told(daemon)] == [BAD_PARAMS, NO_METHOD]


async def test_a_provider_that_fails_is_not_quoted(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, _ = await older(daemons, tmp_path, sampling=True)
    daemon.model.calls("mcp_s_interview", ask=[SAMPLE])
    daemon.model.fails(ProviderFault.AUTH)
    await agent.ask("go")
    (error,) = told(daemon)
    assert error == {"code": INTERNAL, "message": "there is no answer"}


async def test_so_many_are_answered_in_a_call_and_no_more(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, _ = await older(daemons, tmp_path, sampling=True)
    for _ in range(2):
        daemon.model.calls("mcp_s_interview", ask=[SAMPLE] * 33)
        for n in range(32):
            daemon.model.says(str(n))
    daemon.model.says("done")
    await agent.ask("go")
    for message in daemon.model.requests[-1].messages:
        for part in message.parts:
            if isinstance(part, ToolOutput):
                *good, last = json.loads(part.text)
                texts = [each["content"]["text"] for each in good]
                assert texts == [str(n) for n in range(32)]
                assert last["code"] == NO_METHOD


async def test_one_turn_is_served_after_the_other(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, fake = await older(daemons, tmp_path, sampling=True)
    other = await daemon.agent("other", tools=["mcp_*"], extra=MCP)
    pause = Pause()
    daemon.model.calls("mcp_s_interview", ask=[SAMPLE])
    daemon.model.says(pause, "an answer")
    first = asyncio.create_task(agent.ask("go"))
    await pause.reached.wait()
    daemon.model.calls("mcp_s_interview", ask=[SAMPLE])
    second = asyncio.create_task(other.ask("go"))
    await until(lambda: len(daemon.model.requests) == 3)
    await asyncio.sleep(0.3)
    assert len(calls(fake)) == 1
    pause.go_on()
    await asyncio.gather(first, second)
    assert len(calls(fake)) == 2
    rows = await daemon.daemon.store.read("SELECT agent_id FROM usage")
    paid = [row["agent_id"] for row in rows]
    assert sorted(map(paid.count, {agent.id, other.id})) == [3, 3]


async def test_who_cannot_be_served_in_time_sends_nothing() -> None:
    transport = {"type": "stdio", "command": "x"}
    said = {"name": "s", "transport": transport, "max_call_secs": 0.1}
    connection: Any = SimpleNamespace(reply=None)
    server = McpServer.model_validate(said)
    midcall = Midcall(server, connection, Inbox(lambda: None))
    begun, free = asyncio.Event(), asyncio.Event()
    sent: list[str] = []

    async def first() -> dict[str, Any]:
        begun.set()
        await free.wait()
        return {"first": True}

    async def second() -> dict[str, Any]:
        sent.append("second")
        return {}

    calling = asyncio.create_task(midcall.call("t", NOBODY, Pulse(60), first))
    await begun.wait()
    with pytest.raises(Unavailable, match="nothing was sent"):
        await midcall.call("t", NOBODY, Pulse(60), second)
    assert sent == []
    free.set()
    assert await calling == {"first": True}
    assert await midcall.call("t", NOBODY, Pulse(60), second) == {}


async def test_a_question_that_is_taken_back_costs_no_more(
    daemons: Daemons, tmp_path: Path
) -> None:
    daemon, agent, fake = await older(daemons, tmp_path, "change_mind", sampling=True)
    daemon.model.calls("mcp_s_change_mind", ask=[SAMPLE])
    daemon.model.says(Pause())
    daemon.model.says("done")
    async with asyncio.timeout(PATIENCE):
        await agent.ask("go")
    assert told(daemon) == "p"
    assert [m for m in fake.heard() if m.get("id") == "q"] == []
