"""Whole daemons on one PostgreSQL: what one does the others know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from agenthost import Cancelled, ConfigError, NotFound
from agenthost.testing import Daemons, Pause, RunningAgent, RunningDaemon

pytestmark = pytest.mark.conformance

PATIENCE = 60.0


def on(database: str, node: str) -> str:
    return f'node = "{node}"\n[storage]\nurl = "{database}"\n'


async def both(daemons: Daemons, database: str) -> list[RunningDaemon]:
    return [await daemons.start(config=on(database, name)) for name in ("a", "b")]


async def becomes(daemon: RunningDaemon, known: Callable[[], bool]) -> None:
    """Wait until a daemon knows what another has done."""
    async with asyncio.timeout(PATIENCE):
        while not known():
            await daemon.http.get("/api/health")


def knows(daemon: RunningDaemon, name: str) -> Callable[[], bool]:
    return lambda: any(each.name == name for each in daemon.daemon.agents.list())


async def test_a_daemon_keeps_all_it_has_in_postgresql(
    daemons: Daemons, database: str
) -> None:
    first = await daemons.start(config=on(database, "a"))
    agent = await first.agent("ada")
    await agent.ask("hello")
    before = await agent.session()
    assert not (first.daemon.data_dir / "agenthost.db").exists()
    await daemons.close()
    again = await daemons.start(config=on(database, "a"))
    found = again.known_agent("ada")
    assert await found.session() == before
    assert (await again.http.get("/api/health/detail")).json()["status"] == "ok"


async def test_an_agent_that_one_daemon_makes_answers_on_the_other(
    daemons: Daemons, database: str
) -> None:
    first, second = await both(daemons, database)
    here = await first.agent("ada")
    await here.ask("my name is Ada")
    await becomes(second, knows(second, "ada"))
    there = RunningAgent(second, here.id, "ada")
    await there.ask("who am I?")
    await here.ask("and now?")
    assert await here.session() == await there.session()
    said = [message["content"] for message in (await here.session())["messages"]]
    assert [text for text in said if text in {"my name is Ada", "who am I?"}] == [
        "my name is Ada",
        "who am I?",
    ]
    (request,) = first.model.requests[-1:]
    assert "who am I?" in str(request)


async def test_an_agent_that_one_daemon_deletes_is_gone_on_the_other(
    daemons: Daemons, database: str
) -> None:
    first, second = await both(daemons, database)
    kept, gone = await first.agent("kept"), await first.agent("gone")
    await becomes(second, knows(second, "gone"))
    pause = Pause()
    second.model.says("one", pause)
    running = RunningAgent(second, gone.id, "gone").start("go")
    await pause.reached.wait()
    assert (await first.http.delete(f"/api/agents/{gone.id}")).status_code < 300
    await becomes(second, lambda: not knows(second, "gone")())
    with pytest.raises(NotFound):
        second.daemon.agents.find("gone")
    assert second.known_agent("kept").id == kept.id
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Cancelled):
            await running.result()
    again = await first.agent("gone")
    await becomes(second, knows(second, "gone"))
    assert second.known_agent("gone").id == again.id


async def test_a_change_of_an_agent_is_known_on_the_other(
    daemons: Daemons, database: str
) -> None:
    first, second = await both(daemons, database)
    agent = await first.agent("ada")
    await becomes(second, knows(second, "ada"))
    old = second.daemon.agents.get(agent.id).session_id
    answer = await first.http.post(f"/api/agents/{agent.id}/session/reset")
    assert answer.status_code == 200, answer.text
    await becomes(second, lambda: second.daemon.agents.get(agent.id).session_id != old)


async def test_a_daemon_whose_database_is_not_there_does_not_start(
    daemons: Daemons,
) -> None:
    with pytest.raises(ConfigError, match="no plugin serves the port store 'mysql'"):
        await daemons.start(config='[storage]\nurl = "mysql://localhost/x"\n')
