"""A message is answered once, in order, and only to those who may speak."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agenthost import Blocked, Unavailable
from agenthost.testing import Daemons, Pause, Recorded, RunningDaemon
from agenthost_channels.bridge import hearing
from agenthost_channels.bridge.answering import APOLOGY
from agenthost_channels.bridge.events import ChannelMessageLost
from agenthost_channels.contract import Room
from agenthost_channels.rendering import rendered
from sqlalchemy import Connection, text

from .pager import BUSY, CONFIG, LOST, Pager, said

OPEN = """SELECT (SELECT count(*) FROM channel_inbox WHERE state = 'new') +
(SELECT count(*) FROM channel_outbox WHERE state IN ('waiting', 'sending'))"""


async def rows(running: RunningDaemon, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await running.daemon.store.read(sql)]


async def quiet(running: RunningDaemon) -> None:
    """Wait until nothing is to be answered or sent."""
    async with asyncio.timeout(30):
        while (await rows(running, OPEN)) != [(0,)]:  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


async def changed(running: RunningDaemon, *statements: str) -> None:
    def write(connection: Connection) -> None:
        for each in statements:
            connection.execute(text(each))

    await running.daemon.store.write(write)


async def started(
    daemons: Daemons, pager: Pager, config: str = CONFIG, home: Path | None = None
) -> RunningDaemon:
    running = await daemons.start(config=config, plugins=[pager], home=home)
    if not len(running.daemon.agents):
        await running.agent("helper")
    return running


@pytest.mark.setting("channels.<name>.agent")
@pytest.mark.setting("channels.<name>.allow_from")
async def test_a_message_is_answered_once_however_often_it_comes(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    running.model.says("good *morning*")
    await line.received(said("hello"), said("hello"), cursor="7")
    await quiet(running)
    await line.received(said("hello"))
    await line.received(said("let me in", 2, sender="eve", peer="eve"))
    await quiet(running)
    [answer] = pager.sent
    assert (answer.text, answer.reply_to) == ("good morning", "m1")
    assert len(running.model.requests) == 1
    kept = await rows(running, "SELECT sender, state, labels FROM channel_inbox")
    assert kept == [("ada", "done", "untrusted")]
    assert line.cursor == "7"


@pytest.mark.conformance
async def test_a_conversation_is_answered_in_order(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    pager.fates = [BUSY]
    for number in (1, 2, 3):
        running.model.says(f"answer {number}")
    await line.received(said("one", 1), said("two", 2))
    await line.received(said("three", 3))
    await pager.until(lambda: len(pager.sent) == 2)
    # The first was refused for now: the second waits behind it.
    assert [each.text for each in pager.sent] == ["answer 1", "answer 1"]
    await changed(running, "UPDATE channel_outbox SET due = 0")
    await quiet(running)
    sent = [each.text for each in pager.sent]
    assert sent == ["answer 1", "answer 1", "answer 2", "answer 3"]


async def test_what_may_have_arrived_is_told_and_never_sent_again(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    told = Recorded(running.daemon.events, ChannelMessageLost)
    line = await pager.line()
    pager.fates = [LOST]
    await line.received(said("hello"))
    await quiet(running)
    assert len(pager.sent) == len(pager.looked) == 1
    # Events are told behind their commit.
    async with asyncio.timeout(30):
        while not told.told:
            await rows(running, OPEN)
    [lost] = told.told
    assert isinstance(lost, ChannelMessageLost)
    assert (lost.subject, lost.state, lost.reason) == ("pager", "unknown", LOST.reason)
    assert told.kept == told.told
    await running.daemon.stop()
    again = await started(daemons, pager, home=running.daemon.home)
    await quiet(again)
    assert len(pager.sent) == 1


async def test_what_a_dead_process_was_sending_is_looked_for(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    await line.received(said("hello"))
    await quiet(running)
    await changed(running, "UPDATE channel_outbox SET state = 'sending'")
    await running.daemon.stop()
    again = await started(daemons, pager, home=running.daemon.home)
    await quiet(again)
    assert [each.key for each in pager.looked] == [pager.sent[0].key]
    assert len(pager.sent) == 1
    assert await rows(again, "SELECT state FROM channel_outbox") == [("unknown",)]


async def test_a_death_between_turn_and_outbox_costs_no_second_turn(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    running.model.says("the one answer")
    await line.received(said("hello"))
    await quiet(running)
    back = "UPDATE channel_inbox SET state = 'new', text = 'hello'"
    await changed(running, back, "DELETE FROM channel_outbox")
    await running.daemon.stop()
    again = await started(daemons, pager, home=running.daemon.home)
    await quiet(again)
    assert [each.text for each in pager.sent] == ["the one answer"] * 2
    assert again.model.requests == []


@pytest.mark.conformance
async def test_a_turn_that_a_stop_cut_short_goes_on_in_the_next_start(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost.daemon.TURN_PATIENCE", 0.2)
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    pause = Pause()
    running.model.says("half", pause)
    await line.received(said("hello"))
    await pause.reached.wait()
    await running.daemon.stop()
    again = await started(daemons, pager, home=running.daemon.home)
    again.model.says("whole")
    await quiet(again)
    assert len(pager.sent) == 1
    assert await rows(again, "SELECT count(*) FROM channel_outbox") == [(1,)]


@pytest.mark.setting("channels.<name>.enabled")
async def test_a_channel_that_is_off_is_not_connected(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, CONFIG + "enabled = false\n")
    assert not pager.lines
    assert await rows(running, "SELECT count(*) FROM channel_inbox") == [(0,)]


@pytest.mark.setting("channels.<name>.allowed_hosts")
async def test_a_line_reaches_a_local_host_only_where_it_is_allowed(
    daemons: Daemons,
) -> None:
    server = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    closed, opened = Pager(), Pager()
    await started(daemons, closed)
    await started(daemons, opened, CONFIG + 'allowed_hosts = ["127.0.0.1"]\n')
    try:
        with pytest.raises(Blocked, match="not a public address"):
            await (await closed.line()).connect("127.0.0.1", port)
        _, writer = await (await opened.line()).connect("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()
    finally:
        server.close()


async def test_a_secret_comes_from_the_vault_before_the_environment(
    daemons: Daemons,
) -> None:
    pager = Pager()
    variables = {"PAGER_TOKEN": "of the variable"}
    running = await daemons.start(config=CONFIG, plugins=[pager], environ=variables)
    line = await pager.line()
    told = line.secret("token")
    assert told is not None
    assert told.reveal() == "of the variable"
    await running.daemon.vault.change({"channel.pager.token": "of the vault"})
    told = line.secret("token")
    assert told is not None
    assert told.reveal() == "of the vault"
    assert line.secret("another") is None


async def test_nothing_is_kept_where_the_cursor_cannot_be(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    await running.daemon.stop()
    with pytest.raises(Unavailable):
        await line.received(said("hello", room=Room.DIRECT), cursor="8")
    assert line.cursor == ""


async def test_an_answer_that_cannot_be_rendered_holds_nobody_up(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(text: str, *given: Any) -> Any:
        if "odd" in text:
            raise RecursionError
        return rendered(text, *given)

    monkeypatch.setattr(hearing, "rendered", refusing)
    pager = Pager()
    running = await started(daemons, pager)
    line = await pager.line()
    running.model.says("very odd")
    running.model.says("fine")
    await line.received(said("hello"))
    await quiet(running)
    await line.received(said("again", 2))
    await quiet(running)
    assert [each.plain for each in pager.sent] == [APOLOGY, "fine"]
