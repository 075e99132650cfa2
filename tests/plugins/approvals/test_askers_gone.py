"""Whoever asked may be switched off before the answer: what people said still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    OPERATOR,
    AgentView,
    Context,
    Manifest,
    TurnState,
)
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningDaemon
from agenthost_records.codec import digest_of
from agenthost_records.tables import messages, turns
from sqlalchemy import Connection, update

from .stage import TOOLS, Shop, answer, ask, ends, listed, results, wait_until, waits

BOTH_OFF = '[plugins]\ndisable = ["plugin:approvals"]\n'


async def asked(
    daemons: Daemons, shop: Shop, home: Path, *tools: str
) -> tuple[RunningDaemon, dict[str, Any]]:
    """A daemon whose turn waits, and which answers it takes without acting on them."""
    daemon = await daemons.start(home=home, plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls_all(*((tool, {"amount": 7}) for tool in tools or ("pay",)))
    told = await waits(agent, "pay")
    await daemon.daemon.approvals.keeper.stop()  # type: ignore[attr-defined]
    return daemon, told


async def without_asker(
    daemons: Daemons, shop: Shop, home: Path, config: str = ""
) -> RunningDaemon:
    """The next daemon of the home; nobody there asks about anything."""
    shop.asks.clear()
    shop.second.clear()
    return await daemons.start(home=home, plugins=shop.tools_alone, config=config)


async def resumed(daemon: RunningDaemon, turn_id: str) -> int:
    """Go on with a turn by hand."""
    agent = daemon.known_agent("tester")
    path = f"/api/agents/{agent.id}/turns/{turn_id}/resume"
    return (await daemon.http.post(path)).status_code


async def as_after_a_crash(daemon: RunningDaemon, turn_id: str) -> None:
    """Leave the question on disk, and the turn as it was before it came to wait."""
    interrupted = update(turns).where(turns.c.id == turn_id).values(state="interrupted")
    await daemon.daemon.store.write(lambda c: bool(c.execute(interrupted)))


@pytest.mark.parametrize("tool", ["pay", "look"])
async def test_a_no_holds_when_who_asked_is_switched_off(
    daemons: Daemons, shop: Shop, tmp_path: Path, tool: str
) -> None:
    shop.asks = {tool: ask()}
    first, told = await asked(daemons, shop, tmp_path, tool)
    await answer(first, told["approval_id"], "deny", reason="too dear")
    await first.daemon.stop()
    second = await without_asker(daemons, shop, tmp_path)
    await ends(second, told["turn_id"], TurnState.DONE)
    assert shop.runs == []
    assert results(second) == [f"{tool} failed: a person said no: too dear"]


async def test_a_yes_holds_with_its_values_when_who_asked_is_switched_off(
    daemons: Daemons, shop: Shop, tmp_path: Path
) -> None:
    shop.asks["pay"] = ask("From which?", choices=("savings", "current"))
    first, told = await asked(daemons, shop, tmp_path)
    await answer(first, told["approval_id"], values={"choice": "savings"})
    await first.daemon.stop()
    second = await without_asker(daemons, shop, tmp_path)
    await ends(second, told["turn_id"], TurnState.DONE)
    assert (shop.runs, shop.answers) == ([("pay", 7)], [{"choice": "savings"}])


async def test_an_open_question_whose_asker_is_gone_is_a_no(
    daemons: Daemons, shop: Shop, tmp_path: Path
) -> None:
    first, told = await asked(daemons, shop, tmp_path)
    await as_after_a_crash(first, told["turn_id"])
    await first.daemon.stop()
    second = await without_asker(daemons, shop, tmp_path)
    assert await resumed(second, told["turn_id"]) == 200
    assert shop.runs == []
    assert "who asked is gone" in results(second)[0]
    (row,) = await listed(second)
    assert (row["state"], row["reason"]) == ("cancelled", "who asked is gone")
    assert (await answer(second, row["id"])).status_code == 409


async def test_the_yes_to_another_guard_is_none_to_the_one_that_is_gone(
    daemons: Daemons, shop: Shop, tmp_path: Path
) -> None:
    shop.second["pay"] = ask("Does the other guard agree?")
    first, told = await asked(daemons, shop, tmp_path)
    await answer(first, told["approval_id"])
    await first.daemon.stop()
    # It goes on, and comes to wait for the other guard's question.
    second = await daemons.start(home=tmp_path, plugins=shop.plugins)

    async def asks_again() -> bool:
        return bool(await listed(second, state="pending"))

    await wait_until(asks_again, "the other guard asks")
    pending = await listed(second, state="pending")
    await ends(second, told["turn_id"], TurnState.WAITING)
    await as_after_a_crash(second, told["turn_id"])
    await second.daemon.stop()
    third_shop = Shop(asks={"pay": ask()}, runs=shop.runs)
    third = await daemons.start(home=tmp_path, plugins=third_shop.plugins)
    assert await resumed(third, told["turn_id"]) == 200
    assert shop.runs == []
    (row,) = [each for each in await listed(third) if each["id"] == pending[0]["id"]]
    assert row["state"] == "cancelled"


async def test_a_call_that_was_changed_since_is_not_the_one_approved(
    daemons: Daemons, shop: Shop, tmp_path: Path
) -> None:
    first, told = await asked(daemons, shop, tmp_path)

    def change(connection: Connection) -> None:
        mine = messages.c.turn_id == told["turn_id"]
        for row in connection.execute(messages.select().where(mine)).mappings().all():
            parts = row["parts"].replace('"amount":7', '"amount":7000')
            values = {"parts": parts, "digest": digest_of(parts)}
            this = messages.c.id == row["id"]
            connection.execute(update(messages).where(this).values(**values))

    await first.daemon.store.write(change)
    await answer(first, told["approval_id"])
    await first.daemon.stop()
    second = await without_asker(daemons, shop, tmp_path)
    await ends(second, told["turn_id"], TurnState.DONE)
    assert shop.runs == []
    assert "not the one that a person was asked about" in results(second)[0]


async def test_without_the_plugin_approvals_a_turn_that_waited_runs_nothing(
    daemons: Daemons, shop: Shop, tmp_path: Path
) -> None:
    first, told = await asked(daemons, shop, tmp_path)
    await answer(first, told["approval_id"], "deny")
    await first.daemon.stop()
    second = await without_asker(daemons, shop, tmp_path, BOTH_OFF)
    assert await resumed(second, told["turn_id"]) == 200
    assert shop.runs == []
    assert "enable the plugin approvals" in results(second)[0]


def test_an_agent_called_by_a_call_brought_again_is_a_new_turn() -> None:
    view = AgentView("a", "a", Manifest(name="a"), "s")
    inside = Context(OPERATOR, found="waiting").for_agent(view, OPERATOR, "t")
    assert inside.found == ""
