"""Crashed agents are started again by themselves, or suspended in the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from agenthost import (
    OPERATOR,
    AgentCrashed,
    AgentResumed,
    AgentState,
    AgentSuspended,
    Context,
    LifecycleEvent,
    Target,
)
from agenthost.testing import Daemons, ManualClock, Pause, Recorded
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost.testing.ports.stage import a_while, known, until

ONCE = "[autonomous]\nmax_restarts = 1\n"
BY = Context(OPERATOR)


async def stands(agent: RunningAgent, state: AgentState) -> None:
    async def so() -> bool:
        return known(agent).state is state

    await until(so, f"the agent is {state}")


async def test_a_crashed_agent_takes_no_messages_until_it_is_started_again(
    daemons: Daemons,
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    agent, agents = await daemon.agent(), daemon.daemon.agents
    book = Recorded(daemon.daemon.events, LifecycleEvent)
    agents.crash(agent.id, "it fell")
    agents.crash(agent.id, "it fell again while it fell")
    await stands(agent, AgentState.CRASHED)
    detail = (await daemon.http.get(f"/api/agents/{agent.id}")).json()
    assert (detail["state"], detail["reason"]) == ("Crashed", "it fell")
    assert (await agent.send("hello")).status_code == 409
    await a_while(daemon)
    await clock.advance(1.0)
    await stands(agent, AgentState.RUNNING)
    assert await agent.ask("hello") == "You said: hello"
    assert [type(event) for event in book.kept] == [AgentCrashed, AgentResumed]
    assert (await daemon.http.get("/api/health")).json()["restart_count"] == 1


@pytest.mark.manifest("autonomous.max_restarts")
async def test_one_that_crashes_again_and_again_is_suspended_and_says_why(
    daemons: Daemons, tmp_path: Path
) -> None:
    clock, home = ManualClock(), tmp_path / "home"
    daemon = await daemons.start(home=home, clock=clock)
    agent = await daemon.agent(extra=ONCE)
    book = Recorded(daemon.daemon.events, AgentSuspended)
    daemon.daemon.agents.crash(agent.id, "it fell")
    await stands(agent, AgentState.CRASHED)
    # What it has counted outlives the daemon, and so does what is to be done.
    await daemon.daemon.stop()
    daemon = await daemons.start(home=home, clock=clock)
    agent = daemon.known_agent(agent.name)
    assert known(agent).state is AgentState.CRASHED
    book = Recorded(daemon.daemon.events, AgentSuspended)
    await a_while(daemon)
    await clock.advance(1.0)
    await stands(agent, AgentState.RUNNING)
    daemon.daemon.agents.crash(agent.id, "it fell")
    await stands(agent, AgentState.SUSPENDED)
    assert known(agent).reason == "it crashed 2 times within an hour: it fell"
    assert len(book.kept) == 1
    await clock.advance(10_000.0)
    assert known(agent).state is AgentState.SUSPENDED
    # Resumed by a person, it begins anew.
    now = await daemon.daemon.agents.resume(BY, known(agent))
    assert (now.reason, now.crashes) == ("", ())


async def test_crashes_of_an_hour_ago_are_forgotten(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    agent = await daemon.agent(extra=ONCE)
    for _ in range(3):
        daemon.daemon.agents.crash(agent.id, "it fell")
        await stands(agent, AgentState.CRASHED)
        await a_while(daemon)
        await clock.advance(3_601.0)
        await stands(agent, AgentState.RUNNING)
    assert len(known(agent).crashes) == 1


async def test_a_person_takes_precedence_over_what_starts_it_again(
    daemons: Daemons,
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    agent, agents = await daemon.agent(), daemon.daemon.agents
    agents.crash(agent.id, "it fell")
    await stands(agent, AgentState.CRASHED)
    path, body = f"/api/agents/{agent.id}/suspend", {"reason": "leave it"}
    assert (await daemon.http.post(path, json=body)).status_code == 200
    await a_while(daemon)
    await clock.advance(100.0)
    assert known(agent).reason == "leave it"
    assert known(agent).state is AgentState.SUSPENDED
    agents.crash(agent.id, "it fell while nothing ran")
    await a_while(daemon)
    assert known(agent).state is AgentState.SUSPENDED


async def test_an_error_that_nobody_has_foreseen_is_a_crash_and_a_failure_is_none(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await daemon.agent()

    def falls(_: object) -> Target:
        raise RuntimeError("not an error of ours")

    with monkeypatch.context() as broken:
        broken.setattr(daemon.daemon.agents, "target_of", falls)
        assert (await agent.send("hello")).status_code == 500
    await stands(agent, AgentState.CRASHED)
    assert "nobody had foreseen" in known(agent).reason
    health = (await daemon.http.get("/api/health")).json()
    assert health["panic_count"] == 1


@pytest.mark.manifest("autonomous.heartbeat_interval_secs")
async def test_a_turn_without_a_sign_of_life_ends_and_is_a_crash(
    daemons: Daemons,
) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    beating = await daemon.agent("ada", extra="autonomous.heartbeat_interval_secs = 6")
    silent = await daemon.agent("bob")
    heart = daemon.daemon.turns._heart  # type: ignore[attr-defined]  # reason: its timer is real time
    pauses = Pause(), Pause()
    daemon.model.says("half", pauses[0], "more", pauses[1])
    turn = beating.start("count")
    await turn.seen("half")
    daemon.model.says("half", Pause())
    other = silent.start("count")
    await other.seen("half")
    for seconds in (0, 5, 5):
        await clock.advance(seconds)
        heart.look()
    pauses[0].go_on()
    await turn.seen("more")
    for _ in range(3):
        await clock.advance(5)
        heart.look()
        assert turn.turn.cancelled_for is None
    # A daemon that stood still itself has seen nothing.
    await clock.advance(1_000)
    heart.look()
    assert turn.turn.cancelled_for is None
    for _ in range(3):
        await clock.advance(5)
        heart.look()
    await stands(beating, AgentState.CRASHED)
    assert "no sign of life for 12 seconds" in known(beating).reason
    assert turn.turn.ended
    assert not other.turn.ended
    assert known(silent).state is AgentState.RUNNING
    await other.stop()
