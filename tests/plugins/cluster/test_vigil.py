"""A daemon that gives no sign of life: its turns go on elsewhere, and never twice.

Each daemon has a clock of its own; one whose clock nobody moves stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from agenthost import (
    OPERATOR,
    Context,
    Superseded,
    Turn,
    TurnOptions,
    TurnState,
    Watcher,
    user_message,
)
from agenthost.testing import Daemons, ManualClock, Pause, RunningDaemon
from agenthost_records.vigil import DEAD, LOOK, Vigil

from .server import Server
from .test_daemons import becomes, knows, on
from .test_store import end_connections, until_healthy

pytestmark = pytest.mark.conformance

KEY = "3f0c2f6e-9f0e-4f0e-8a58-0d9c3a1f7b11"
PATIENCE = 60.0
LINE = "SELECT node FROM session_holders"
NODES = "SELECT node, epoch, seen FROM nodes ORDER BY node"


@dataclass
class Node:
    """A daemon and its clock."""

    running: RunningDaemon
    clock: ManualClock
    vigil: Vigil

    async def lives(self, seconds: float) -> None:
        """Let time pass for it, a look at a time."""
        for _ in range(int(seconds / LOOK)):
            await self.clock.advance(LOOK)
            await self.vigil.look()

    def starts(self, text: str) -> Watcher:
        known = self.running.daemon.agents.find("ada")
        options = TurnOptions(turn_id=KEY)
        turns = self.running.daemon.turns
        return turns.watch(Context(OPERATOR), known, user_message(text), options)

    async def resumes(self) -> Watcher:
        known = self.running.daemon.agents.find("ada")
        return await self.running.daemon.turns.resume(Context(OPERATOR), known, KEY)

    async def state(self) -> TurnState | None:
        found = await self.running.daemon.journal.find(KEY)
        return None if found is None else found.state

    async def nodes(self) -> dict[str, tuple[int, float]]:
        rows = await self.running.daemon.store.read(NODES)
        return {row["node"]: (row["epoch"], row["seen"]) for row in rows}


Begun = Callable[[str], Awaitable[Node]]


@pytest.fixture
def begun(daemons: Daemons, database: str, monkeypatch: pytest.MonkeyPatch) -> Begun:
    """What starts a daemon of a name that looks when the test says so."""
    monkeypatch.setattr(Vigil, "begin", lambda _: None)

    async def begin(name: str) -> Node:
        clock = ManualClock()
        running = await daemons.start(config=on(database, name), clock=clock)
        return Node(running, clock, Vigil(running.daemon))

    return begin


@pytest.fixture
async def two(begun: Begun) -> list[Node]:
    return [await begun("a"), await begun("b")]


async def under_way(one: Node, other: Node) -> tuple[Watcher, Pause]:
    """Begin a turn that waits for its model."""
    await one.running.agent("ada")
    await becomes(other.running, knows(other.running, "ada"))
    pause = Pause()
    one.running.model.says("one", pause, "two")
    watcher = one.starts("go")
    await pause.reached.wait()
    return watcher, pause


async def ends(watcher: Watcher) -> Any:
    return await ends_of(watcher.turn)


async def ends_of(turn: Turn) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await turn.result()


async def test_a_turn_of_a_daemon_that_lives_stays_its_own(two: list[Node]) -> None:
    one, other = two
    watcher, pause = await under_way(one, other)
    for _ in range(int(3 * DEAD / LOOK)):
        await one.lives(LOOK)
        await other.lives(LOOK)
    assert await other.state() is TurnState.RUNNING
    pause.go_on()
    assert (await ends(watcher)).text == "onetwo"


async def test_a_turn_of_a_dead_daemon_goes_on_on_another_and_ends_once(
    two: list[Node],
) -> None:
    one, other = two
    watcher, pause = await under_way(one, other)
    await other.lives(DEAD)
    assert await other.state() is TurnState.RUNNING
    await other.lives(2 * LOOK)
    assert await other.state() is TurnState.INTERRUPTED
    other.running.model.says("whole")
    assert (await ends(await other.resumes())).text == "whole"
    pause.go_on()
    with pytest.raises(Superseded):
        await ends(watcher)
    assert await other.state() is TurnState.DONE
    session = await other.running.known_agent("ada").session()
    said = [message["content"] for message in session["messages"]]
    assert said == ["go", "whole"]


async def test_a_daemon_that_was_taken_for_dead_enters_anew(two: list[Node]) -> None:
    one, other = two
    watcher, pause = await under_way(one, other)
    await other.lives(DEAD + 2 * LOOK)
    assert (await other.nodes())["a"] == (2, 0)
    await one.lives(LOOK)
    epoch, seen = (await other.nodes())["a"]
    assert (epoch, seen > 0, one.running.daemon.writer.epoch) == (3, True, 3)
    # What it was doing it has lost, also where nobody else has taken it up.
    pause.go_on()
    with pytest.raises(Superseded):
        await ends(watcher)
    assert await other.state() is TurnState.INTERRUPTED
    one.running.model.says("whole")
    assert (await ends(await one.resumes())).text == "whole"
    one.running.model.says("again")
    assert await one.running.known_agent("ada").ask("more") == "again"


async def test_a_step_before_it_enters_anew_is_refused(two: list[Node]) -> None:
    one, other = two
    watcher, pause = await under_way(one, other)
    await other.lives(DEAD + 2 * LOOK)
    pause.go_on()
    with pytest.raises(Superseded):
        await ends(watcher)
    assert await other.state() is TurnState.INTERRUPTED


async def test_what_waits_behind_a_dead_daemon_goes_on(two: list[Node]) -> None:
    one, other = two
    watcher, pause = await under_way(one, other)
    behind = other.running.known_agent("ada").start("behind")
    await other.lives(DEAD + 2 * LOOK)
    assert (await ends_of(behind.turn)).text == "You said: behind"
    pause.go_on()
    with pytest.raises(Superseded):
        await ends(watcher)
    session = await other.running.known_agent("ada").session()
    said = [message["content"] for message in session["messages"]]
    assert said == ["go", "behind", "You said: behind"]


async def test_what_waits_on_a_daemon_that_was_taken_for_dead_is_refused(
    two: list[Node],
) -> None:
    one, other = two
    watcher, pause = await under_way(other, one)
    behind = one.running.known_agent("ada").start("behind")
    async with asyncio.timeout(PATIENCE):
        while len(await other.running.daemon.store.read(LINE)) < 2:  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)
    await other.lives(DEAD + 2 * LOOK)
    with pytest.raises(Superseded, match="stood still for too long"):
        await ends_of(behind.turn)
    pause.go_on()
    assert (await ends(watcher)).text == "onetwo"
    with pytest.raises(Superseded, match="stood still for too long"):
        await ends_of(one.running.known_agent("ada").start("at once").turn)
    await one.lives(LOOK)
    assert await one.running.known_agent("ada").ask("more") == "You said: more"


async def test_a_dead_daemon_is_buried_once(
    two: list[Node], caplog: pytest.LogCaptureFixture
) -> None:
    one, other = two
    _, pause = await under_way(one, other)
    await other.lives(4 * DEAD)
    assert (await other.nodes())["a"] == (2, 0)
    buried = [r for r in caplog.records if "no sign of life" in r.getMessage()]
    assert len(buried) == 1
    assert "1 turns" in buried[0].getMessage()
    pause.go_on()


async def test_a_daemon_that_stops_in_order_is_not_taken_for_dead(
    daemons: Daemons, database: str
) -> None:
    first = await daemons.start(config=on(database, "a"))
    entered = (await first.daemon.store.read(NODES))[0]["seen"]
    async with asyncio.timeout(PATIENCE):
        while (await first.daemon.store.read(NODES))[0]["seen"] == entered:  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)
    await daemons.close()
    other = await daemons.start(config=on(database, "b"))
    gone, _ = await other.daemon.store.read(NODES)
    assert (gone["node"], gone["epoch"], gone["seen"]) == ("a", 1, 0)


async def test_one_that_still_holds_a_session_at_its_end_is_buried(
    two: list[Node],
) -> None:
    one, other = two
    daemon = one.running.daemon
    await daemon.journal.line_up("s", "w", daemon.writer).reached()
    one.vigil._task = asyncio.create_task(asyncio.sleep(PATIENCE))
    await one.vigil.end()
    assert (await other.nodes())["a"][1] > 0
    await other.lives(DEAD + 2 * LOOK)
    assert await other.running.daemon.store.read(LINE) == []


async def test_of_two_processes_of_one_node_the_first_stays_refused(
    begun: Begun, caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = await begun("a"), await begun("a")
    await first.lives(4 * LOOK)
    assert (await first.nodes())["a"][0] == 2
    assert first.running.daemon.writer.epoch == 1
    assert caplog.text.count("another process has started as node 'a'") == 1


async def test_a_database_that_goes_away_kills_nobody(
    two: list[Node], server: Server, database: str
) -> None:
    one, other = two
    await one.lives(LOOK)
    await other.lives(DEAD - LOOK)
    end_connections(server, database)
    # This look fails, and all are timed anew.
    await other.lives(LOOK)
    await until_healthy(other.running.daemon.store)
    await other.lives(DEAD)
    assert (await other.nodes())["a"][0] == 1


async def test_a_database_of_one_daemon_has_no_vigil(daemons: Daemons) -> None:
    clock = ManualClock()
    alone = await daemons.start(clock=clock)
    before = (await alone.daemon.store.read(NODES))[0]["seen"]
    await clock.advance(60)
    assert (await alone.daemon.store.read(NODES))[0]["seen"] == before
