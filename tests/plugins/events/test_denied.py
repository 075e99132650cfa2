"""A call that was denied is an event of its own, recorded with its result."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from agenthost import Deny, Keep, ToolDenied, Unavailable
from agenthost.testing import Daemons, RunningDaemon
from sqlalchemy import text

from ..approvals.stage import TOOLS, Shop, answer, ask, listed, wait_until

if TYPE_CHECKING:
    from sqlalchemy import Connection

BOOK = "CREATE TABLE IF NOT EXISTS denials (id TEXT)"
LINE = "INSERT INTO denials VALUES (:id)"


def listening(daemon: RunningDaemon) -> list[ToolDenied]:
    """Note what is denied, in the commit of the result and once it is told."""
    told: list[ToolDenied] = []
    events = daemon.daemon.events

    def note(event: ToolDenied) -> Keep:
        return partial(_line, id_=event.id)

    events.record(note, ToolDenied)
    events.subscribe(told.append, ToolDenied)
    return told


def _line(connection: Connection, id_: str) -> None:
    connection.execute(text(BOOK))
    connection.execute(text(LINE), {"id": id_})


async def book(daemon: RunningDaemon) -> list[Any]:
    """Read what was noted."""
    rows = await daemon.daemon.store.read("SELECT * FROM denials")
    return [row["id"] for row in rows]


async def test_a_right_and_a_guard_that_deny_are_told_with_the_result(
    daemons: Daemons,
) -> None:
    shop = Shop(asks={"ship": Deny("not today")})
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent("ada", tools=("ship", "look"))
    told = listening(daemon)
    # Not in one answer: behind a call that failed no effect is tried.
    for tool in ("pay", "ship", "look"):
        daemon.model.calls(tool)
    await agent.ask("do it all")
    assert [(each.tool, each.denied_by) for each in told] == [
        ("pay", "right"),
        ("ship", "guard"),
    ]
    assert "not today" in told[1].reason
    assert {each.subject for each in told} == {agent.id}
    assert all(each.turn_id and each.by for each in told)
    assert await book(daemon) == [each.id for each in told]


@pytest.mark.conformance
async def test_a_denial_that_may_not_be_recorded_does_not_happen(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent("ada", tools=())

    def refuse(_: ToolDenied) -> Keep:
        raise Unavailable("the book is closed")

    daemon.daemon.events.record(refuse, ToolDenied)
    daemon.model.calls("kv_get", key="colour")
    assert (await agent.send("pay")).status_code == 503
    rows = await daemon.daemon.store.read("SELECT id FROM messages WHERE role = 'tool'")
    assert rows == []


@pytest.mark.conformance
async def test_a_no_of_a_person_is_told_once(daemons: Daemons) -> None:
    shop = Shop(asks={"pay": ask()})
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent("ada", tools=TOOLS[:3])
    told = listening(daemon)
    daemon.model.calls("pay", amount=5)
    assert (await agent.send("pay")).status_code == 202
    (question,) = await listed(daemon, state="pending")
    await answer(daemon, question["id"], "deny", reason="too dear")

    async def denied() -> bool:
        return bool(told)

    await wait_until(denied, "the no is told")
    assert [(each.tool, each.denied_by) for each in told] == [("pay", "approval")]
    assert "too dear" in told[0].reason
    assert len(await book(daemon)) == 1


@pytest.mark.conformance
async def test_a_call_that_fails_is_no_denial(daemons: Daemons) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent("ada")
    told = listening(daemon)
    daemon.model.calls_all(("calculate", {"expression": "1/0"}), ("nothing", {}))
    await agent.ask("go")
    assert told == []
