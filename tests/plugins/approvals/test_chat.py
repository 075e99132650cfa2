"""Answers in a chat: of the agent that is talked to, by who may answer."""

from __future__ import annotations

import pytest
from agenthost import TurnState
from agenthost.testing import Daemons
from websockets.asyncio.client import connect

from tests.plugins.http_api.test_socket import Client, chat
from tests.plugins.keys.conftest import MASTER, bearer, made

from .stage import TOOLS, Shop, ask, ends, listed, results, waits
from .test_answers import ADDRESS, paying


async def test_register_chat_command_shows_and_answers_what_waits(
    daemons: Daemons, shop: Shop
) -> None:
    shop.asks["pay"] = ask("Where ``` to?", schema=ADDRESS)
    daemon, agent, told = await paying(daemons, shop)
    short = told["approval_id"][:8]
    async with chat(agent) as client:
        await client.say("/approvals")
        (frame,) = await client.until("response")
        assert frame["content"].startswith("````\n")
        assert "question: Where ``` to?" in frame["content"]
        assert f"/approve {short}" in frame["content"]
        for line, problem in (
            ("/approve", "name the question"),
            ("/approve a", "name the question"),
            ("/approve zzzzzzzz", "not found"),
            (f"/approve {short}", "values.street"),
            (f"/approve {short} number=x", "values.number"),
            (f"/approve {short} street='x", "quotes"),
            (f"/deny {short} {'x' * 1001}", "at most 1000"),
        ):
            await client.say(line)
            (frame,) = await client.until("error")
            assert problem in frame["content"], line
        assert shop.runs == []
        await client.say(f'/approve {short} street="Main 1" number=3')
        (frame,) = await client.until("response")
        assert frame["content"] == "Approved: pay goes on."
        await ends(daemon, told["turn_id"], TurnState.DONE)
        await client.say("/approvals")
        (frame,) = await client.until("response")
        assert frame["content"] == "Nothing waits for an answer."
    assert shop.answers == [{"street": "Main 1", "number": 3}]


async def test_a_no_in_a_chat_says_why(daemons: Daemons, shop: Shop) -> None:
    daemon, agent, told = await paying(daemons, shop)
    async with chat(agent) as client:
        await client.say(f"/deny {told['approval_id']} it's too dear")
        (frame,) = await client.until("response")
    assert frame["content"] == "Denied: pay does not run."
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert results(daemon) == ["pay failed: a person said no: it's too dear"]


async def test_a_chat_answers_for_its_own_agent_alone(
    daemons: Daemons, shop: Shop
) -> None:
    daemon, _, told = await paying(daemons, shop)
    async with chat(await daemon.agent("other")) as client:
        await client.say(f"/approve {told['approval_id']}")
        (frame,) = await client.until("error")
        assert "not found" in frame["content"]
        await client.say("/approvals")
        (frame,) = await client.until("response")
    assert frame["content"] == "Nothing waits for an answer."
    assert shop.runs == []


@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_who_may_only_chat_answers_nothing(
    daemons: Daemons, shop: Shop, verb: str
) -> None:
    config = f'api_key = "{MASTER}"\n'
    daemon = await daemons.start(config=config, plugins=shop.plugins)
    daemon.http.headers.update(bearer(MASTER))
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    told = await waits(agent, "pay")
    key = await made(daemon, "guest", "chat")
    url = f"{daemon.url.replace('http', 'ws')}/api/agents/{agent.id}/ws"
    headers = key.headers
    async with connect(url, proxy=None, additional_headers=headers) as connection:
        client = Client(connection)
        await client.until("connected")
        await client.say(f"/{verb} {told['approval_id']}")
        (frame,) = await client.until("error")
        assert "no right" in frame["content"]
        await client.say("/approvals")
        (frame,) = await client.until("response")
        assert "Shall it be paid?" in frame["content"]
    assert (await listed(daemon))[0]["state"] == "pending"
