"""What did not arrive is told to the agent that said it, once, and shown in the API."""

from __future__ import annotations

from typing import Any

from agenthost.testing import Daemons, RunningDaemon
from agenthost_channels.contract import Fate, Room, Sent

from .pager import CONFIG, LOST, Pager, said
from .test_bridge import changed, quiet, started
from .test_care import posted

REFUSED = Sent(Fate.NOT_SENT, reason="blocked by them", final=True)
ALL = f'{CONFIG}group_policy = "all"\nsend_to = ["ada"]\n'


def asked(running: RunningDaemon) -> str:
    return str(running.model.requests[-1].messages[-1].text)


async def hears(running: RunningDaemon, pager: Pager, *given: Any, **named: Any) -> str:
    """Have something said and answered; give what the agent was asked."""
    await pager.lines[-1].received(said(*given, **named))
    await quiet(running)
    return asked(running)


async def test_an_agent_is_told_once_what_did_not_arrive(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, ALL)
    await pager.line()
    pager.fates = [REFUSED]
    running.model.says("the *first*\n\nanswer")
    assert await hears(running, pager, "one", 1) == "one"
    pager.fates = [LOST]
    running.model.says("x" * 500)
    told = await hears(running, pager, "two", 2)
    lost = "what you said here before did not arrive (blocked by them)"
    assert told == f'[{lost}: "the first answer"]\n\ntwo'
    told = await hears(running, pager, "three", 3)
    unknown = "nobody knows whether what you said here before arrived (the line broke)"
    assert told == f'[{unknown}: "{"x" * 200}..."]\n\nthree'
    assert await hears(running, pager, "four", 4) == "four"


async def test_it_is_told_in_its_own_conversation_alone(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, ALL)
    await pager.line()
    pager.fates = [REFUSED]
    await hears(running, pager, "one", 1)
    group = {"peer": "team", "room": Room.GROUP}
    assert await hears(running, pager, "two", 2, **group) == "two"
    # A command asks no agent.
    await hears(running, pager, "/agents", 3)
    assert (await hears(running, pager, "four", 4)).startswith("[what you said here")


async def test_what_was_said_first_is_not_told_again(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, ALL)
    await pager.line()
    pager.fates = [REFUSED]
    assert (await posted(running, "test", {"to": "ada"}))[0] == 200
    assert await hears(running, pager, "one", 1) == "one"


async def test_a_file_that_was_lost_has_no_words(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, ALL)
    await pager.line()
    pager.fates = [REFUSED]
    await hears(running, pager, "one", 1)
    await changed(running, "UPDATE channel_outbox SET plain = ''")
    assert "(blocked by them): a file]" in await hears(running, pager, "two", 2)


async def test_the_api_shows_what_was_lost(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, ALL)
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
