"""Turns of a session run one after another, whichever daemon they were asked of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import pytest
from agenthost import (
    OPERATOR,
    Cancelled,
    Conflict,
    Context,
    Turn,
    TurnOptions,
    Unavailable,
    user_message,
)
from agenthost.testing import Daemons, Pause, RunningAgent, RunningDaemon
from agenthost_records import lines
from agenthost_turns import nodes

from .test_daemons import becomes, both, knows

pytestmark = pytest.mark.conformance

PATIENCE = 60.0
KEY = "3f0c2f6e-9f0e-4f0e-8a58-0d9c3a1f7b11"
LINE = "SELECT node FROM session_holders ORDER BY place"
T = TypeVar("T")


async def soon(awaited: Awaitable[T]) -> T:
    async with asyncio.timeout(PATIENCE):
        return await awaited


async def lined_up(daemon: RunningDaemon, *expected: str) -> None:
    """Wait until daemons stand in line so."""
    async with asyncio.timeout(PATIENCE):
        while await _line(daemon) != expected:  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


async def _line(daemon: RunningDaemon) -> tuple[str, ...]:
    return tuple(row["node"] for row in await daemon.daemon.store.read(LINE))


class Two:
    """An agent on two daemons."""

    def __init__(self, first: RunningDaemon, second: RunningDaemon, id_: str) -> None:
        self.first, self.second = first, second
        self.here = RunningAgent(first, id_, "ada")
        self.there = RunningAgent(second, id_, "ada")

    async def begun(self) -> Pause:
        """Have the first daemon in the middle of an answer."""
        pause = Pause()
        self.first.model.says("one", pause, " two")
        self.turn = self.here.start("first")
        await soon(pause.reached.wait())
        return pause

    async def said(self) -> list[str]:
        return [each["content"] for each in (await self.here.session())["messages"]]


@pytest.fixture
async def two(daemons: Daemons, database: str) -> Two:
    first, second = await both(daemons, database)
    agent = await first.agent("ada")
    await becomes(second, knows(second, "ada"))
    return Two(first, second, agent.id)


async def test_turns_of_two_daemons_run_in_the_order_in_which_they_came(
    two: Two,
) -> None:
    pause = await two.begun()
    turns = []
    for number, agent in enumerate((two.there, two.here, two.there, two.here)):
        turns.append(agent.start(str(number)))
        await lined_up(two.first, *"abababab"[: number + 2])
    pause.go_on()
    for turn in turns:
        await soon(turn.result())
    questions = (await two.said())[::2]
    assert questions == ["first", "0", "1", "2", "3"]
    await lined_up(two.first)


async def test_a_word_wakes_who_waits_on_the_other_daemon(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks by itself before the test is over."""
    monkeypatch.setattr(lines, "LOOK", 10 * PATIENCE)
    pause = await two.begun()
    behind = two.there.start("second")
    await lined_up(two.first, "a", "b")
    pause.go_on()
    await soon(behind.result())


async def test_who_hears_nothing_looks_by_itself(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two.first.daemon.store.signals, "tell", lambda *_: None)
    pause = await two.begun()
    behind = two.there.start("second")
    await lined_up(two.first, "a", "b")
    pause.go_on()
    await soon(behind.result())


async def test_the_same_key_on_two_daemons_is_one_turn(two: Two) -> None:
    pause = await two.begun()
    two.first.model.says("once")
    turns = [_keyed(two.first)]
    await lined_up(two.first, "a", "a")
    turns.append(_keyed(two.second))
    await lined_up(two.first, "a", "a", "b")
    pause.go_on()
    assert [(await soon(turn.result())).text for turn in turns] == ["once"] * 2
    assert (await two.said())[2:] == ["again", "once"]
    assert two.second.model.requests == []


def _keyed(daemon: RunningDaemon) -> Turn:
    known, turns = daemon.daemon.agents.find("ada"), daemon.daemon.turns
    options = TurnOptions(turn_id=KEY)
    return turns.start(Context(OPERATOR), known, user_message("again"), options)


async def test_a_stop_ends_what_runs_on_the_other_daemon_alone(two: Two) -> None:
    await two.begun()
    behind = two.there.start("second")
    await lined_up(two.first, "a", "b")
    answer = await soon(two.second.http.post(f"/api/agents/{two.here.id}/stop"))
    assert answer.json()["message"] == "1 turn(s) stopped", answer.text
    with pytest.raises(Cancelled, match="stopped by request"):
        await soon(two.turn.result())
    assert (await soon(behind.result())).text == "You said: second"
    assert (await two.said())[:3] == ["first", "one", "second"]


async def test_a_stop_finds_nothing_where_nothing_runs(two: Two) -> None:
    answer = await soon(two.second.http.post(f"/api/agents/{two.here.id}/stop"))
    assert answer.json()["message"] == "no turn was running", answer.text


async def test_a_stop_of_all_ends_what_waits_on_the_other_daemon_too(
    two: Two,
) -> None:
    await two.begun()
    behind = two.here.start("second")
    await lined_up(two.first, "a", "a")
    path = f"/api/agents/{two.here.id}/stop?all=true"
    assert (await soon(two.second.http.post(path))).status_code == 200
    for turn in (two.turn, behind):
        with pytest.raises(Cancelled):
            await soon(turn.result())


async def test_a_stop_of_another_agents_session_ends_nothing(two: Two) -> None:
    pause = await two.begun()
    bob = await two.second.agent("bob")
    known = two.second.daemon.agents.find(bob.id)
    session = two.second.daemon.agents.get(two.here.id).session_id
    assert await soon(two.second.daemon.turns.stop(known, "no", session)) == 0
    pause.go_on()
    assert (await soon(two.turn.result())).text == "one two"


async def test_what_a_daemon_does_not_end_in_time_is_told_by_its_name(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "PATIENCE", 0.3)
    monkeypatch.setattr(two.second.daemon.store.signals, "tell", lambda *_: None)
    pause = await two.begun()
    known = two.second.daemon.agents.find("ada")
    with pytest.raises(Unavailable, match="node 'a' runs it"):
        await two.second.daemon.turns.stop(known, "no")
    pause.go_on()
    assert (await soon(two.turn.result())).text == "one two"


async def test_a_reset_ends_what_runs_and_waits_on_the_other_daemon(two: Two) -> None:
    await two.begun()
    behind = two.here.start("second")
    await lined_up(two.first, "a", "a")
    reset = await soon(two.second.http.post(f"/api/agents/{two.here.id}/session/reset"))
    assert reset.status_code == 200, reset.text
    for turn in (two.turn, behind):
        with pytest.raises(Cancelled, match="the session was reset"):
            await soon(turn.result())
    assert (await soon(two.here.start("new").result())).text == "You said: new"
    assert (await two.said())[0] == "new"


async def test_who_waited_behind_a_reset_elsewhere_speaks_in_the_new_session(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the daemon has not heard yet that the agent has another."""
    entered, go_on = asyncio.Event(), asyncio.Event()
    agents = two.second.daemon.agents
    new_session = agents.new_session

    async def slow(*given: object, **how: object) -> object:
        entered.set()
        await go_on.wait()
        return await new_session(*given, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(agents, "new_session", slow)
    monkeypatch.setattr(agents, "_tell_others", lambda: None)
    known = two.second.daemon.agents.find("ada")
    resetting = asyncio.create_task(two.second.daemon.turns.reset(known))
    await soon(entered.wait())
    behind = two.here.start("behind")
    await lined_up(two.first, "b", "a")
    go_on.set()
    fresh = await soon(resetting)
    assert (await soon(behind.result())).text == "You said: behind"
    history = await two.second.daemon.sessions.history(
        await two.second.daemon.sessions.get(fresh.session_id)
    )
    assert [message.text for message in history.messages][:1] == ["behind"]


async def test_agents_that_would_wait_for_each_other_over_daemons_are_refused(
    two: Two,
) -> None:
    """Ada asks Bob on one daemon while Bob asks Ada on the other."""
    bob = await two.second.agent("bob")
    await becomes(two.first, knows(two.first, "bob"))
    pause = await two.begun()
    other = Pause()
    two.second.model.says("hm", other)
    asking = RunningAgent(two.second, bob.id, "bob").start("hold")
    await soon(other.reached.wait())
    first, second = two.first.daemon, two.second.daemon
    there = Context(OPERATOR, turn_id=two.turn.turn.id)
    calls = asyncio.create_task(first.turns.call_agent(there, "bob", "hello"))
    await lined_up(two.first, "a", "b", "a")
    back = Context(OPERATOR, turn_id=asking.turn.id)
    with pytest.raises(Conflict, match="over several daemons"):
        await soon(second.turns.call_agent(back, "ada", "hello"))
    other.go_on()
    await soon(calls)
    pause.go_on()
    assert (await soon(two.turn.result())).text == "one two"


async def test_a_turn_whose_session_nobody_else_can_ask_for_stands_in_no_line(
    two: Two,
) -> None:
    """With an id of its own it does: the other daemon may be asked for the same."""
    known, turns = two.first.daemon.agents.find("ada"), two.first.daemon.turns
    for options, line in (
        (TurnOptions(history=()), ()),
        (TurnOptions(history=(), turn_id=KEY), ("a",)),
    ):
        pause = Pause()
        two.first.model.says("one", pause)
        turn = turns.start(Context(OPERATOR), known, user_message("go"), options)
        await soon(pause.reached.wait())
        await lined_up(two.first, *line)
        pause.go_on()
        await soon(turn.result())
        await lined_up(two.first)


async def test_a_stopped_turn_that_waited_leaves_the_line(two: Two) -> None:
    pause = await two.begun()
    known = two.second.daemon.agents.find("ada")
    behind = two.second.daemon.turns.start(
        Context(OPERATOR), known, user_message("second")
    )
    await lined_up(two.first, "a", "b")
    behind.cancel("no")
    await lined_up(two.first, "a")
    pause.go_on()
    assert (await soon(two.turn.result())).text == "one two"
