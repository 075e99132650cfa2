"""Chat commands are offers: those of plugins beside those that every chat has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
from agenthost import Agent, ChatCommand, InvalidInput, PrincipalKind, ToolContext
from agenthost.testing import Daemons

from tests.kernel.plugins.entries import module

from .test_socket import chat


async def dice(call: ToolContext, agent: Agent, argument: str) -> str:
    assert call.principal.kind is PrincipalKind.LOOPBACK
    return f"{agent.name} throws {argument or 'nothing'} at {call.host.version}"


def offering(*commands: ChatCommand) -> ModuleType:
    return module(register_chat_command=lambda: commands)


async def test_register_chat_command_answers_in_a_chat(daemons: Daemons) -> None:
    plugin = offering(ChatCommand("dice", "Throw a die", dice, "<sides>"))
    running = await daemons.start(plugins=[plugin])
    agent = await running.agent("ada")
    async with chat(agent) as client:
        await client.say("/DICE  20 times ")
        (frame,) = await client.until("response")
        assert frame["content"] == f"ada throws 20 times at {running.daemon.version}"
        await client.say("/dice")
        (frame,) = await client.until("response")
        assert frame["content"].startswith("ada throws nothing")
        await client.say("/help")
        (frame,) = await client.until("response")
    lines = frame["content"].splitlines()
    assert lines[0] == "Commands:"
    assert "- /dice <sides>: Throw a die" in lines
    assert lines[1:] == sorted(lines[1:])
    listed = (await running.http.get("/api/commands")).json()["commands"]
    assert {"name": "dice", "argument": "<sides>", "help": "Throw a die"} in listed
    assert len(listed) == len(lines) - 1 == 16
    assert running.model.requests == []


async def test_an_unknown_command_is_answered_with_the_list(daemons: Daemons) -> None:
    running = await daemons.start(plugins=[offering(ChatCommand("dice", "x", dice))])
    async with chat(await running.agent()) as client:
        await client.say("/dise")
        (frame,) = await client.until("error")
    assert "unknown command /dise; did you mean 'dice'?" in frame["content"]
    assert "/new" in frame["content"]
    assert "/help" in frame["content"]


async def test_a_name_that_is_taken_fails_the_later_plugin(daemons: Daemons) -> None:
    running = await daemons.start(plugins=[offering(ChatCommand("new", "x", dice))])
    (state,) = [
        s for s in running.daemon.plugins.states() if s.key == "plugin:made_on_the_spot"
    ]
    assert "offers chatcommand new, which plugin:http_api has taken" in str(
        state.reason
    )
    async with chat(await running.agent()) as client:
        await client.say("/new")
        (frame,) = await client.until("response")
    assert frame["content"].startswith("A new session has begun")


async def raises(call: ToolContext, agent: Agent, argument: str) -> str:
    raise ZeroDivisionError("a secret of /home")


async def leaves(call: ToolContext, agent: Agent, argument: str) -> str:
    raise SystemExit(3)


async def hangs(call: ToolContext, agent: Agent, argument: str) -> str:
    await asyncio.Event().wait()
    return "never"


async def refuses(call: ToolContext, agent: Agent, argument: str) -> str:
    raise InvalidInput("sides", "must be a number")


def plain(call: ToolContext, agent: Agent, argument: str) -> Any:
    return "not awaited"


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (raises, "/odd failed for an internal reason, see the log"),
        (leaves, "/odd raised SystemExit: 3"),
        (hangs, "/odd took longer than 0.01 s"),
        (refuses, "sides: must be a number"),
        (plain, "/odd failed for an internal reason, see the log"),
    ],
)
async def test_a_command_that_goes_wrong_is_told_and_the_chat_goes_on(
    daemons: Daemons, run: Callable[..., Awaitable[str]], told: str
) -> None:
    odd = ChatCommand("odd", "x", run, timeout=0.01)
    running = await daemons.start(plugins=[offering(odd)])
    async with chat(await running.agent()) as client:
        await client.say("/odd")
        (frame,) = await client.until("error")
        assert frame["content"] == told
        await client.say("still here")
        assert (await client.until("response"))[-1]["content"] == "You said: still here"
    assert running.daemon.plugins.healthy("plugin:made_on_the_spot")
    assert running.daemon.plugins.charges.accounts["plugin:made_on_the_spot"].calls > 1


async def test_a_failed_plugin_has_no_commands(daemons: Daemons) -> None:
    running = await daemons.start(plugins=[offering(ChatCommand("dice", "x", dice))])
    running.daemon.plugins.fail("plugin:made_on_the_spot", "broke")
    async with chat(await running.agent()) as client:
        await client.say("/dice")
        (frame,) = await client.until("error")
    assert "unknown command /dice" in frame["content"]


@pytest.mark.parametrize(
    ("model", "off", "on"),
    [
        ("claude-haiku-5-5", "now off.", "now on."),
        ("claude-opus-5-5", "always thinks, if only a little.", "now on."),
        ("grok-4.20-reasoning", "always thinks, as it will.", "now on."),
        ("gpt-4o", "gpt-4o does not think: ", "gpt-4o does not think: "),
        ("hf/zai-org/GLM-5.3", "has no way to be told so", "has no way to be told so"),
    ],
)
async def test_think_says_where_the_switch_changes_nothing(
    daemons: Daemons, model: str, off: str, on: str
) -> None:
    running = await daemons.start()
    agent = await running.agent()
    await running.http.put(f"/api/agents/{agent.id}/model", json={"model": model})
    async with chat(agent) as client:
        for words in (on, off):
            await client.say("/think")
            (frame,) = await client.until("response")
            assert words in frame["content"]
