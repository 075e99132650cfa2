"""A turn that one daemon runs is watched on the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest
from agenthost import (
    AgentHostError,
    Done,
    Failed,
    NotFound,
    TextDelta,
    Thinking,
    ToolEnd,
    ToolStart,
    ToolUse,
    Watcher,
)
from agenthost.testing import Daemons, Pause, RunningAgent, RunningDaemon
from agenthost.testing.scripted import Answer
from agenthost_turns import afar, followed

from .test_daemons import becomes, both, knows

pytestmark = pytest.mark.conformance

PATIENCE = 60.0
CUT_OFF = "UPDATE turns SET state = 'interrupted'"
T = TypeVar("T")


async def soon(awaited: Awaitable[T]) -> T:
    async with asyncio.timeout(PATIENCE):
        return await awaited


class Pair:
    """An agent, whose turns the first daemon runs and the second watches."""

    def __init__(self, first: RunningDaemon, second: RunningDaemon, id_: str) -> None:
        self.first, self.second = first, second
        self.agent = RunningAgent(first, id_, "ada")

    async def begun(self, *words: Any) -> Pause:
        """Have the first daemon stand still among the words."""
        pause = Pause()
        self.first.model.says(*(pause if word is ... else word for word in words))
        self.running = self.agent.start("go")
        # What is watched is written at once, so that it is known elsewhere.
        self.watched = self.running.turn.watch()
        await soon(pause.reached.wait())
        return pause

    async def attach(self, offset: int = 0) -> Watcher:
        """Watch it on the second daemon."""
        known, turn_id = self.second.daemon.agents.find("ada"), self.running.turn.id
        turns = self.second.daemon.turns
        return await soon(turns.attach(known, turn_id, offset))


@pytest.fixture
async def pair(daemons: Daemons, database: str) -> Pair:
    first, second = await both(daemons, database)
    agent = await first.agent("ada", tools=("kv_set",))
    await becomes(second, knows(second, "ada"))
    return Pair(first, second, agent.id)


async def hears(watcher: Watcher, text: str) -> str:
    """Read on until as much was told."""
    heard = ""
    async with asyncio.timeout(PATIENCE):
        async for event in watcher.events():
            heard += event.text if isinstance(event, TextDelta) else ""
            if heard.endswith(text):
                break
    return heard


async def rest(watcher: Watcher) -> list[Any]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in watcher.events()]


def text_of(events: list[Any]) -> str:
    return "".join(each.text for each in events if isinstance(each, TextDelta))


async def test_words_are_told_while_the_other_daemon_says_them(pair: Pair) -> None:
    pause = await pair.begun("one", ..., " two")
    watcher = await pair.attach()
    assert await hears(watcher, "one") == "one"
    pause.go_on()
    events = await rest(watcher)
    assert text_of(events) == " two"
    assert isinstance(events[-1], Done)
    assert events[-1].result.text == "one two"


async def test_what_a_watcher_has_is_not_told_again(pair: Pair) -> None:
    pause = await pair.begun("one", ..., " two")
    watcher = await pair.attach(3)
    pause.go_on()
    assert text_of(await rest(watcher)) == " two"


async def test_tools_stand_where_they_stood(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the words behind them are all that comes through."""
    signals = pair.first.daemon.store.signals
    assert signals is not None
    tell = signals.tell

    def words_alone(topic: str, word: str = "") -> None:
        if topic != followed.TOPIC or "text" in json.loads(word):
            tell(topic, word)

    monkeypatch.setattr(signals, "tell", words_alone)
    pause = Pause()
    call = ToolUse("c1", "kv_set", {"key": "colour", "value": "blue"})
    asks = Answer(("Let me see. ", pause), calls=(call,))
    pair.first.model._answers.append(asks)
    pair.first.model.says("Kept.")
    pair.running = pair.agent.start("go")
    pair.watched = pair.running.turn.watch()
    await soon(pause.reached.wait())
    watcher = await pair.attach()
    pause.go_on()
    here, there = await rest(pair.watched), await rest(watcher)
    expected = [TextDelta, ToolStart, ToolEnd, TextDelta, Done]
    assert [type(each) for each in here if not isinstance(each, Thinking)] == expected
    assert [type(each) for each in there] == expected
    assert there[1:4] == [each for each in here if not isinstance(each, Thinking)][1:4]
    assert text_of(there) == "Let me see. Kept."


async def test_words_that_are_lost_are_told_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals = pair.first.daemon.store.signals
    assert signals is not None
    tell, lost = signals.tell, 0

    def loses(topic: str, word: str = "") -> None:
        nonlocal lost
        if topic == followed.TOPIC and "text" in json.loads(word) and lost < 1:
            lost += 1
        else:
            tell(topic, word)

    monkeypatch.setattr(signals, "tell", loses)
    monkeypatch.setattr(afar, "WORD", 2)
    pause = await pair.begun("one", ..., " two")
    watcher = await pair.attach()
    assert await hears(watcher, "one") == "one"
    pause.go_on()
    assert text_of(await rest(watcher)) == " two"
    assert lost == 1


async def test_long_words_of_any_script_are_told(pair: Pair) -> None:
    long = "\U0001f600\0\ud83d" * 3_000
    pause = await pair.begun(long, "end", ..., "!")
    watcher = await pair.attach()
    assert await hears(watcher, "end") == long + "end"
    pause.go_on()
    assert text_of(await rest(watcher)) == "!"


async def test_a_turn_whose_daemon_died_ends_as_interrupted(pair: Pair) -> None:
    pause = await pair.begun("one", ..., " two")
    watcher = await pair.attach()
    assert await hears(watcher, "one") == "one"
    await pair.second.daemon.store.change(CUT_OFF)
    failed = (await rest(watcher))[-1]
    assert isinstance(failed, Failed)
    assert failed.error.code == "interrupted"
    pause.go_on()


async def test_a_turn_that_is_gone_ends_as_not_found(pair: Pair) -> None:
    pause = await pair.begun("one", ..., " two")
    watcher = await pair.attach()
    await pair.second.daemon.store.change("DELETE FROM turns")
    failed = (await rest(watcher))[-1]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, NotFound)
    pause.go_on()


async def test_several_watch_and_who_comes_back_watches_anew(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "LOOK", 0.05)
    pause = await pair.begun("one", ..., " two", " three")
    first, second = await pair.attach(), await pair.attach()
    assert await hears(first, "one") == await hears(second, "one") == "one"
    assert first.turn is second.turn
    first.leave()
    second.leave()
    async with asyncio.timeout(PATIENCE):
        while not first.turn.ended:
            await pair.first.http.get("/api/health")
    again = await pair.attach()
    assert again.turn is not first.turn
    pause.go_on()
    assert text_of(await rest(again)) == "one two three"


async def test_a_turn_that_nobody_asks_for_any_more_is_not_told(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end is told by its rows."""
    signals, words = pair.first.daemon.store.signals, []
    assert signals is not None
    tell = signals.tell

    def listens(topic: str, word: str = "") -> None:
        words.extend([word] if topic == followed.TOPIC else [])
        tell(topic, word)

    monkeypatch.setattr(signals, "tell", listens)
    monkeypatch.setattr(afar, "FORGOTTEN", -1.0)
    pause = await pair.begun("one", ..., " two")
    watcher = await pair.attach()
    pause.go_on()
    assert text_of(await rest(watcher)) == "one two"
    assert words == []


async def test_a_turn_that_nobody_knows_is_not_found(pair: Pair) -> None:
    known = pair.second.daemon.agents.find("ada")
    with pytest.raises(NotFound):
        await pair.second.daemon.turns.attach(known, "nobody")


async def test_a_stream_over_http_goes_on_on_the_other_daemon(pair: Pair) -> None:
    pause = await pair.begun("one", ..., " two")
    path = f"/api/agents/{pair.agent.id}/message/stream?turn={pair.running.turn.id}"
    told = b""
    async with (
        asyncio.timeout(PATIENCE),
        pair.second.http.stream("GET", path) as answer,
    ):
        assert answer.status_code == 200
        async for chunk in answer.aiter_bytes():
            told += chunk
            if b"one" in told:
                pause.go_on()
    assert b" two" in told
    assert b"event: done" in told


async def test_a_daemon_that_stops_lets_its_watchers_go(
    pair: Pair, daemons: Daemons
) -> None:
    pause = await pair.begun("one", ..., " two")
    watcher = await pair.attach()
    assert await hears(watcher, "one") == "one"
    stopping = asyncio.create_task(pair.second.daemon.turns.drain(0.0))
    failed = (await rest(watcher))[-1]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, AgentHostError)
    await soon(stopping)
    pause.go_on()
    assert (await soon(pair.running.result())).text == "one two"
