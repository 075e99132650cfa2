"""Who comes later is told nothing that a crash could still make untrue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost import Context, Done, StorageFull, TextDelta, Watcher, user_message
from agenthost.context import OPERATOR
from agenthost.testing import Pause
from agenthost.testing.daemons import RunningAgent, RunningDaemon


class Held:
    """A journal whose commits end when the test says so."""

    def __init__(self, running: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
        self._keep = running.daemon.journal.keep
        self._go_on = asyncio.Event()
        self.error: Exception | None = None
        self.asked = 0
        monkeypatch.setattr(running.daemon.journal, "keep", self.keep)

    def keep(self, *steps: Any) -> asyncio.Future[None]:
        self.asked += 1
        return asyncio.ensure_future(self._kept(*steps))

    def let_go(self) -> None:
        self._go_on.set()

    async def _kept(self, *steps: Any) -> None:
        await self._go_on.wait()
        if self.error is not None:
            raise self.error
        await self._keep(*steps)


async def begun(running: RunningDaemon, agent: RunningAgent, *said: Any) -> Any:
    """Start a turn that nobody watches, and let it come to its pause."""
    pause = next(each for each in said if isinstance(each, Pause))
    running.model.says(*said)
    known = running.daemon.agents.get(agent.id)
    turns = running.daemon.turns
    turn = turns.start(Context(OPERATOR), known, user_message("hi"))
    await pause.reached.wait()
    return turn


async def told(watcher: Watcher) -> list[object]:
    return [event async for event in watcher.events()]


async def test_words_are_told_once_the_question_is_on_disk(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, pause, held = await daemon.agent(), Pause(), Held(daemon, monkeypatch)
    turn = await begun(daemon, agent, "one", pause, " two")
    first, second = turn.watch(0), turn.watch(2)
    assert held.asked == 1
    hearing = [asyncio.ensure_future(anext(w.events())) for w in (first, second)]
    done, _ = await asyncio.wait(hearing, timeout=0.05)
    assert not done
    held.let_go()
    heard = await asyncio.gather(*hearing)
    assert [e.text for e in heard if isinstance(e, TextDelta)] == ["one", "e"]
    assert [m["content"] for m in (await agent.session())["messages"]] == ["hi"]
    pause.go_on()
    rest = await told(first)
    assert isinstance(rest[-1], Done)
    assert rest[-1].result.text == "one two"


async def test_who_left_before_is_not_counted_as_a_watcher(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, pause, held = await daemon.agent(), Pause(), Held(daemon, monkeypatch)
    turn = await begun(daemon, agent, "one", pause)
    first, second = turn.watch(0), turn.watch(0)
    assert not first.leave()
    assert second.leave()
    held.let_go()
    pause.go_on()
    assert (await turn.result()).text == "one"
    assert not turn.watched


async def test_who_comes_to_a_turn_that_cannot_be_kept_hears_its_end(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, pause, held = await daemon.agent(), Pause(), Held(daemon, monkeypatch)
    turn = await begun(daemon, agent, "one", pause, " two")
    hearing = asyncio.ensure_future(told(turn.watch(0)))
    held.error = StorageFull("the disk is full")
    held.let_go()
    pause.go_on()
    *_, end = await asyncio.wait_for(hearing, 30)
    assert getattr(end, "error", None) is held.error
