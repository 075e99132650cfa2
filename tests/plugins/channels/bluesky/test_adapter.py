"""Bluesky alone: sessions, threads, links, pictures, and what came twice."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from agenthost import NotFound, Unauthenticated
from agenthost.testing.simulators.bluesky import BlueskySimulator
from agenthost_channels.bluesky.mapping import POSTS, Us, posted
from agenthost_channels.bluesky.posts import facets, record_key
from agenthost_channels.contract import Attachment, Fate, Outbound, OutFile, Place, Room
from agenthost_channels.testing import played
from agenthost_channels.testing.stages.bluesky import BlueskyStage
from hypothesis import example, given
from hypothesis import strategies as st

TID = re.compile("[234567abcdefghij][234567abcdefghijklmnopqrstuvwxyz]{12}")
LINK = "app.bsky.richtext.facet#link"
PICTURE = OutFile("chart.png", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(99))


@pytest.fixture
async def stage() -> AsyncIterator[BlueskyStage]:
    async with BlueskySimulator() as host:
        yield BlueskyStage(host)


def answer(to: str, thread: str, text: str, key: str = "k1") -> Outbound:
    place = Place("default", POSTS, thread, Room.PUBLIC)
    return Outbound(key, place, text, text, reply_to=to)


async def test_an_answer_names_the_thread_and_what_it_answers(
    stage: BlueskyStage,
) -> None:
    host = stage.host
    async with played(stage) as play:
        began = host.mention(stage.person, stage.us, "what is a TID?")
        (heard,) = await play.line.hear(1)
        assert (heard.place.thread, heard.place.room) == (began, Room.PUBLIC)
        first = await play.adapter.send(answer(began, began, "an id"))
        second = await play.adapter.send(answer(began, began, "of a record", "k2"))
        assert first.fate is second.fate is Fate.DELIVERED
        one, two = (host.posts[each.message_id]["record"] for each in (first, second))
        root = {"uri": began, "cid": host.posts[began]["cid"]}
        assert one["reply"] == {"root": root, "parent": root}
        assert two["reply"]["root"] == root
        assert two["reply"]["parent"]["uri"] == first.message_id
        host.post(stage.person, "thanks", second.message_id)
        thanks = (await play.line.hear(2))[1]
        assert (thanks.place, thanks.mentions_us) == (heard.place, True)
        del host.posts[began]
        gone = await play.adapter.send(answer(began, began, "late", "k3"))
    assert (gone.fate, gone.final) == (Fate.NOT_SENT, True)


@pytest.mark.parametrize("saying", ["post", "letter"])
async def test_what_was_not_answered_is_found_and_is_there_once(
    stage: BlueskyStage, saying: str
) -> None:
    async with played(stage) as play:
        message = play.message("only once")
        if saying == "post":
            message = answer(stage.root, stage.root, "only once")
        before = await play.adapter.reconcile(message)
        assert before.fate is not Fate.DELIVERED
        stage.lose_answer()
        assert (await play.adapter.send(message)).fate is Fate.UNKNOWN
        found = await play.adapter.reconcile(message)
        assert found.fate is Fate.DELIVERED
        if saying == "post":
            # As a real host does with a key that it knows.
            assert (await play.adapter.send(message)).fate is Fate.UNKNOWN
            assert (await play.adapter.reconcile(message)) == found
            assert await stage.seen(1, Room.PUBLIC) == ["only once"]
        else:
            same = replace(message, key="k2")
            assert (await play.adapter.reconcile(same)).fate is Fate.UNKNOWN


async def test_a_letter_is_looked_for_behind_what_it_answers(
    stage: BlueskyStage,
) -> None:
    host = stage.host
    async with played(stage) as play:
        await play.adapter.send(play.message("yes"))
        asked = host.write(stage.person, stage.us, "and now?")
        host.chat.odd.clear()
        message = replace(play.message("yes"), reply_to=asked["id"])
        await play.stop()
    async with played(stage) as play:
        assert (await play.adapter.reconcile(message)).fate is Fate.UNKNOWN
        sent = await play.adapter.send(replace(message, plain="yes indeed"))
        assert (
            "replyTo"
            not in host.chat.messages[host.chat.convo([stage.us, stage.person])][-1]
        )
        assert sent.fate is Fate.DELIVERED
        late = host.write(stage.us, stage.person, "yes")
        found = await play.adapter.reconcile(message)
    assert (found.fate, found.message_id) == (Fate.DELIVERED, late["id"])


async def test_a_session_is_renewed_without_the_password(stage: BlueskyStage) -> None:
    host = stage.host
    async with played(stage) as play:
        host.expire()
        await stage.say("still there?")
        await play.line.hear(1)
        await play.restart()
        assert host.logins == 1
        host.revoke("another")
        error = await play.ended()
    assert isinstance(error, Unauthenticated)
    assert "BLUESKY_APP_PASSWORD" in str(error)


async def test_a_password_without_direct_messages_is_told(stage: BlueskyStage) -> None:
    stage.host.chat.allowed = False
    async with played(stage, connected=False) as play:
        play.start()
        error = await play.ended()
    assert isinstance(error, Unauthenticated)
    assert "messages = false" in str(error)


async def test_what_was_listed_before_the_first_time_is_not_heard(
    stage: BlueskyStage,
) -> None:
    host = stage.host
    host.mention(stage.person, stage.us, "long ago")
    host.write(stage.person, stage.us, "long ago")
    async with played(stage) as play:
        for number in range(230):
            host.mention(stage.person, stage.us, f"number {number}")
        heard = await play.line.hear(230)
    assert [each.text for each in heard] == [f"number {n}" for n in range(230)]


async def test_a_post_that_is_listed_late_is_heard(stage: BlueskyStage) -> None:
    host = stage.host
    host.notified[stage.us].clear()
    async with played(stage) as play:
        host.mention(stage.person, stage.us, "first")
        await play.line.hear(1)
        host.mention(stage.bob, stage.us, "late")
        before = datetime.now(UTC) - timedelta(minutes=2)
        host.notified[stage.us][-1]["indexedAt"] = before.isoformat()
        heard = await play.line.hear(2)
    assert [each.text for each in heard] == ["first", "late"]
    assert {each.sender.id for each in heard} == {stage.person, stage.bob}


async def test_several_people_are_a_group(stage: BlueskyStage) -> None:
    host = stage.host
    async with played(stage) as play:
        convo = host.chat.convo([stage.us, stage.person, stage.bob])
        host.chat.write(convo, stage.bob, {"text": "lunch?"})
        (heard,) = await play.line.hear(1)
        assert (heard.place.room, heard.place.peer) == (Room.GROUP, f"convo:{convo}")
        assert not heard.mentions_us
        said = Outbound("k1", heard.place, "yes", reply_to=heard.message_id)
        sent = await play.adapter.send(said)
        assert host.chat.messages[convo][-1]["replyTo"]["id"] == heard.message_id
        again = {"text": "good", "replyTo": {"messageId": sent.message_id}}
        host.chat.write(convo, stage.bob, again)
        assert (await play.line.hear(2))[1].mentions_us


async def test_pictures_are_posted_and_nothing_else(stage: BlueskyStage) -> None:
    host = stage.host
    other = OutFile("a.pdf", "application/pdf", b"%PDF")
    async with played(stage) as play:
        message = replace(answer("", "", "look"), files=(PICTURE,))
        sent = await play.adapter.send(message)
        embed = host.posts[sent.message_id]["record"]["embed"]
        (image,) = embed["images"]
        assert embed["$type"] == "app.bsky.embed.images"
        assert image["alt"] == "chart.png"
        cid = image["image"]["ref"]["$link"]
        assert host.blobs[cid] == ("image/png", PICTURE.data)
        refused = [
            replace(message, key="k2", files=(other,)),
            replace(message, key="k3", place=stage.place(Room.DIRECT)),
            replace(message, key="k4", files=(), plain="\u0300" * 2_000),
            replace(
                message, key="k5", files=(replace(PICTURE, data=bytes(1_000_001)),)
            ),
        ]
        for each in refused:
            told = await play.adapter.send(each)
            assert (told.fate, told.final) == (Fate.NOT_SENT, True), told
            assert told.reason


async def test_a_file_is_fetched_from_its_host_and_is_what_it_says(
    stage: BlueskyStage,
) -> None:
    host = stage.host
    async with played(stage) as play:
        sent = await play.adapter.send(replace(answer("", "", "x"), files=(PICTURE,)))
        embed = host.posts[sent.message_id]["record"]["embed"]
        host.post(stage.person, "look", stage.root, embed=embed)
        (heard,) = await play.line.hear(1)
        (file,) = heard.attachments
        assert (file.name, file.media_type) == ("image-1.png", "image/png")
        assert file.size == len(PICTURE.data)
        assert await play.adapter.download(file) == PICTURE.data
        cid = str(file.reference["cid"])
        host.blobs[cid] = "image/png", b"another"
        for reference in (file.reference, {"did": "did:web:a:b", "cid": cid}, {}):
            with pytest.raises(NotFound):
                await play.adapter.download(
                    Attachment("x.png", "image/png", dict(reference))
                )


def test_a_record_key_is_a_tid_of_the_message() -> None:
    keys = {record_key(f"key-{number}") for number in range(500)}
    assert len(keys) == 500
    assert all(TID.fullmatch(key) for key in keys)
    assert record_key("key-7") == record_key("key-7")


@given(st.text(max_size=40), st.sampled_from(["https://a.example/b?c=d", "http://é.x"]))
@example("\U0001f468\u200d\U0001f469 \u202eabc", "https://a.example/b?c=d")
def test_links_are_where_the_bytes_are(before: str, uri: str) -> None:
    text = f"{before} ({uri}). {uri}, and \u05d0"
    found = facets(text)
    said = text.encode()
    shown = [
        said[each["index"]["byteStart"] : each["index"]["byteEnd"]].decode()
        for each in found
    ]
    assert shown == [each["features"][0]["uri"] for each in found]
    assert shown[-2:] == [uri, uri]


def test_a_shortened_link_is_read_whole_and_a_name_left_out() -> None:
    text = "@helper.test: see é example.com/a... or b.example"
    start = len("@helper.test: see é ".encode())
    us = Us("default", "did:plc:us", "helper.test")
    links = [("https://example.com/a/long/way", start, start + 16)]
    end = start + 16 + len(" or ")
    links.append(("https://b.example", end, end + 9))
    facet = [
        {
            "index": {"byteStart": first, "byteEnd": last},
            "features": [{"$type": LINK, "uri": uri}],
        }
        for uri, first, last in links
    ]
    row = {
        "uri": "at://did:plc:ada/app.bsky.feed.post/3k",
        "reason": "mention",
        "author": {
            "did": "did:plc:ada",
            "labels": [{"val": "bot", "src": "did:plc:ada"}],
        },
        "record": {"text": text, "facets": facet},
        "indexedAt": "2026-11-01T10:00:00.000Z",
    }
    heard = posted(row, us)
    assert heard is not None
    assert heard.text == "see é https://example.com/a/long/way or b.example"
    assert heard.sender.bot
    assert posted({**row, "author": {"did": "did:plc:eve"}}, us) is None
    mine = {"uri": "at://did:plc:us/app.bsky.feed.post/3k", "author": {"did": us.did}}
    assert posted({**row, **mine}, us) is None
