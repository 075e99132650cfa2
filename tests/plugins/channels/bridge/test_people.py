"""Strangers and codes, agents by place, commands, and what a section changes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from agenthost.testing import Daemons, Pause, Recorded, RunningDaemon
from agenthost_channels.bridge import writes
from agenthost_channels.bridge.events import ChannelPaired
from agenthost_channels.bridge.hearing import row_of
from agenthost_channels.contract import Room, Sender

from .pager import CONFIG, FACTS, Pager, said
from .test_bridge import changed, quiet, rows, started

PAIRING = CONFIG + 'dm_policy = "pairing"\n'
PATH = "/api/channels/pager/pairings"


def texts(pager: Pager) -> list[str]:
    return [each.text for each in pager.sent]


async def asked(running: RunningDaemon) -> list[dict[str, Any]]:
    answer = await running.http.get(PATH)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["pairings"]
    return found


@pytest.mark.setting("channels.<name>.dm_policy")
async def test_a_stranger_gets_one_code_and_nothing_else(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, PAIRING)
    line = await pager.line()
    for number in range(5):
        await line.received(said("let me in", number, sender="eve", peer="eve"))
    await line.received(said("us", 9, sender="mob", peer="#chat", room=Room.GROUP))
    await quiet(running)
    [greeting] = pager.sent
    [pairing] = await asked(running)
    assert pairing["code"] in greeting.text
    assert (greeting.place.peer, pairing["sender"]) == ("eve", "eve")
    assert running.model.requests == []
    assert await rows(running, "SELECT count(*) FROM channel_inbox") == [(0,)]


@pytest.mark.conformance
async def test_who_was_let_in_speaks_as_a_person_until_unlinked(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager, PAIRING)
    told = Recorded(running.daemon.events, ChannelPaired)
    line = await pager.line()
    await line.received(said("let me in", 1, sender="eve", peer="eve"))
    await quiet(running)
    [pairing] = await asked(running)
    path = f"{PATH}/{pairing['code'].lower()}/approve"
    answer = await running.http.post(path, json={})
    assert answer.status_code == 200, answer.text
    person = answer.json()
    assert (person["sender"], person["person_name"]) == ("eve", "pager eve")
    assert await asked(running) == []
    assert (await running.http.post(path, json={})).status_code == 404
    running.model.says("hello eve")
    await line.received(said("hi", 2, sender="eve", peer="eve"))
    await quiet(running)
    assert texts(pager)[1:] == ["You can talk to me now.", "hello eve"]
    async with asyncio.timeout(30):
        while not told.told:
            await asked(running)
    [event] = told.told
    assert isinstance(event, ChannelPaired)
    assert (event.sender, event.person_id) == ("eve", person["person_id"])
    link = f"/api/persons/{person['person_id']}/links/channel_user/pager:eve"
    assert (await running.http.delete(link)).status_code == 200
    await line.received(said("still here?", 3, sender="eve", peer="eve"))
    await quiet(running)
    assert len(running.model.requests) == 1
    assert "do not know you" in texts(pager)[-1]


async def test_a_code_can_be_refused_and_many_strangers_fill_nothing(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenthost_channels.bridge import hearing

    monkeypatch.setattr(hearing, "MOST_PENDING", 3)
    pager = Pager()
    running = await started(daemons, pager, PAIRING)
    line = await pager.line()
    for number in range(6):
        await line.received(said("in", number, sender=f"e{number}", peer=f"e{number}"))
    await quiet(running)
    pending = await asked(running)
    assert [each["sender"] for each in pending] == ["e0", "e1", "e2"]
    gone = await running.http.delete(f"{PATH}/{pending[0]['code']}")
    assert gone.json() == {"status": "rejected", "code": pending[0]["code"]}
    await line.received(said("in", 9, sender="e9", peer="e9"))
    await quiet(running)
    assert [each["sender"] for each in await asked(running)] == ["e1", "e2", "e9"]
    assert (await running.http.delete(f"{PATH}/NOSUCH")).status_code == 404
    assert await rows(running, "SELECT count(*) FROM persons") == [(0,)]


@pytest.mark.conformance
@pytest.mark.setting(
    "channels.<name>.agents",
    "channels.<name>.bindings",
    "channels.<name>.bindings[].agent",
    "channels.<name>.bindings[].also",
)
async def test_agents_answer_by_place_and_by_choice(daemons: Daemons) -> None:
    pager = Pager()
    config = (
        CONFIG
        + """agents = ["coder"]
[[channels.pager.bindings]]
agent = "helper"
also = ["coder"]
peer = "both"
"""
    )
    running = await started(daemons, pager, config)
    coder = await running.agent("coder")
    line = await pager.line()
    running.model.says("I help")
    running.model.says("I code")
    await line.received(said("who are you?", 1, peer="both"))
    await quiet(running)
    assert texts(pager) == ["helper: I help", "coder: I code"]
    await line.received(said("/agents", 2), said("/agent codr", 3))
    await quiet(running)
    assert "helper (answers now)" in texts(pager)[2]
    assert "no agent codr to choose" in texts(pager)[3]
    running.model.says("coding")
    await line.received(said("/agent coder", 4), said("go", 5))
    await quiet(running)
    assert texts(pager)[4:] == ["coder answers here from now on.", "coding"]
    of = "SELECT agent_id FROM sessions WHERE key LIKE 'channel:%'"
    kept = [str(agent) for (agent,) in await rows(running, of)]
    assert kept.count(coder.id) == 2


async def test_an_agent_that_may_be_chosen_no_more_answers_no_more(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager, f'{CONFIG}agents = ["coder"]\n')
    coder = await running.agent("coder")
    line = await pager.line()
    await line.received(said("/agent coder", 1), said("go", 2))
    await quiet(running)
    await running.daemon.stop()
    again = await started(daemons, pager, home=running.daemon.home)
    await pager.until(lambda: len(pager.lines) == 2)
    await pager.lines[-1].received(said("and now?", 3))
    await quiet(again)
    of = "SELECT agent_id FROM turns ORDER BY rowid"
    asked_ = [agent == coder.id for (agent,) in await rows(again, of)]
    assert asked_ == [True, False]


@pytest.mark.conformance
async def test_a_conversation_begins_anew_and_can_be_stopped(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    running.model.says("one")
    running.model.says("two")
    await line.received(said("remember me", 1), said("/new", 2), said("who am I?", 3))
    await quiet(running)
    assert texts(pager)[0] == "one"
    assert texts(pager)[2] == "two"
    last = running.model.requests[-1].messages
    assert "remember me" not in str(last)
    main = await running.daemon.sessions.of_agent(
        running.daemon.agents.find("helper").id
    )
    assert main.next_seq == main.first_seq
    pause = Pause()
    running.model.says("never", pause, "ending")
    await line.received(said("go on", 4))
    await pause.reached.wait()
    await line.received(said("/stop", 5))
    await quiet(running)
    assert texts(pager)[3:] == ["Stopped."]
    await line.received(said("/stop", 6))
    await quiet(running)
    assert texts(pager)[4:] == ["Nothing was running."]


@pytest.mark.conformance
@pytest.mark.setting("channels.<name>.operators")
async def test_commands_do_what_their_giver_may(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, CONFIG + 'operators = ["root"]\n')
    line = await pager.line()
    given = ["/help", "/think", "/think", "/compact", "/model", "/usage", "/nonsense"]
    await line.received(*(said(text, n) for n, text in enumerate(given)))
    await line.received(said("/model offline-1", 20))
    await quiet(running)
    shown, on, off, short, model, usage, unknown, change = texts(pager)
    for name in ("new", "stop", "compact", "model", "think", "usage", "help", "agent"):
        assert f"/{name}" in shown
    assert ("on" in on, "off" in off) == (True, True)
    assert "nothing to compact" in short
    assert "The model is" in model
    assert "no command /nonsense" in unknown
    for refused in (usage, change):
        assert "agents:write" in refused
    await line.received(said("/usage", 30, sender="root", peer="root"))
    await quiet(running)
    assert "tokens in" in texts(pager)[-1]
    assert running.model.requests == []


@pytest.mark.setting(
    "channels.<name>.instructions",
    "channels.<name>.output_format",
    "channels.<name>.threading",
    "channels.<name>.prefix_agent_name",
)
async def test_a_section_changes_how_answers_look(daemons: Daemons) -> None:
    pager = Pager()
    config = (
        CONFIG
        + 'instructions = "Be brief."\noutput_format = "plain"\n'
        + "threading = false\nprefix_agent_name = true\n"
    )
    running = await started(daemons, pager, config)
    line = await pager.line()
    running.model.says("*yes*")
    await line.received(said("well?"))
    await quiet(running)
    [answer] = pager.sent
    assert (answer.text, answer.reply_to) == ("helper: yes", "")
    assert "Be brief." in running.model.requests[0].system


@pytest.mark.setting("channels.<name>.model")
@pytest.mark.parametrize("pinned", [True, False])
async def test_a_section_has_another_model_answer(
    daemons: Daemons, *, pinned: bool
) -> None:
    pager = Pager()
    config = f'{CONFIG}model = "offline/offline"\n'
    running = await started(daemons, pager, config)
    if pinned:
        place = f"/api/agents/{running.known_agent('helper').id}/mode"
        answer = await running.http.put(place, json={"mode": "Stable"})
        assert answer.status_code == 200, answer.text
    line = await pager.line()
    await line.received(said("calculate 6 * 7"))
    await quiet(running)
    assert bool(running.model.requests) == pinned
    assert ("42" in pager.sent[-1].text) != pinned


@pytest.mark.setting("channels.<name>.typing_indicator")
@pytest.mark.parametrize("shown", [True, False])
async def test_it_is_shown_that_an_answer_is_made(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch, shown: bool
) -> None:
    typing = replace(FACTS, typing_every=0.02)
    monkeypatch.setattr("tests.plugins.channels.bridge.pager.FACTS", typing)
    pager = Pager()
    config = CONFIG + f"typing_indicator = {str(shown).lower()}\n"
    running = await started(daemons, pager, config)
    line = await pager.line()
    pause = Pause()
    running.model.says(pause, "done")
    await line.received(said("/agents", 1), said("well?", 2))
    await pause.reached.wait()
    if shown:
        await pager.until(lambda: sum(each.typing for each in pager.sent) >= 2)
    pause.go_on()
    await quiet(running)
    said_ = [each for each in pager.sent if not each.typing]
    assert [each.reply_to for each in said_] == ["m1", "m2"]
    signs = [each for each in pager.sent if each.typing]
    assert bool(signs) is shown
    assert pager.sent[-1] is said_[-1]
    assert {each.place.peer for each in signs} <= {"ada"}


@pytest.mark.conformance
@pytest.mark.setting("channels.<name>.rate_limit_per_user")
async def test_who_is_too_fast_is_told_once_and_not_answered(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, CONFIG + "rate_limit_per_user = 2\n")
    line = await pager.line()
    await line.received(*(said("hi", number) for number in range(6)))
    await quiet(running)
    assert len(running.model.requests) == 2
    assert sum("too fast" in text for text in texts(pager)) == 1


@pytest.mark.conformance
@pytest.mark.setting(
    "channels.<name>.new_after_messages", "channels.<name>.new_after_idle_minutes"
)
async def test_a_conversation_rolls_over_by_size(daemons: Daemons) -> None:
    pager = Pager()
    config = CONFIG + "new_after_messages = 2\nnew_after_idle_minutes = 60\n"
    running = await started(daemons, pager, config)
    line = await pager.line()
    for number in range(5):
        await line.received(said(f"word{number}", number))
        await quiet(running)
    seen = [str(each.messages) for each in running.model.requests]
    known = [[f"word{n}" in one for n in range(5)] for one in seen]
    assert known == [
        [True, False, False, False, False],
        [True, True, False, False, False],
        [False, False, True, False, False],
        [False, False, True, True, False],
        [False, False, False, False, True],
    ]
    back = "UPDATE channel_conversations SET last_at = last_at - 3601"
    await changed(running, back)
    await line.received(said("later", 9))
    await quiet(running)
    assert "word4" not in str(running.model.requests[-1].messages)


@pytest.mark.setting(
    "channels.<name>.max_cost_usd_per_user", "channels.<name>.max_cost_usd"
)
async def test_what_one_person_may_spend_is_bounded(daemons: Daemons) -> None:
    pager = Pager()
    config = CONFIG + "max_cost_usd_per_user = 0.000001\nmax_cost_usd = 1.0\n"
    running = await started(daemons, pager, config)
    line = await pager.line()
    await line.received(said("hi", 1), said("more", 2))
    await quiet(running)
    assert "allowance" in texts(pager)[-1]


async def test_a_code_that_has_run_out_is_nothing_and_another_comes(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager, PAIRING)
    line = await pager.line()
    await line.received(said("let me in", 1, sender="eve", peer="eve"))
    await quiet(running)
    [old] = await asked(running)
    await changed(running, "UPDATE channel_pairings SET expires_at = 1")
    assert await asked(running) == []
    answer = await running.http.post(f"{PATH}/{old['code']}/approve", json={})
    assert answer.status_code == 404
    await line.received(said("again?", 2, sender="eve", peer="eve"))
    await quiet(running)
    [new] = await asked(running)
    assert new["code"] != old["code"]
    assert new["code"] in texts(pager)[-1]


async def test_who_is_linked_is_let_in_by_pairing_alone(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, PAIRING)
    line = await pager.line()
    await line.received(said("let me in", 1, sender="eve", peer="eve"))
    await quiet(running)
    [pairing] = await asked(running)
    await running.http.post(f"{PATH}/{pairing['code']}/approve", json={})
    await running.daemon.stop()
    again = await started(daemons, pager, home=running.daemon.home)
    await pager.until(lambda: len(pager.lines) == 2)
    await pager.lines[-1].received(said("hi", 2, sender="eve", peer="eve"))
    await pager.lines[-1].received(said("hi", 3))
    await quiet(again)
    assert len(again.model.requests) == 1


async def test_the_name_of_a_stranger_is_short_and_can_be_read(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager, PAIRING)
    line = await pager.line()
    name = "Eve\x1b[2J\u202e" + "x" * 200
    stranger = replace(said("hi", peer="eve"), sender=Sender("eve", name))
    await line.received(stranger)
    await quiet(running)
    [pairing] = await asked(running)
    assert len(pairing["name"]) == 100
    path = f"{PATH}/{pairing['code']}/approve"
    person = (await running.http.post(path, json={})).json()
    assert person["person_name"] == ("Eve[2J" + "x" * 200)[:64]


async def entered(running: RunningDaemon, number: int, *, anew: bool = False) -> int:
    """Count a message, or begin anew by it; tell how often there was a beginning."""
    row = row_of("pager", said("hi", number), 1.0)
    if anew:
        await running.daemon.store.write(partial(writes.change, row=row, anew=True))
    enter = partial(writes.enter, row=row, idle=0.0, most=2)
    _, epoch = await running.daemon.store.write(enter)
    return epoch


async def test_a_message_that_is_tried_again_counts_once(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    await pager.line()
    numbers = (1, 1, 2, 2, 2, 3, 3, 4, 5)
    epochs = [await entered(running, number) for number in numbers]
    assert epochs == [0, 0, 0, 0, 0, 1, 1, 1, 2]


async def test_what_begins_anew_is_counted_anew(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    await pager.line()
    epochs = [await entered(running, n, anew=n == 2) for n in (1, 2, 3, 4, 5)]
    assert epochs == [0, 1, 1, 1, 2]
