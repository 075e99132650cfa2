"""A turn is closed inside its mailbox: what waits behind it loses nothing."""

from __future__ import annotations

import asyncio

import pytest
from agenthost import (
    Cancelled,
    Context,
    ProviderError,
    ProviderFault,
    Step,
    user_message,
)
from agenthost.context import OPERATOR
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon


async def contents(agent: RunningAgent) -> list[str]:
    return [message["content"] for message in (await agent.session())["messages"]]


async def test_a_message_behind_a_stopped_turn_is_answered(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    known = daemon.daemon.agents.get(agent.id)
    for number in range(10):
        pause = Pause()
        daemon.model.says("half ", pause)
        first = agent.start(f"stopped {number}")
        await pause.reached.wait()
        second = agent.start(f"next {number}")
        assert await daemon.daemon.turns.stop(known, "a test") == 1
        assert (await second.result()).text == f"You said: next {number}"
        with pytest.raises(Cancelled):
            await first.result()
    said = await contents(agent)
    assert said[:4] == ["stopped 0", "half ", "next 0", "You said: next 0"]
    assert len(said) == 40


async def test_a_message_behind_a_failed_turn_is_answered(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    turns = []
    for number in range(10):
        daemon.model.fails(ProviderFault.BAD_REQUEST)
        daemon.model.says(f"answer {number}")
        turns += [agent.start(f"fails {number}"), agent.start(f"next {number}")]
    ends = await asyncio.gather(*(t.result() for t in turns), return_exceptions=True)
    assert all(isinstance(end, ProviderError) for end in ends[::2])
    assert [getattr(end, "text", end) for end in ends[1::2]] == [
        f"answer {number}" for number in range(10)
    ]
    assert len(await contents(agent)) == 30


async def test_a_stop_answers_when_the_turn_is_closed_on_disk(
    daemon: RunningDaemon,
) -> None:
    pause = Pause()
    daemon.model.says("half", pause)
    agent = await daemon.agent()
    agent.start("count")
    await pause.reached.wait()
    answer = await daemon.http.post(f"/api/agents/{agent.id}/stop")
    assert answer.json()["message"] == "1 turn(s) stopped"
    question, words = (await agent.session())["messages"]
    assert (question["status"], words["status"]) == ("stopped", "stopped")


async def test_a_stop_leaves_what_waits_and_all_ends_that_too(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    path = f"/api/agents/{agent.id}/stop"
    for query, ends in (("", ["waits"]), ("?all=true", [])):
        pause = Pause()
        daemon.model.says(pause)
        turns = [agent.start("runs"), agent.start("waits")]
        await pause.reached.wait()
        await daemon.http.post(path + query)
        told = await asyncio.gather(
            *(turn.result() for turn in turns), return_exceptions=True
        )
        answered = [each for each in told if not isinstance(each, Cancelled)]
        assert [getattr(each, "text", each) for each in answered] == [
            f"You said: {text}" for text in ends
        ]


async def test_a_stop_of_anothers_session_stops_nothing(daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says(pause, "done")
    ada, bob = await daemon.agent("ada"), await daemon.agent("bob")
    turn = ada.start("hello")
    await pause.reached.wait()
    session = daemon.daemon.agents.get(ada.id).session_id
    path = f"/api/agents/{bob.id}/stop?session={session}"
    assert "no turn" in (await daemon.http.post(path)).json()["message"]
    pause.go_on()
    assert (await turn.result()).text == "done"


async def test_a_reset_answers_those_that_wait_and_empties_the_session(
    daemon: RunningDaemon,
) -> None:
    pause = Pause()
    daemon.model.says("half", pause)
    agent = await daemon.agent()
    runs = asyncio.create_task(agent.send("runs"))
    await pause.reached.wait()
    waits = agent.start("waits")
    reset = await daemon.http.post(f"/api/agents/{agent.id}/session/reset")
    assert reset.status_code == 200
    answer = await runs
    assert (answer.status_code, answer.json()["code"]) == (409, "cancelled")
    with pytest.raises(Cancelled, match="reset"):
        await waits.result()
    assert await contents(agent) == []


async def test_resets_at_once_change_the_session_once(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    path = f"/api/agents/{agent.id}"
    await agent.ask("hello")
    calls = [daemon.http.post(f"{path}/session/reset") for _ in range(10)]
    calls += [daemon.http.get(f"{path}/session") for _ in range(10)]
    calls += [daemon.http.post(f"{path}/session/compact") for _ in range(10)]
    answers = await asyncio.gather(*calls)
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert {answer.status_code for answer in answers[:20]} == {200}
    listed = (await daemon.http.get("/api/sessions")).json()["sessions"]
    assert [item["agent_id"] for item in listed] == [agent.id]
    assert listed[0]["id"] in {a.json()["new_session_id"] for a in answers[:10]}
    known = daemon.daemon.agents.get(agent.id)
    fresh = await asyncio.gather(*(daemon.daemon.turns.reset(known) for _ in range(5)))
    assert len({each.session_id for each in fresh}) == 1


async def test_a_message_that_meets_a_reset_is_in_the_new_session(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("old")
    inside = daemon.daemon
    resetting = asyncio.create_task(inside.turns.reset(inside.agents.get(agent.id)))
    await asyncio.sleep(0)
    turn = agent.start("new")
    await resetting
    assert (await turn.result()).text == "You said: new"
    assert await contents(agent) == ["new", "You said: new"]


@pytest.fixture
async def compacting(daemons: Daemons) -> tuple[RunningAgent, Pause]:
    """An agent whose session is being summarised."""
    config = "[compaction]\nthreshold_messages = 4\nkeep_recent = 2\n"
    daemon = await daemons.start(config=config)
    agent = await daemon.agent()
    for number in range(3):
        await agent.ask(f"message {number}")
    pause = Pause()
    daemon.model.says(pause, "they counted")
    return agent, pause


async def test_a_compaction_is_stopped_like_a_turn(
    compacting: tuple[RunningAgent, Pause],
) -> None:
    agent, pause = compacting
    path = f"/api/agents/{agent.id}"
    http = agent.host.http
    summary = asyncio.create_task(http.post(f"{path}/session/compact"))
    await pause.reached.wait()
    assert agent.host.daemon.turns.running == 1
    stopped = await http.post(f"{path}/stop")
    assert stopped.json()["message"] == "1 turn(s) stopped"
    assert (await summary).json()["code"] == "cancelled"
    assert len(await contents(agent)) == 6


async def test_a_shutdown_waits_for_a_compaction(
    compacting: tuple[RunningAgent, Pause],
) -> None:
    agent, pause = compacting
    turns = agent.host.daemon.turns
    known = agent.host.daemon.agents.get(agent.id)
    summary = asyncio.create_task(agent.host.daemon.compaction.of_agent(known))
    await pause.reached.wait()
    draining = asyncio.create_task(turns.drain(20))
    await asyncio.sleep(0)
    pause.go_on()
    await draining
    assert (await summary).summarised == 4


async def test_a_client_that_leaves_does_not_lose_anothers_message(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    known = daemon.daemon.agents.get(agent.id)
    for number in range(5):
        pause = Pause()
        daemon.model.says("half ", pause)
        context = Context(OPERATOR)
        leaver = daemon.daemon.turns.watch(context, known, user_message("left"))
        await pause.reached.wait()
        other = agent.start(f"other {number}")
        assert leaver.leave()
        leaver.turn.cancel("the client left")
        assert (await other.result()).text == f"You said: other {number}"


async def test_a_turn_whose_last_row_meets_any_fault_is_closed_later(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = daemon.daemon.journal.keep

    def refuses_the_end(*steps: Step) -> asyncio.Future[None]:
        if steps[-1].closed is None:
            return keep(*steps)
        monkeypatch.undo()
        raise RuntimeError("not an error of ours")

    pause = Pause()
    daemon.model.says("half", pause)
    agent = await daemon.agent()
    turn = agent.start("count")
    await turn.seen("half")
    monkeypatch.setattr(daemon.daemon.journal, "keep", refuses_the_end)
    await turn.stop()
    with pytest.raises(Cancelled):
        await turn.result()
    assert await agent.ask("next") == "You said: next"
    assert (await agent.session())["messages"][0]["status"] == "stopped"
