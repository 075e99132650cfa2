"""The WebSocket: every message type, every command, and stop during a turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agenthost import ProviderFault
from agenthost.testing import Pause
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus


class Client:
    """A chat client that speaks JSON."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def say(self, content: str) -> None:
        await self.send({"type": "message", "content": content})

    async def send(self, frame: Any) -> None:
        await self._connection.send(json.dumps(frame))

    async def send_text(self, text: str) -> None:
        await self._connection.send(text)

    async def until(self, kind: str) -> list[dict[str, Any]]:
        frames = []
        while True:
            async with asyncio.timeout(20):
                frame = json.loads(await self._connection.recv())
            if frame["type"] == "agents_updated" and kind != "agents_updated":
                continue
            frames.append(frame)
            if frame["type"] == kind:
                return frames


@asynccontextmanager
async def chat(agent: RunningAgent) -> AsyncIterator[Client]:
    url = agent.host.url.replace("http", "ws") + f"/api/agents/{agent.id}/ws"
    async with connect(url, proxy=None) as connection:
        client = Client(connection)
        (hello,) = await client.until("connected")
        assert hello["agent_id"] == agent.id
        yield client


async def test_a_message_streams_and_ends_with_totals(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("It is ", "42.")
    async with chat(await daemon.agent()) as client:
        await client.say("6*7?")
        frames = await client.until("response")
    kinds = [frame["type"] for frame in frames]
    assert kinds[0] == "thinking"
    assert (
        kinds.index("tool_start") < kinds.index("tool_end") < kinds.index("text_delta")
    )
    assert frames[-1].pop("turn_id") == frames[0]["turn_id"]
    assert frames[-1] == {
        "type": "response",
        "content": "It is 42.",
        "input_tokens": 20,
        "output_tokens": 10,
        "iterations": 2,
        "cost_usd": 0.00004,
        "finish": "stop",
    }


@pytest.mark.parametrize("text", ["just words", '{"no": "type"}', "[1]"])
async def test_text_that_is_no_frame_is_a_message(
    daemon: RunningDaemon, text: str
) -> None:
    async with chat(await daemon.agent()) as client:
        await client.send_text(text)
        frames = await client.until("response")
    assert frames[-1]["content"] == f"You said: {text}"


async def test_ping_and_stop_work_during_a_turn(daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says("one", pause, "two")
    async with chat(await daemon.agent()) as client:
        await client.say("count")
        await client.until("text_delta")
        await client.send({"type": "ping"})
        await client.until("pong")
        await client.say("/stop")
        frames = await client.until("error")
        assert frames[-1]["code"] == "cancelled"


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"type": "message", "content": ""}, "message"),
        ({"type": "message", "content": 5}, "content"),
        ({"type": "message"}, "content"),
        ({"type": "dance"}, "type"),
        ({"type": "message", "content": "/danse"}, "unknown command"),
    ],
)
async def test_a_bad_frame_is_answered_and_the_chat_goes_on(
    daemon: RunningDaemon, frame: dict[str, Any], words: str
) -> None:
    async with chat(await daemon.agent()) as client:
        await client.send(frame)
        frames = await client.until("error")
        assert words in frames[-1]["content"]
        await client.say("still here")
        await client.until("response")


async def test_a_failed_turn_is_an_error_frame(daemon: RunningDaemon) -> None:
    daemon.model.fails(ProviderFault.BAD_REQUEST)
    async with chat(await daemon.agent()) as client:
        await client.say("hello")
        frames = await client.until("error")
    assert frames[-1]["code"] == "bad_request"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/new", "new session"),
        ("/compact", "nothing to compact"),
        ("/model", "scripted-model"),
        ("/model other", "other"),
        ("/stop", "Nothing was running"),
        ("/usage", "tokens"),
        ("/think", "on"),
        ("/models", "scripted-model"),
        ("/providers", "offline"),
    ],
)
async def test_every_command_answers_with_a_response_frame(
    daemon: RunningDaemon, command: str, words: str
) -> None:
    async with chat(await daemon.agent()) as client:
        await client.say(command)
        (frame,) = await client.until("response")
    assert words in frame["content"]
    assert (frame["input_tokens"], frame["iterations"]) == (0, 0)
    assert daemon.model.requests == []


async def test_think_reaches_the_model(daemon: RunningDaemon) -> None:
    async with chat(await daemon.agent()) as client:
        await client.say("/think")
        await client.until("response")
        await client.say("ponder")
        await client.until("response")
        await client.say("/think")
        await client.until("response")
        await client.say("chat")
        await client.until("response")
    budgets = [request.thinking_budget for request in daemon.model.requests]
    assert budgets[0]
    assert budgets[1] is None


async def test_agents_are_told_every_few_seconds(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_http_api.socket.UPDATE_SECONDS", 0.01)
    monkeypatch.setattr("agenthost_http_api.roster.UPDATE_SECONDS", 0.01)
    agent = await daemon.agent()
    async with chat(agent) as client:
        frames = await client.until("agents_updated")
    (row,) = frames[-1]["agents"]
    assert row["id"] == agent.id
    assert {"name", "state", "model_provider", "model_name"} <= set(row)


@pytest.mark.parametrize(
    ("agent_id", "status"),
    [("nonsense", 400), ("11111111-2222-4333-8444-555555555555", 404)],
)
async def test_an_upgrade_for_no_agent_is_refused_in_json(
    daemon: RunningDaemon, agent_id: str, status: int
) -> None:
    url = daemon.url.replace("http", "ws") + f"/api/agents/{agent_id}/ws"
    with pytest.raises(InvalidStatus) as refused:
        await connect(url, proxy=None)
    assert refused.value.response.status_code == status
    assert "error" in json.loads(refused.value.response.body)


async def test_leaving_leaves_the_turn_running(daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says("one", pause, "two")
    agent = await daemon.agent()
    async with chat(agent) as client:
        await client.say("count")
        (*_, delta) = await client.until("text_delta")
    session = await agent.session()
    assert session["messages"][0]["status"] == "running"
    async with chat(agent) as client:
        turn_id = session["messages"][0]["turn_id"]
        assert turn_id == delta["turn_id"]
        await client.send({"type": "attach", "turn_id": turn_id})
        (again,) = await client.until("text_delta")
        assert (again["content"], again["offset"]) == ("one", 3)
        pause.go_on()
        frames = await client.until("response")
    assert [f["content"] for f in frames if f["type"] == "text_delta"] == ["two"]
    messages = (await agent.session())["messages"]
    assert [m["content"] for m in messages] == ["count", "onetwo"]
    assert [m["status"] for m in messages] == ["complete", "complete"]


async def test_thinking_comes_first_on_a_warm_session_too(
    daemon: RunningDaemon,
) -> None:
    async with chat(await daemon.agent()) as client:
        for _ in range(5):
            await client.say("hello")
            frames = await client.until("response")
            assert frames[0]["type"] == "thinking"


async def test_the_clients_own_id_comes_back(daemon: RunningDaemon) -> None:
    async with chat(await daemon.agent()) as client:
        await client.send({"type": "message", "content": "hello", "id": "m1"})
        frames = await client.until("response")
        assert {frame["id"] for frame in frames} == {"m1"}


async def test_another_socket_is_told_of_a_turn_and_reads_it(
    daemon: RunningDaemon,
) -> None:
    pause = Pause()
    daemon.model.says("one", pause, "two")
    agent = await daemon.agent()
    async with chat(agent) as first, chat(agent) as second:
        await second.send({"type": "follow"})
        await second.send({"type": "ping"})
        await second.until("pong")
        await first.say("count")
        (told,) = await second.until("turn_started")
        assert told["content"] == "count"
        await second.send({"type": "attach", "turn_id": told["turn_id"], "offset": 0})
        pause.go_on()
        words = [f.get("content") for f in await second.until("response")]
        assert words[-1] == "onetwo"
        await first.until("response")


async def test_a_failed_turn_is_resumed(daemon: RunningDaemon) -> None:
    daemon.model.fails(ProviderFault.SERVER, "half")
    agent = await daemon.agent()
    async with chat(agent) as client:
        await client.say("hello")
        failed = (await client.until("error"))[-1]
        await client.send({"type": "resume", "turn_id": failed["turn_id"]})
        answer = (await client.until("response"))[-1]
        assert answer["content"] == "You said: hello"
        assert answer["turn_id"] == failed["turn_id"]
    said = (await agent.session())["messages"]
    assert [m["content"] for m in said] == ["hello", "You said: hello"]


async def test_a_deeply_nested_frame_is_a_message(daemon: RunningDaemon) -> None:
    async with chat(await daemon.agent()) as client:
        await client.send_text("[" * 50_000)
        frames = await client.until("response")
    assert frames[-1]["content"].startswith("You said: [[[")
    assert daemon.daemon.front.panics == 0


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"type": "attach"}, "turn_id"),
        ({"type": "attach", "turn_id": "x", "offset": -1}, "offset"),
        ({"type": "attach", "turn_id": "nobody"}, "turn not found"),
        ({"type": "resume", "turn_id": "nobody"}, "turn not found"),
    ],
)
async def test_a_wrong_attach_is_answered(
    daemon: RunningDaemon, frame: dict[str, Any], words: str
) -> None:
    async with chat(await daemon.agent()) as client:
        await client.send(frame)
        frames = await client.until("error")
    assert words in frames[-1]["content"]


async def test_the_list_of_agents_is_made_once_for_all_sockets(
    daemon: RunningDaemon,
) -> None:
    from agenthost_http_api.roster import Roster

    await daemon.agent()
    roster = Roster()
    first = roster.frame(daemon.daemon)
    assert roster.frame(daemon.daemon) is first
    phases = [roster.phase() for _ in range(10)]
    assert len({round(phase) for phase in phases}) >= 4
    assert all(0 <= phase < 5 for phase in phases)


async def test_the_socket_of_a_deleted_agent_is_closed(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost_http_api.socket.UPDATE_SECONDS", 0.01)
    monkeypatch.setattr("agenthost_http_api.roster.UPDATE_SECONDS", 0.01)
    agent = await daemon.agent()
    async with chat(agent) as client:
        await daemon.http.delete(f"/api/agents/{agent.id}")
        (error,) = await client.until("error")
    assert error["code"] == "not_found"


async def test_a_message_that_is_too_long_is_refused_and_the_chat_goes_on(
    daemon: RunningDaemon,
) -> None:
    async with chat(await daemon.agent()) as client:
        await client.send({"type": "message", "content": "x" * 65_537, "id": "m2"})
        (refused,) = await client.until("error")
        assert (refused["id"], refused["code"]) == ("m2", "too_large")
        await client.say("shorter")
        await client.until("response")
