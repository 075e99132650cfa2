"""What an adapter promises about what it sends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ..contract import Fate, Outbound, OutFile, Room
from .hearing import ALL_PLANES
from .stage import Played, Stage, needs, played, wants

INJECTION = "first\r\nQUIT :gone\nPRIVMSG #elsewhere :pwned\r\0\x01\x1b<iq/>\nlast"


async def sent(play: Played, text: str, room: Room = Room.DIRECT) -> str:
    """Send a text that is delivered, and give the vendor's id of it."""
    result = await play.adapter.send(play.message(text, room))
    assert result.fate is Fate.DELIVERED, result.reason
    return result.message_id


class SayingContract:
    """What is said arrives once and unchanged, or its fate is told as it is."""

    async def test_what_we_say_is_seen(self, stage: Stage) -> None:
        """And is told as delivered, with an id."""
        async with played(stage) as play:
            assert await sent(play, "good morning")
            assert await stage.seen(1) == ["good morning"]

    async def test_what_we_say_in_a_group_is_seen_there(self, stage: Stage) -> None:
        """Not by the person alone."""
        wants(stage, stage.groups, "groups")
        async with played(stage) as play:
            await sent(play, "good morning, all", Room.GROUP)
            assert await stage.seen(1, Room.GROUP) == ["good morning, all"]

    async def test_each_thing_we_say_has_its_own_id(self, stage: Stage) -> None:
        """The same words twice are two messages."""
        async with played(stage) as play:
            assert await sent(play, "again") != await sent(play, "again")
            assert await stage.seen(2) == ["again", "again"]

    async def test_what_we_say_keeps_its_order(self, stage: Stage) -> None:
        """One after the other."""
        async with played(stage) as play:
            for number in range(3):
                await sent(play, f"step {number}")
            assert await stage.seen(3) == ["step 0", "step 1", "step 2"]

    async def test_two_things_said_at_once_both_arrive(self, stage: Stage) -> None:
        """And each is told its own fate."""
        async with played(stage) as play:
            ids = await asyncio.gather(sent(play, "left"), sent(play, "right"))
            assert sorted(await stage.seen(2)) == ["left", "right"]
        assert len(set(ids)) == 2

    async def test_every_plane_of_unicode_is_said(self, stage: Stage) -> None:
        """As it was written."""
        async with played(stage) as play:
            await sent(play, ALL_PLANES)
            assert await stage.seen(1) == [ALL_PLANES]

    async def test_words_never_become_commands(self, stage: Stage) -> None:
        """Line breaks and control characters end no line of the vendor's protocol."""
        async with played(stage) as play:
            await sent(play, INJECTION)
            await sent(play, "still here")
            texts = await self._until_seen(stage, "still here")
        words = "\n".join(texts)
        for word in ("first", "QUIT :gone", "PRIVMSG #elsewhere :pwned", "last"):
            assert word in words

    @staticmethod
    async def _until_seen(stage: Stage, text: str) -> list[str]:
        count = 1
        while (texts := await stage.seen(count))[-1] != text:
            count = len(texts) + 1
        return texts

    async def test_a_place_never_becomes_a_command(self, stage: Stage) -> None:
        """An id with line breaks is refused, or is an unknown place."""
        async with played(stage) as play:
            place = replace(stage.place(Room.DIRECT), peer="x\r\nQUIT :gone\r\n\0")
            result = await play.adapter.send(Outbound("key-evil", place, "hello"))
            assert result.fate is Fate.NOT_SENT
            assert result.final
            await sent(play, "still here")
            assert await stage.seen(1) == ["still here"]

    async def test_a_text_at_the_limit_arrives_whole(self, stage: Stage) -> None:
        """The limit of the facts is one that the vendor takes."""
        text = "x" * (stage.facts.limit_in(Room.DIRECT) - 4) + " end"
        async with played(stage) as play:
            await sent(play, text)
            assert "".join(await self._until_whole(stage, text)) == text

    @staticmethod
    async def _until_whole(stage: Stage, text: str) -> list[str]:
        count = 1
        while len("".join(texts := await stage.seen(count))) < len(text):
            count = len(texts) + 1
        return texts

    async def test_an_unknown_place_is_refused_for_good(self, stage: Stage) -> None:
        """And the reason is told."""
        needs(stage, "nowhere")
        async with played(stage) as play:
            message = Outbound("key-nowhere", stage.nowhere(), "hello?", "hello?")
            result = await play.adapter.send(message)
        assert result.fate is Fate.NOT_SENT
        assert result.final
        assert result.reason

    async def test_a_limit_says_when_to_try_again(self, stage: Stage) -> None:
        """As the vendor says it; the message is certainly not there."""
        needs(stage, "limit")
        async with played(stage) as play:
            stage.limit(7)
            result = await play.adapter.send(play.message("too fast"))
        assert result.fate is Fate.NOT_SENT
        assert result.retry_after == 7
        assert not result.final

    async def test_a_lost_answer_is_an_unknown_fate(self, stage: Stage) -> None:
        """It is neither there nor not there."""
        needs(stage, "lose_answer")
        async with played(stage) as play:
            stage.lose_answer()
            result = await play.adapter.send(play.message("did it?"))
        assert result.fate is Fate.UNKNOWN
        assert result.reason

    async def test_a_repeated_key_is_one_message(self, stage: Stage) -> None:
        """Where the facts say that the vendor knows its keys."""
        wants(stage, stage.facts.repeatable, "keys")
        async with played(stage) as play:
            message = play.message("only once")
            first = await play.adapter.send(message)
            second = await play.adapter.send(message)
            await sent(play, "and this")
            assert await stage.seen(2) == ["only once", "and this"]
        assert first.message_id == second.message_id

    async def test_nothing_is_raised_where_nobody_is_connected(
        self, stage: Stage
    ) -> None:
        """It is not sent, or it needs no connection."""
        async with played(stage, connected=False) as play:
            result = await play.adapter.send(play.message("anybody?"))
        assert result.fate in {Fate.NOT_SENT, Fate.DELIVERED}
        assert not result.final

    async def test_an_answer_to_a_message_is_sent(self, stage: Stage) -> None:
        """Whether the vendor shows what it answers or not."""
        async with played(stage) as play:
            await stage.say("a question")
            (heard,) = await play.line.hear(1)
            answer = replace(play.message("an answer"), reply_to=heard.message_id)
            result = await play.adapter.send(answer)
            assert result.fate is Fate.DELIVERED, result.reason
            assert await stage.seen(1) == ["an answer"]

    async def test_a_message_of_ours_is_replaced(self, stage: Stage) -> None:
        """Where the vendor has edits."""
        wants(stage, stage.facts.edits, "edits")
        needs(stage, "changed")
        async with played(stage) as play:
            first = await sent(play, "draft")
            await stage.seen(1)
            edit = replace(play.message("final"), edit_of=first)
            result = await play.adapter.send(edit)
            assert result.fate is Fate.DELIVERED, result.reason
            await stage.changed("final")

    async def test_a_reaction_is_put_on_a_message(self, stage: Stage) -> None:
        """Where the vendor has reactions."""
        wants(stage, stage.facts.reactions, "reactions")
        needs(stage, "reacted")
        async with played(stage) as play:
            await stage.say("look")
            (heard,) = await play.line.hear(1)
            reaction = replace(
                play.message(""), reply_to=heard.message_id, reaction="\U0001f44d"
            )
            result = await play.adapter.send(reaction)
            assert result.fate is Fate.DELIVERED, result.reason
            await stage.reacted("\U0001f44d")

    async def test_a_sign_of_typing_says_nothing(self, stage: Stage) -> None:
        """It is shown where the vendor can, and is never a message."""
        async with played(stage) as play:
            result = await play.adapter.send(replace(play.message(""), typing=True))
            assert result.fate is not Fate.UNKNOWN
            await sent(play, "done typing")
            assert await stage.seen(1) == ["done typing"]

    async def test_a_file_of_ours_arrives(self, stage: Stage) -> None:
        """With its name and every byte."""
        wants(stage, stage.facts.files, "files")
        needs(stage, "files_seen")
        file = OutFile("report.bin", "application/octet-stream", bytes(range(256)))
        async with played(stage) as play:
            message = replace(play.message("see there"), files=(file,))
            result = await play.adapter.send(message)
            assert result.fate is Fate.DELIVERED, result.reason
            assert await stage.files_seen(1) == [(file.name, file.data)]

    async def test_a_text_in_a_thread_stays_there(self, stage: Stage) -> None:
        """It is answered where it was said."""
        needs(stage, "say_in_thread", "threads_seen")
        async with played(stage) as play:
            await stage.say_in_thread("in here")
            await play.line.hear(1)
            place = play.line.heard[-1].place
            answer = replace(play.message("yes"), place=place)
            result = await play.adapter.send(answer)
            assert result.fate is Fate.DELIVERED, result.reason
            assert await stage.threads_seen() == place.thread
