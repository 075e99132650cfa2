"""Two daemons over one database: a turn belongs to one of them, and ends once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    Context,
    Superseded,
    TurnOptions,
    TurnState,
    Watcher,
    user_message,
)
from agenthost.context import OPERATOR
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon
from agenthost_records.tables import turns
from sqlalchemy import select

KEY = "3f0c2f6e-9f0e-4f0e-8a58-0d9c3a1f7b11"
TURNS = select(turns.c.state, turns.c.node, turns.c.epoch)


class Shared:
    """Starts daemons over one database, each with a home of its own."""

    def __init__(self, daemons: Daemons, folder: Path) -> None:
        self._daemons = daemons
        self._folder = folder

    async def start(self, node: str, home: str = "") -> RunningDaemon:
        url = f"sqlite:///{self._folder / 'shared.db'}"
        config = f'node = "{node}"\n[storage]\nurl = "{url}"\n'
        home = home or node
        return await self._daemons.start(home=self._folder / home, config=config)


@pytest.fixture
def shared(daemons: Daemons, tmp_path: Path) -> Shared:
    return Shared(daemons, tmp_path)


def watch(daemon: RunningDaemon, agent: str, text: str) -> Watcher:
    """Start a turn that is watched: what is seen of it is on disk."""
    known = daemon.daemon.agents.find(agent)
    options = TurnOptions(turn_id=KEY)
    message = user_message(text)
    return daemon.daemon.turns.watch(Context(OPERATOR), known, message, options)


async def resume(daemon: RunningDaemon, agent: str) -> Watcher:
    known = daemon.daemon.agents.find(agent)
    return await daemon.daemon.turns.resume(Context(OPERATOR), known, KEY)


async def rows(daemon: RunningDaemon) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await daemon.daemon.store.read(TURNS)]


async def said(agent: RunningAgent) -> list[str]:
    return [each["content"] for each in (await agent.session())["messages"]]


async def paused(daemon: RunningDaemon) -> tuple[Pause, Watcher]:
    """Bring a turn of ada's to the middle of its answer."""
    pause = Pause()
    daemon.model.says("one", pause, " two")
    watcher = watch(daemon, "ada", "count")
    await pause.reached.wait()
    return pause, watcher


@pytest.mark.setting("node")
async def test_a_node_that_starts_leaves_the_turns_of_others_running(
    shared: Shared,
) -> None:
    first = await shared.start("a")
    agent = await first.agent("ada")
    pause, watcher = await paused(first)
    second = await shared.start("b")
    assert second.daemon.interrupted_turns == 0
    assert (first.daemon.writer.node, second.daemon.writer.node) == ("a", "b")
    assert await rows(second) == [("running", "a", 1)]
    pause.go_on()
    assert (await watcher.turn.result()).text == "one two"
    assert await rows(second) == [("done", "a", 1)]
    assert await said(agent) == ["count", "one two"]


async def test_a_node_that_starts_again_marks_what_it_left(shared: Shared) -> None:
    first = await shared.start("a")
    await first.agent("ada")
    pause, watcher = await paused(first)
    await shared.start("b")
    again = await shared.start("a", home="elsewhere")
    assert again.daemon.interrupted_turns == 1
    # The first goes on, as one does that was held up and comes back too late.
    pause.go_on()
    with pytest.raises(Superseded):
        await watcher.turn.result()
    assert await rows(again) == [("interrupted", "a", 2)]


async def test_a_turn_that_another_node_took_over_ends_without_a_trace(
    shared: Shared, caplog: pytest.LogCaptureFixture
) -> None:
    first = await shared.start("a")
    agent = await first.agent("ada")
    pause, watcher = await paused(first)
    second = await shared.start("b")
    second.model.says("three")
    resumed = await resume(second, "ada")
    assert (await resumed.turn.result()).text == "three"
    pause.go_on()
    with pytest.raises(Superseded, match="has ended"):
        await watcher.turn.result()
    assert f"turn {KEY} ends here: the turn has ended" in caplog.text
    assert "Traceback" not in caplog.text
    assert await said(second.known_agent("ada")) == ["count", "three"]
    assert await rows(second) == [("done", "b", 1)]
    assert await said(agent) == ["count", "three"]
    assert await agent.ask("more") == "You said: more"


async def test_an_effect_does_not_begin_once_another_node_has_the_turn(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await shared.start("a")
    agent = await first.agent("ada")
    daemon = first.daemon
    start_call = daemon.journal.start_call
    pause = Pause()

    def taken_first(*call: Any) -> Any:
        async def later() -> None:
            await pause.wait()
            await start_call(*call)

        return later()

    monkeypatch.setattr(daemon.journal, "start_call", taken_first)
    first.model.calls("kv_set", key="colour", value="blue")
    watcher = watch(first, "ada", "keep it")
    await pause.reached.wait()
    second = await shared.start("b")
    second.model.says("kept")
    resumed = await resume(second, "ada")
    await resumed.turn.result()
    kept = await second.daemon.kv.items(agent.id)
    await second.daemon.kv.delete(Context(OPERATOR), agent.id, kept[0][0])
    pause.go_on()
    with pytest.raises(Superseded):
        await watcher.turn.result()
    assert await second.daemon.kv.items(agent.id) == []
    known = await second.daemon.journal.find(KEY)
    assert known is not None
    assert known.state is TurnState.DONE


async def test_two_daemons_of_one_node_do_not_both_answer(shared: Shared) -> None:
    first = await shared.start("a")
    agent = await first.agent("ada")
    assert await agent.ask("one") == "You said: one"
    second = await shared.start("a", home="elsewhere")
    refused = await agent.send("two")
    assert (refused.status_code, refused.json()["code"]) == (409, "superseded")
    assert "give each daemon of a database a node of its own" in refused.text
    assert await second.known_agent("ada").ask("three") == "You said: three"
    assert await said(agent) == ["one", "You said: one", "three", "You said: three"]
