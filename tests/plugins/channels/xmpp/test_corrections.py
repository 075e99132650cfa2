"""A message that is changed stays one: for people, and in the archives."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from agenthost.testing import Daemons, Pause
from agenthost_channels.contract import Fate, Inbound, Outbound, Place, Room, Sender
from agenthost_channels.testing import FakeLine
from agenthost_channels.testing.stage import Played, played
from agenthost_channels.testing.stages.xmpp import PASSWORD, ROOM, prosody
from agenthost_channels.testing.stages.xmpp_person import Person
from agenthost_channels.xmpp.adapter import Xmpp
from agenthost_channels.xmpp.config import Settings
from agenthost_channels.xmpp.corrections import MOST, Replaceable
from agenthost_channels.xmpp.mapping import Said, said_of
from slixmpp.jid import JID

from .test_over_http import started

FATES = "SELECT state, attempts FROM channel_outbox ORDER BY created_at"
CORRECTION = "urn:xmpp:message-correct:0"
BOTH = pytest.mark.parametrize("room", [Room.DIRECT, Room.PUBLIC])


def changed(play: Played, text: str, key: str, of: str, room: Room) -> Outbound:
    return Outbound(key, play.stage.place(room), text, text, edit_of=of)


async def kept(play: Played, room: Room) -> list[tuple[str, str]]:
    """Give the words of ours in an archive, and what they replace there."""
    session: Any = play.adapter._session  # type: ignore[attr-defined]
    archive, who = ("bot@localhost", "ada@localhost")
    if room is Room.PUBLIC:
        archive, who = ROOM, ""
    found: list[tuple[str, str]] = []
    async for page in session._archives.back(archive, who):
        ours = [each.message for each in page.kept if session._is_ours(each.message)]
        read = [said for each in ours if (said := said_of(each)) is not None]
        found = [(each.words, each.replaces or "") for each in read] + found
    return found


@BOTH
@pytest.mark.conformance
async def test_an_answer_that_grows_is_one_message(tmp_path: Path, room: Room) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        draft = Outbound("k-draft", stage.place(room), "one", "one")
        first = await play.adapter.send(draft)
        for text in ("one two", "one two three"):
            passing = changed(play, text, "k-draft", first.message_id, room)
            assert (await play.adapter.send(passing)).fate is Fate.DELIVERED
        whole = changed(play, "one to four", "k-0", first.message_id, room)
        sent = await play.adapter.send(whole)
        await stage.changed("one to four")
        assert await stage.seen(1, room) == ["one to four"]
        # What has passed is not written down.
        assert await kept(play, room) == [("one", ""), ("one to four", "k-draft")]
    assert (sent.fate, sent.message_id) == (Fate.DELIVERED, first.message_id)
    # Programs pass over what has the id of something that they have.
    ids = [id_ for *_, id_ in stage.ada.changes]
    assert len({*ids, "k-draft"}) == len(ids) + 1 == 4


@BOTH
@pytest.mark.conformance
async def test_a_change_that_arrived_unanswered_is_found_once(
    tmp_path: Path, room: Room
) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        first = await play.adapter.send(play.message("draft", room))
        whole = changed(play, "whole", "k-0", first.message_id, room)
        stage.lose_answer()
        sent = await play.adapter.send(whole)
        await play.ended()
        await play.restart()
        found = await play.adapter.reconcile(whole)
        assert await stage.seen(1, room) == ["whole"]
        assert await kept(play, room) == [
            ("draft", ""),
            ("whole", first.message_id),
        ]
    assert sent.fate is Fate.UNKNOWN
    assert (found.fate, found.message_id) == (Fate.DELIVERED, first.message_id)


@pytest.mark.conformance
async def test_a_change_that_never_left_is_not_taken_for_its_draft(
    tmp_path: Path,
) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        draft = Outbound("k-draft", stage.place(Room.DIRECT), "one", "one")
        await play.adapter.send(draft)
        passing = changed(play, "one two", "k-draft", "k-draft", Room.DIRECT)
        whole = changed(play, "one two", "k-0", "k-draft", Room.DIRECT)
        fates = [
            (await play.adapter.reconcile(each)).fate
            for each in (draft, passing, whole)
        ]
    assert fates == [Fate.DELIVERED, Fate.UNKNOWN, Fate.NOT_SENT]


async def test_nobody_waits_to_look_for_what_is_not_kept() -> None:
    adapter = Xmpp(FakeLine(Settings(jid="bot@x")))
    passing = Outbound("k", Place("default", "ada@x"), "one two", edit_of="k")
    async with asyncio.timeout(5):
        assert (await adapter.reconcile(passing)).fate is Fate.UNKNOWN


@pytest.mark.parametrize("of", ["a b", "x" * 201, "\x01"])
@pytest.mark.conformance
async def test_what_is_no_message_is_not_replaced(tmp_path: Path, of: str) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        sent = await play.adapter.send(changed(play, "x", "k-0", of, Room.DIRECT))
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, True)


@pytest.mark.conformance
async def test_people_hear_that_we_know_of_changes(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage):
        told = await stage.ada.plugin["xep_0030"].get_info(
            jid=JID("bot@localhost/agenthost"), timeout=20
        )
    assert CORRECTION in told["disco_info"]["features"]


@pytest.mark.conformance
async def test_a_change_that_was_missed_is_that_of_its_message(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        await stage.say("to begin with")
        await play.line.hear(1)
        await play.stop()
        await stage.say("teh")
        await stage.change("the")
        await play.restart()
        heard = await play.line.hear(3)
    assert [each.text for each in heard] == ["to begin with", "teh", "the"]
    assert [each.edited for each in heard] == [False, False, True]
    assert heard[1].message_id == heard[2].message_id


@pytest.mark.conformance
async def test_a_change_by_somebody_else_changes_nothing(tmp_path: Path) -> None:
    eve = Person(0, "eve@localhost/x", PASSWORD, ROOM)
    async with prosody(tmp_path) as stage, played(stage) as play:
        eve.port = stage.port
        async with eve:
            await stage.say("bot: mine", Room.PUBLIC)
            eve.send_raw(
                f"<message to='{ROOM}' type='groupchat'><body>forged</body>"
                f"<replace xmlns='{CORRECTION}' id='{stage.ada.last['id']}'/></message>"
            )
            await eve.settled()
            await stage.say("honest", Room.PUBLIC)
            heard = await play.line.hear(2)
    assert [each.text for each in heard] == ["mine", "honest"]


def said(id_: str, replaces: str = "") -> Said:
    inside = f"<replace xmlns='{CORRECTION}' id='{replaces}'/>" if replaces else ""
    read = said_of(
        fromstring(
            f"<message xmlns='jabber:client' from='ada@x/desk' type='chat' id='{id_}'>"
            f"<body>hi</body>{inside}</message>"
        )
    )
    assert read is not None
    return read


def inbound(id_: str, sender: str = "ada@x", peer: str = "ada@x") -> Inbound:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return Inbound(Place("default", peer), id_, Sender(sender), "hi", at)


def test_only_who_said_it_replaces_it_and_only_there() -> None:
    known = Replaceable()
    assert known.settled(inbound("kept-1"), said("m1")) == inbound("kept-1")
    right = known.settled(inbound("kept-2"), said("m2", "m1"))
    assert right is not None
    assert (right.message_id, right.edited) == ("kept-1", True)
    # The stream has it, and so has the archive.
    assert known.settled(inbound("kept-2"), said("m2", "m1")) is None
    for other in (inbound("x", sender="eve@x"), inbound("x", peer="room@x")):
        assert known.settled(other, said("m3", "m1")) is None
    # A change is named by the message, never by an earlier change of it.
    assert known.settled(inbound("x"), said("m4", "m2")) is None


def test_what_was_said_long_ago_is_replaced_no_more() -> None:
    known = Replaceable()
    for number in range(MOST + 1):
        known.settled(inbound(f"kept-{number}"), said(f"m{number}"))
    assert known.settled(inbound("x"), said("y", "m0")) is None
    assert known.settled(inbound("x"), said("y", "m1")) is not None


@pytest.mark.conformance
async def test_an_answer_is_shown_as_it_is_made(
    daemons: Daemons, tmp_path: Path
) -> None:
    pause = Pause()
    async with prosody(tmp_path) as stage:
        running = await started(daemons, stage, more="streaming = true\n")
        running.model.says("one ", pause, "two")
        await stage.say("count")
        [draft] = await stage.seen(1)
        pause.go_on()
        await stage.changed("one two")
        await stage.say("and?")
        assert (await stage.seen(2))[0] == "one two"
        await running.daemon.stop()
    assert draft == "one \N{HORIZONTAL ELLIPSIS}"


@pytest.mark.conformance
async def test_an_answer_whose_end_was_lost_is_changed_once(
    daemons: Daemons, tmp_path: Path
) -> None:
    pause = Pause()
    async with prosody(tmp_path) as stage:
        running = await started(daemons, stage, more="streaming = true\n")
        running.model.says("one ", pause, "two")
        await stage.say("count")
        await stage.seen(1)
        stage.lose_answer()
        pause.go_on()
        await stage.changed("one two")
        await stage.say("and?")
        assert await stage.seen(2) == ["one two", "You said: and?"]
        assert [text for _, text, _ in stage.ada.changes].count("one two") == 1
        first, *_ = await running.daemon.store.read(FATES)
        assert tuple(first) == ("delivered", 1)
        await running.daemon.stop()
