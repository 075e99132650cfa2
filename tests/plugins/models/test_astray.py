"""What models get wrong stays within its turn: endless answers, broken tool calls."""

from __future__ import annotations

from itertools import repeat

import pytest
from agenthost import Finish
from agenthost.testing.daemons import Daemons, RunningAgent
from agenthost.testing.simulators import (
    OpenAIChatWire,
    ProviderSimulator,
    Reply,
    ScriptedCall,
    Turn,
)

STREAM = {"Content-Type": "text/event-stream"}


async def agent_of(
    daemons: Daemons, upstream: ProviderSimulator, max_tokens: int
) -> RunningAgent:
    """An agent whose model is simulated."""
    config = (
        f'[providers.sim]\nbase_url = "{upstream.base_url}"\n'
        'dialect = "openai-chat"\nmodels = ["m"]\n'
    )
    host = await daemons.start(config=config)
    model = f'[model]\nprovider = "sim"\nmodel = "m"\nmax_tokens = {max_tokens}\n'
    return await host.agent(extra=model)


@pytest.mark.parametrize("thinks", [False, True])
async def test_an_endless_answer_is_cut_kept_and_paid_once(
    daemons: Daemons, *, thinks: bool
) -> None:
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        agent = await agent_of(daemons, upstream, 1_000)
        turn = Turn("", "x" * 500) if thinks else Turn("x" * 500)
        event = OpenAIChatWire().events(turn)[10]
        upstream.play(
            Reply(repeat(event * 100, 400), headers=STREAM), Turn("well again")
        )
        answer = await agent.send("go on and on")
        assert answer.status_code == 500
        assert "longer than 64 KiB" in answer.json()["error"]
        assert len(upstream.heard) == 1
        said = [m["content"] for m in (await agent.session())["messages"]]
        assert sum(map(len, said)) <= 66 * 1024
        assert (len(said[-1]) > 16 * 1024) is not thinks
        total = await agent.host.daemon.usage.of_agent(agent.id)
        assert total.requests == 1
        assert await agent.ask("and now?") == "well again"


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (ScriptedCall("kv_set", '{"key": '), "not a JSON object"),
        (ScriptedCall("kv_set", "[1]"), "not a JSON object"),
        (ScriptedCall("", '{"key": "self.a", "value": 1}'), "names no tool"),
    ],
)
async def test_a_model_is_told_of_a_call_that_cannot_be_read(
    daemons: Daemons, call: ScriptedCall, problem: str
) -> None:
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        agent = await agent_of(daemons, upstream, 1_000)
        broken = Turn(calls=(call,), finish=Finish.TOOL_USE)
        upstream.play(broken, Turn("I see"))
        assert await agent.ask("store it") == "I see"
        ((_, told),) = upstream.heard[1].results
        assert problem in told
        assert await agent.host.daemon.kv.items(agent.id) == []


async def test_half_a_pair_leaves_the_turn_whole(daemons: Daemons) -> None:
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        agent = await agent_of(daemons, upstream, 1_000)
        call = ScriptedCall("kv_set", '{"key": "self.\\ud800", "value": "\\ud800"}')
        upstream.play(
            Turn("a \ud83d", calls=(call,), finish=Finish.TOOL_USE), Turn("b \udc00")
        )
        assert await agent.ask("store it") == "b \ufffd"
