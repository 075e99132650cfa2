"""What did not arrive is told to the agent that said it, once, and shown in the API."""

from __future__ import annotations

from typing import Any

from agenthost.testing import Daemons, RunningDaemon
from agenthost_channels.bridge.losses import TOLD
from agenthost_channels.contract import Fate, Room, Sent

from .pager import CONFIG, LOST, Pager, said
from .test_bridge import quiet, started
from .test_care import posted

REFUSED = Sent(Fate.NOT_SENT, reason="blocked by them", final=True)
BRIEF = f'{CONFIG}group_policy = "all"\ninstructions = "Be brief."\n'


def told(failed: int, unknown: int) -> str:
    return TOLD.format(failed=failed, unknown=unknown)


async def hears(running: RunningDaemon, pager: Pager, *given: Any, **named: Any) -> str:
    """Have something said and answered; give what stood behind the system prompt."""
    await pager.lines[-1].received(said(*given, **named))
    await quiet(running)
    asked = running.model.requests[-1]
    assert asked.messages[-1].text == given[0]
    return str(asked.system.rpartition("Be brief.")[2].strip())


async def test_an_agent_is_told_once_what_did_not_arrive(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, BRIEF)
    await pager.line()
    pager.fates = [REFUSED]
    assert await hears(running, pager, "one", 1) == ""
    pager.fates = [LOST]
    assert await hears(running, pager, "two", 2) == told(1, 0)
    assert await hears(running, pager, "three", 3) == told(0, 1)
    assert await hears(running, pager, "four", 4) == ""


async def test_it_is_told_in_its_own_conversation_alone(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, BRIEF)
    await pager.line()
    pager.fates = [REFUSED]
    await hears(running, pager, "one", 1)
    group = {"peer": "team", "room": Room.GROUP}
    assert await hears(running, pager, "two", 2, **group) == ""
    # A command asks no agent.
    await pager.lines[-1].received(said("/agents", 3))
    assert await hears(running, pager, "four", 4) == told(1, 0)


async def test_what_was_said_first_is_not_told_again(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, BRIEF)
    await pager.line()
    pager.fates = [REFUSED]
    assert (await posted(running, "test", {"to": "ada"}))[0] == 200
    assert await hears(running, pager, "one", 1) == ""


async def test_the_api_shows_what_was_lost(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, BRIEF)
    await pager.line()
    pager.fates = [REFUSED, LOST]
    for number in (1, 2, 3):
        await hears(running, pager, "hi", number)
    shown = (await running.http.get("/api/channels/pager/lost")).json()
    assert shown["total"] == 2
    assert [(each["to"], each["state"], each["reason"]) for each in shown["lost"]] == [
        ("ada", "unknown", "the line broke"),
        ("ada", "failed", "blocked by them"),
    ]
    assert all(each["said_at"].endswith("Z") for each in shown["lost"])
    assert (await running.http.get("/api/channels/nosuch/lost")).status_code == 404
    listed = (await running.http.get("/api/channels")).json()["channels"]
    [row] = [each for each in listed if each["name"] == "pager"]
    assert row["configured"]
    known = {"unanswered": 0, "waiting": 0, "sending": 0, "delivered": 1}
    assert row["counts"] == {**known, "failed": 1, "unknown": 1}
    assert [each["name"] for each in listed if each["configured"]] == ["pager"]
