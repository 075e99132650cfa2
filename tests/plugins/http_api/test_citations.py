"""The pages that an answer rests on are told wherever the answer is."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import pytest
from agenthost import (
    Citation,
    Completion,
    Delta,
    Finish,
    Message,
    ModelCall,
    Role,
    Text,
    TextChunk,
)
from agenthost.testing.daemons import Daemons, RunningAgent
from websockets.asyncio.client import connect

from tests.plugins.models.upstream import USAGE, Upstream

PAGES = (Citation("https://a.example/x", "A page"), Citation("http://b.example"))
TOLD = [
    {"url": "https://a.example/x", "title": "A page"},
    {"url": "http://b.example", "title": ""},
]


class Citing(Upstream):
    """A provider that searches the web."""

    async def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        self.requests.append(call.request)
        yield TextChunk("so [1]")
        parts = (Text("so [1]", PAGES),)
        yield Completion(Message(Role.ASSISTANT, parts), Finish.STOP, USAGE)


@pytest.fixture
async def agent(daemons: Daemons) -> RunningAgent:
    """An agent whose provider cites pages."""
    daemon = await daemons.start(plugins=[Citing("citing").plugin])
    return await daemon.agent(tools=[], extra='[model]\nprovider = "citing"\n')


async def test_an_answer_and_its_repetition_tell_the_pages(agent: RunningAgent) -> None:
    path = f"/api/agents/{agent.id}/message"
    for _ in range(2):
        answer = await agent.host.http.post(
            path, json={"message": "why?"}, headers={"Idempotency-Key": "one"}
        )
        assert answer.json()["citations"] == TOLD
    (_, said) = (await agent.session())["messages"]
    assert said["citations"] == TOLD


async def test_the_last_event_of_a_stream_tells_the_pages(agent: RunningAgent) -> None:
    path = f"/api/agents/{agent.id}/message/stream"
    answer = await agent.host.http.post(path, json={"message": "why?"})
    (last,) = (
        json.loads(event.partition("data: ")[2])
        for event in answer.text.split("\n\n")
        if "event: done" in event
    )
    assert last["citations"] == TOLD


async def test_the_frame_of_an_answer_tells_the_pages(agent: RunningAgent) -> None:
    address = f"{agent.host.url.replace('http', 'ws')}/api/agents/{agent.id}/ws"
    async with connect(address) as socket:
        await socket.send(json.dumps({"type": "message", "content": "why?"}))
        while (frame := json.loads(await socket.recv()))["type"] != "response":
            pass
    assert frame["citations"] == TOLD
