"""How answers end and what models think, as clients are told."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from agenthost import ProviderFault, TurnEnded
from agenthost.testing.daemons import RunningAgent, RunningDaemon

from .test_socket import chat

STREAMED = "[thinking]\nstream_thinking = true\n"
Events = list[tuple[str, dict[str, Any]]]


async def read(answer: httpx.Response) -> Events:
    """Read a stream's events."""
    assert answer.status_code == 200, answer.text
    found, name = [], ""
    for line in answer.text.splitlines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            found.append((name, json.loads(line.removeprefix("data: "))))
    return found


async def stream(agent: RunningAgent, **query: str) -> Events:
    """Send a message and read its events."""
    path = f"/api/agents/{agent.id}/message/stream"
    return await read(
        await agent.host.http.post(path, json={"message": "go"}, params=query)
    )


def thoughts(events: Events) -> str:
    return "".join(data["content"] for name, data in events if name == "thinking")


def cut(daemon: RunningDaemon) -> None:
    daemon.model.is_cut("Half of")


def blocked(daemon: RunningDaemon) -> None:
    daemon.model.is_blocked("Half of")


@pytest.mark.parametrize(
    ("write", "finish"), [(cut, "length"), (blocked, "content_filter")]
)
async def test_every_surface_tells_how_an_answer_ended(
    daemon: RunningDaemon, write: Any, finish: str
) -> None:
    heard: list[TurnEnded] = []
    daemon.daemon.events.subscribe(heard.append, TurnEnded)
    agent = await daemon.agent()
    write(daemon)
    assert (await agent.send("go")).json()["finish"] == finish
    write(daemon)
    assert (await stream(agent))[-1][1]["finish"] == finish
    write(daemon)
    async with chat(agent) as client:
        await client.say("go")
        assert (await client.until("response"))[-1]["finish"] == finish
    messages = (await agent.session())["messages"]
    assert [m.get("finish") for m in messages] == [None, finish] * 3
    assert [event.finish for event in heard] == [finish] * 3
    path = f"/api/sessions/{(await agent.session())['session_id']}/export"
    exported = await daemon.http.get(path, params={"format": "markdown"})
    assert exported.text.count(f"ended by {finish}") == 3


async def test_a_key_repeats_how_its_answer_ended(daemon: RunningDaemon) -> None:
    daemon.model.is_cut("Half of")
    agent = await daemon.agent()
    first = await agent.send("go", Idempotency_Key="k")
    again = await agent.send("go", Idempotency_Key="k")
    assert first.json() == again.json()
    assert again.json()["finish"] == "length"


async def test_a_turn_that_failed_ends_with_no_reason(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.fails(ProviderFault.BAD_REQUEST, "half")
    events = await stream(await daemon.agent())
    assert [name for name, _ in events[-2:]] == ["error", "done"]
    assert "finish" not in events[-1][1]


async def test_a_stream_that_is_cut_before_a_word_says_so(
    daemon: RunningDaemon,
) -> None:
    daemon.model.is_cut()
    daemon.model.is_cut()
    events = await stream(await daemon.agent())
    assert [name for name, _ in events] == ["error", "done"]
    assert events[0][1]["code"] == "cut_short"
    assert events[1][1]["finish"] == "length"


@pytest.mark.manifest("thinking.stream_thinking")
@pytest.mark.parametrize(
    ("extra", "query", "told"),
    [
        ("", {}, ""),
        ("", {"thinking": "true"}, "so \u2028 be it"),
        (STREAMED, {}, "so \u2028 be it"),
        (STREAMED, {"thinking": "false"}, ""),
    ],
)
async def test_a_stream_tells_thoughts_where_asked_or_by_default(
    daemon: RunningDaemon, extra: str, query: dict[str, str], told: str
) -> None:
    daemon.model.thinks("so \u2028", " be it", then="yes")
    events = await stream(await daemon.agent(extra=extra), **query)
    assert thoughts(events) == told
    assert events[-2] == ("chunk", {"content": "yes", "done": False})


@pytest.mark.parametrize("asked", [True, False, None])
async def test_a_socket_tells_thoughts_where_asked(
    daemon: RunningDaemon, *, asked: bool | None
) -> None:
    daemon.model.thinks("so ", "be it", then="yes")
    async with chat(await daemon.agent()) as client:
        await client.send({"type": "message", "content": "go", "thinking": asked})
        frames = await client.until("response")
    first, *rest = [f for f in frames if f["type"] == "thinking"]
    assert "content" not in first
    assert "".join(frame["content"] for frame in rest) == ("so be it" if asked else "")


@pytest.mark.parametrize("asked", ["true", 1, [], {}])
async def test_a_wrong_wish_starts_nothing(daemon: RunningDaemon, asked: Any) -> None:
    agent = await daemon.agent()
    async with chat(agent) as client:
        await client.send({"type": "message", "content": "go", "thinking": asked})
        (frame,) = await client.until("error")
    assert "thinking" in frame["content"]
    assert (await agent.session())["messages"] == []


async def test_thoughts_are_not_told_again(daemon: RunningDaemon) -> None:
    daemon.model.thinks("so be it", then="yes")
    agent = await daemon.agent()
    await agent.send("go", Idempotency_Key="k")
    turn_id = (await agent.session())["messages"][-1]["turn_id"]
    path = f"/api/agents/{agent.id}/message/stream"
    query = {"turn": turn_id, "thinking": "true"}
    events = await read(await daemon.http.get(path, params=query))
    assert [name for name, _ in events] == ["chunk", "done"]
