"""What an adapter promises about what it hears."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

from ..contract import Room
from .stage import Stage, needs, played, wants

ALL_PLANES = "na\u00efve \u65e5\u672c \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001d54f e\u0301 \u202eabc\u202c"  # noqa: E501
CLOCKS_APART = timedelta(minutes=5)
FLOOD = 200
MOST_AT_ONCE = 500


class HearingContract:
    """Messages of people come in whole, once, in order, and from whom they are."""

    async def test_a_message_of_a_person_is_heard(self, stage: Stage) -> None:
        """Its text is what was said."""
        async with played(stage) as play:
            await stage.say("hello there")
            (message,) = await play.line.hear(1)
        assert message.text == "hello there"
        assert not message.attachments
        assert not message.edited

    async def test_messages_come_in_order(self, stage: Stage) -> None:
        """Ten of them, each after the one before."""
        async with played(stage) as play:
            for number in range(10):
                await stage.say(f"number {number}")
            heard = await play.line.hear(10)
        assert [each.text for each in heard] == [f"number {n}" for n in range(10)]

    async def test_each_message_has_its_own_id(self, stage: Stage) -> None:
        """Two with the same words are two."""
        async with played(stage) as play:
            await stage.say("the same")
            await stage.say("the same")
            first, second = await play.line.hear(2)
        assert first.message_id
        assert second.message_id
        assert first.message_id != second.message_id

    async def test_a_message_has_its_time(self, stage: Stage) -> None:
        """With a time zone, and of today."""
        async with played(stage) as play:
            await stage.say("now")
            (message,) = await play.line.hear(1)
        assert message.sent_at.tzinfo is not None
        assert abs(message.sent_at - datetime.now(UTC)) < CLOCKS_APART

    async def test_a_message_names_who_said_it(self, stage: Stage) -> None:
        """By the id that the vendor has for the person."""
        async with played(stage) as play:
            await stage.say("it is me")
            (message,) = await play.line.hear(1)
        assert message.sender.id == stage.person
        assert not message.sender.bot

    async def test_a_direct_message_is_direct_and_answered_there(
        self, stage: Stage
    ) -> None:
        """The place it came from is the place where the person hears us."""
        async with played(stage) as play:
            await stage.say("between us")
            (message,) = await play.line.hear(1)
        expected = stage.place(Room.DIRECT)
        assert message.place.room is Room.DIRECT
        assert message.place.account == play.line.account
        assert message.place.peer == expected.peer

    async def test_a_group_is_another_place_than_its_people(self, stage: Stage) -> None:
        """What is said in a group never looks like a direct conversation."""
        wants(stage, stage.groups, "groups")
        async with played(stage) as play:
            await stage.say("alone")
            await play.line.hear(1)
            await stage.say("before all", Room.GROUP)
            direct, group = await play.line.hear(2)
        assert group.place.room is not Room.DIRECT
        assert group.place.peer == stage.place(Room.GROUP).peer
        assert direct.place.peer != group.place.peer
        assert group.sender.id == stage.person

    async def test_every_plane_of_unicode_is_heard(self, stage: Stage) -> None:
        """Letters, signs beyond the first plane, marks, and directions."""
        async with played(stage) as play:
            await stage.say(ALL_PLANES)
            (message,) = await play.line.hear(1)
        assert message.text == ALL_PLANES

    async def test_a_message_of_several_lines_is_one(self, stage: Stage) -> None:
        """Where the vendor has such messages."""
        wants(stage, stage.lines, "messages of several lines")
        async with played(stage) as play:
            await stage.say("one\ntwo\n\nfour")
            (message,) = await play.line.hear(1)
        assert message.text.replace("\r\n", "\n") == "one\ntwo\n\nfour"

    async def test_our_own_messages_are_not_heard(self, stage: Stage) -> None:
        """Though many vendors send them back."""
        room = Room.GROUP if stage.groups else Room.DIRECT
        async with played(stage) as play:
            await play.adapter.send(play.message("we say this", room))
            await stage.seen(1, room)
            await stage.say("the person says this", room)
            heard = await play.line.hear(1)
        assert [each.text for each in heard] == ["the person says this"]

    async def test_programs_are_told_from_people(self, stage: Stage) -> None:
        """A message of a program is not heard, or says that it is one."""
        needs(stage, "say_as_bot")
        async with played(stage) as play:
            await stage.say_as_bot("beep")
            await stage.say("a person")
            await play.line.until(
                lambda: any(each.text == "a person" for each in play.line.heard)
            )
        assert all(each.sender.bot for each in play.line.heard if each.text == "beep")

    async def test_a_message_to_us_mentions_us(self, stage: Stage) -> None:
        """And the mention is no part of its text."""
        wants(stage, stage.groups, "groups")
        needs(stage, "mention")
        async with played(stage) as play:
            await stage.say(stage.mention("what time is it"), Room.GROUP)
            (message,) = await play.line.hear(1)
        assert message.mentions_us
        assert message.text == "what time is it"

    async def test_a_message_to_others_does_not(self, stage: Stage) -> None:
        """In a group people mostly speak to each other."""
        wants(stage, stage.groups, "groups")
        async with played(stage) as play:
            await stage.say("lunch, anybody?", Room.GROUP)
            (message,) = await play.line.hear(1)
        assert not message.mentions_us

    async def test_what_the_vendor_sends_twice_has_one_id(self, stage: Stage) -> None:
        """So that it is answered once."""
        needs(stage, "say_again")
        async with played(stage) as play:
            await stage.say("once")
            await play.line.hear(1)
            await stage.say_again()
            await stage.say("then this")
            heard = await play.line.hear(2)
        assert [each.text for each in heard] == ["once", "then this"]

    async def test_what_was_said_while_we_were_away_is_heard(
        self, stage: Stage
    ) -> None:
        """Where the vendor keeps it."""
        wants(stage, stage.keeps, "memory of what we missed")
        async with played(stage) as play:
            await stage.say("before")
            await play.line.hear(1)
            await play.stop()
            await stage.say("meanwhile")
            await play.restart()
            await stage.say("after")
            heard = await play.line.hear(3)
        assert [each.text for each in heard] == ["before", "meanwhile", "after"]

    async def test_what_was_not_kept_is_heard_again(self, stage: Stage) -> None:
        """The vendor is told nothing, and no cursor moves, before it is on disk."""
        wants(stage, stage.keeps, "memory of what we missed")
        async with played(stage) as play:
            await stage.say("first")
            await play.line.hear(1)
            cursor = play.line.cursor
            play.line.failing = True
            await stage.say("lost?")
            assert await play.ended() is not None
            assert play.line.cursor == cursor
            play.line.failing = False
            await play.restart()
            heard = await play.line.hear(2)
        assert [each.text for each in heard] == ["first", "lost?"]

    async def test_a_file_is_heard_and_fetched(self, stage: Stage) -> None:
        """What fetches it can be kept as JSON."""
        needs(stage, "attach")
        data = bytes(range(256)) * 5
        async with played(stage) as play:
            await stage.attach("data.bin", "application/octet-stream", data)
            (message,) = await play.line.hear(1)
            (attachment,) = message.attachments
            json.dumps(attachment.reference)
            assert attachment.name == "data.bin"
            assert await play.adapter.download(attachment) == data

    async def test_a_hostile_file_name_is_a_name(self, stage: Stage) -> None:
        """It is whatever was said, as text, and fetches nothing else."""
        needs(stage, "attach")
        async with played(stage) as play:
            await stage.attach("../../etc/passwd", "text/plain", b"mine")
            (message,) = await play.line.hear(1)
            assert await play.adapter.download(message.attachments[0]) == b"mine"

    async def test_a_changed_message_keeps_its_id(self, stage: Stage) -> None:
        """And says that it was changed."""
        needs(stage, "change")
        async with played(stage) as play:
            await stage.say("teh")
            await play.line.hear(1)
            await stage.change("the")
            first, second = await play.line.hear(2)
        assert second.edited
        assert second.text == "the"
        assert second.message_id == first.message_id

    async def test_a_thread_is_a_place_of_its_own(self, stage: Stage) -> None:
        """The same peer, and a thread."""
        needs(stage, "say_in_thread")
        async with played(stage) as play:
            await stage.say_in_thread("in here")
            await play.line.until(
                lambda: any(each.text == "in here" for each in play.line.heard)
            )
        assert play.line.heard[-1].place.thread

    async def test_an_answer_to_us_speaks_to_us(self, stage: Stage) -> None:
        """And names the message that it answers."""
        needs(stage, "answer")
        room = Room.GROUP if stage.groups else Room.DIRECT
        async with played(stage) as play:
            sent = await play.adapter.send(play.message("a question", room))
            await stage.seen(1, room)
            await stage.answer("an answer")
            (message,) = await play.line.hear(1)
        assert message.mentions_us
        assert message.reply_to == sent.message_id

    async def test_a_flood_waits_for_the_disk(self, stage: Stage) -> None:
        """It comes in handfuls, whole and in order, however slow the disk is."""
        async with played(stage) as play:
            play.line.hold()
            saying = asyncio.create_task(self._flood(stage))
            await play.line.until(lambda: bool(play.line.batches))
            play.line.release()
            heard = await play.line.hear(FLOOD)
            await saying
        assert [each.text for each in heard] == [f"flood {n}" for n in range(FLOOD)]
        assert max(play.line.batches) <= MOST_AT_ONCE

    @staticmethod
    async def _flood(stage: Stage) -> None:
        for number in range(FLOOD):
            await stage.say(f"flood {number}")
