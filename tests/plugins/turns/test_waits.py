"""Turns that wait for turns: no ring, no slot, no clock."""

from __future__ import annotations

import asyncio

import pytest
from agenthost import Context, Role, ToolOutput, user_message
from agenthost.context import OPERATOR
from agenthost.errors import TurnFailed
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon, RunningTurn
from agenthost_turns.engine import TurnEngine


def results(daemon: RunningDaemon) -> list[str]:
    return [
        part.text
        for request in daemon.model.requests
        for message in request.messages[-1:]
        if message.role is Role.TOOL
        for part in message.parts
        if isinstance(part, ToolOutput)
    ]


async def asks(turn: RunningTurn) -> None:
    """Wait until the turn waits for another agent's."""
    async with asyncio.timeout(30):
        while not turn.turn.asked:  # noqa: ASYNC110 - a call has no event of its own
            await asyncio.sleep(0.001)


async def test_two_agents_that_call_each_other_at_once_both_end(
    daemon: RunningDaemon,
) -> None:
    ada, bob = await daemon.agent("ada"), await daemon.agent("bob")
    pause = Pause()
    # Bob's turn holds his session when ada's call begins to wait for it.
    daemon.model.says(pause, "ready")
    first = bob.start("wait")
    await pause.reached.wait()
    daemon.model.calls("agent_call", agent_id="bob", message="from ada")
    calling = ada.start("call bob")
    await asks(calling)
    context = first.turn.context
    with pytest.raises(Exception, match="bob -> ada -> bob"):
        await daemon.daemon.turns.call_agent(context, "ada", "from bob")
    pause.go_on()
    async with asyncio.timeout(30):
        assert (await first.result()).text == "ready"
        await calling.result()


async def test_a_call_behind_a_turn_that_only_works_is_made(
    daemon: RunningDaemon,
) -> None:
    ada, bob = await daemon.agent("ada"), await daemon.agent("bob")
    pause = Pause()
    daemon.model.says(pause, "ready")
    busy = bob.start("work")
    await pause.reached.wait()
    daemon.model.calls("agent_call", agent_id="bob", message="hi")
    turn = ada.start("call bob")
    await asks(turn)
    pause.go_on()
    await asyncio.gather(busy.result(), turn.result())
    assert results(daemon) == ["You said: hi"]


async def waiting(agent: RunningAgent, count: int) -> None:
    for number in range(count):
        agent.start(str(number))


async def test_what_waits_takes_no_slot_of_what_runs(daemons: Daemons) -> None:
    daemon = await daemons.start(config="[turns]\nmax_concurrent = 6\n")
    pauses = [Pause() for _ in range(5)]
    for number, pause in enumerate(pauses):
        daemon.model.says(pause, "done")
        agent = await daemon.agent(f"busy{number}")
        await waiting(agent, 18)
        await pause.reached.wait()
    other = await daemon.agent("other")
    async with asyncio.timeout(30):
        assert await other.ask("hello") == "You said: hello"
    for pause in pauses:
        pause.go_on()


@pytest.mark.setting("turns.max_concurrent")
async def test_too_many_waiting_turns_are_refused_with_a_time_to_come_back(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config="[turns]\nmax_concurrent = 1\n")
    pause = Pause()
    daemon.model.says(pause, "done")
    agent = await daemon.agent()
    await waiting(agent, 17)
    await pause.reached.wait()
    refused = await agent.send("one more")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    pause.go_on()


async def test_a_caller_lends_its_slot_to_whom_it_calls(daemons: Daemons) -> None:
    daemon = await daemons.start(config="[turns]\nmax_concurrent = 1\n")
    await daemon.agent("helper", tools=[])
    daemon.model.calls("agent_call", agent_id="helper", message="hi")
    agent = await daemon.agent()
    async with asyncio.timeout(30):
        await agent.ask("greet")
    assert results(daemon) == ["You said: hi"]


@pytest.mark.setting("turns.max_seconds")
async def test_a_turn_ends_at_its_limit(daemons: Daemons) -> None:
    daemon = await daemons.start(config="[turns]\nmax_seconds = 0.2\n")
    agent = await daemon.agent()
    daemon.model.says("half", Pause())
    with pytest.raises(TurnFailed, match="max_seconds"):
        await agent.start("hello").result()
    question, words = (await agent.session())["messages"]
    assert (question["status"], words["content"]) == ("failed", "half")


async def test_waiting_for_the_session_or_another_agent_does_not_count(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config="[turns]\nmax_seconds = 2\n")
    ada, bob = await daemon.agent("ada"), await daemon.agent("bob")
    pause = Pause()
    daemon.model.says(pause, "ready")
    busy = bob.start("work")
    await pause.reached.wait()
    daemon.model.calls("agent_call", agent_id="bob", message="hi")
    turn = ada.start("call bob")
    await asks(turn)
    engine = daemon.daemon.turns
    assert isinstance(engine, TurnEngine)
    assert engine._slots[turn.turn.id]._timer is None
    pause.go_on()
    await asyncio.gather(busy.result(), turn.result())


async def test_a_daemon_without_room_still_takes_known_turns(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config="[turns]\nmax_concurrent = 1\n")
    pause = Pause()
    daemon.model.says(pause, "done")
    agent = await daemon.agent()
    sending = asyncio.create_task(agent.send("hello", Idempotency_Key="k"))
    await pause.reached.wait()
    await waiting(agent, 16)
    again = asyncio.create_task(agent.send("hello", Idempotency_Key="k"))
    pause.go_on()
    first, second = await asyncio.gather(sending, again)
    assert first.json() == second.json()
    context = Context(OPERATOR)
    known = daemon.daemon.agents.get(agent.id)
    await daemon.daemon.turns.start(context, known, user_message("x")).result()
