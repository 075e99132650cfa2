"""What the contract does not ask: what is said how, limits, looking, what is read."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from agenthost import NotFound, Unavailable
from agenthost.testing.simulators.discord import DiscordSimulator, world
from agenthost.testing.simulators.discord.world import (
    ADA,
    DIRECT,
    HIDDEN,
    TEXT,
    THREAD,
    US,
)
from agenthost_channels.contract import Attachment, Fate, Outbound, Place, Room
from agenthost_channels.discord.adapter import Discord, Settings, nonce_of
from agenthost_channels.discord.limits import Limits
from agenthost_channels.discord.mapping import inbound, is_said, plain, told_where
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from .running import line_to, running, words

HERE = Place("default", TEXT, room=Room.GROUP)
HELLO = Outbound("key-of-this-message-36-characters-at", HERE, "*hi*", "hi")
SLOW = (429, {"message": "slow", "retry_after": 9.5, "global": False})


async def test_we_call_nobody_and_show_no_page_of_a_link() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        told = await server.put(TEXT, content="a question")
        text = f"<@{ADA['id']}> @everyone https://evil.example/?told=secret"
        answer = replace(HELLO, text=text, reply_to=told["id"])
        assert (await Discord(line).send(answer)).fate is Fate.DELIVERED
        gone = replace(answer, key="k2", reply_to="1")
        assert (await Discord(line).send(gone)).fate is Fate.DELIVERED
        await line.aclose()
    first, _ = server.said
    assert server.pinged == []
    assert first["allowed_mentions"] == {"parse": []}
    assert first["flags"] == 4
    assert first["message_reference"]["message_id"] == told["id"]


async def test_the_same_key_is_one_message() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        first = await Discord(line).send(HELLO)
        again = await Discord(line).send(HELLO)
        other = await Discord(line).send(replace(HELLO, key="another"))
        await line.aclose()
    assert first.message_id == again.message_id != other.message_id
    assert len(server.said) == 2
    assert server.said[0]["nonce"] == nonce_of(HELLO.key)


@pytest.mark.parametrize(
    ("status", "body", "fate", "final"),
    [
        (400, {"code": 50035, "message": "Invalid\r\nForm"}, Fate.NOT_SENT, True),
        (401, {"code": 0, "message": "401: Unauthorized"}, Fate.NOT_SENT, False),
        (403, {"code": 50001, "message": "Missing Access"}, Fate.NOT_SENT, True),
        (404, {"code": 10003, "message": "Unknown Channel"}, Fate.NOT_SENT, True),
        (500, {}, Fate.UNKNOWN, False),
        (502, {}, Fate.UNKNOWN, False),
        (200, {}, Fate.UNKNOWN, False),
    ],
)
async def test_a_refusal_is_told_as_it_is(
    status: int, body: dict[str, Any], fate: Fate, final: bool
) -> None:
    async with DiscordSimulator() as server:
        server.next_answer = (status, body, {})
        line = line_to(server)
        result = await Discord(line).send(HELLO)
        await line.aclose()
    assert (result.fate, result.final) == (fate, final)
    assert result.reason.isprintable()


async def test_a_route_that_is_used_up_is_not_called() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        adapter = Discord(line)
        headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "7.5"}
        headers["x-ratelimit-bucket"] = "abcd"
        server.next_answer = (200, {"id": "5"}, headers)
        assert (await adapter.send(HELLO)).fate is Fate.DELIVERED
        calls = len(server.calls)
        held = await adapter.send(replace(HELLO, key="k2"))
        assert (held.fate, held.final) == (Fate.NOT_SENT, False)
        assert held.retry_after is not None
        assert 0 < held.retry_after <= 7.5
        assert len(server.calls) == calls
        # Another channel has a limit of its own.
        direct = replace(HELLO, key="k3", place=Place("default", DIRECT))
        assert (await adapter.send(direct)).fate is Fate.DELIVERED
        await line.aclose()


@pytest.mark.parametrize(
    ("headers", "everywhere"),
    [
        ({"x-ratelimit-scope": "user"}, False),
        ({"x-ratelimit-scope": "shared"}, False),
        ({"x-ratelimit-scope": "global", "x-ratelimit-global": "true"}, True),
        # One that Discord itself has not sent: we are shut out as a whole.
        ({}, True),
    ],
)
async def test_a_limit_holds_where_it_says(
    headers: dict[str, str], everywhere: bool
) -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        adapter = Discord(line)
        server.next_answer = (*SLOW, {"retry-after": "10", **headers})
        assert (await adapter.send(HELLO)).retry_after == 10
        direct = replace(HELLO, key="k3", place=Place("default", DIRECT))
        fate = (await adapter.send(direct)).fate
        await line.aclose()
    assert fate is (Fate.NOT_SENT if everywhere else Fate.DELIVERED)


@pytest.mark.parametrize("value", ["", "x", "nan", "inf", "-5", "1e99"])
def test_a_limit_that_makes_no_sense_holds_nobody_for_long(value: str) -> None:
    limits = Limits(lambda: 0.0)
    headers = {"retry-after": value, "x-ratelimit-scope": "user"}
    limits.learn("POST /x", "1", httpx.Response(429, headers=headers))
    assert 0 <= limits.pause("POST /x", "1") <= 3600
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": value}
    limits.learn("GET /x", "1", httpx.Response(200, headers=headers))
    assert 0 <= limits.pause("GET /x", "1") <= 3600


async def test_a_lost_message_is_found_by_the_gateway() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        adapter = Discord(line)
        async with running(line, adapter):
            server.losing = True
            assert (await adapter.send(HELLO)).fate is Fate.UNKNOWN
            # What the gateway says comes before the next message does.
            await server.put(DIRECT, content="and?")
            await line.hear(1)
            calls = len(server.calls)
            found = await adapter.reconcile(HELLO)
            assert len(server.calls) == calls
        await line.aclose()
    assert (found.fate, found.message_id) == (
        Fate.DELIVERED,
        server.kept[TEXT][0]["id"],
    )
    assert words(line) == ["and?"]


async def looked(server: DiscordSimulator, message: Outbound = HELLO) -> Fate:
    line = line_to(server)
    try:
        return (await Discord(line).reconcile(message)).fate
    finally:
        await line.aclose()


async def test_a_lost_message_is_looked_for_in_its_channel() -> None:
    async with DiscordSimulator() as server:
        # Where nothing can be read, nothing is known.
        assert await looked(server) is Fate.UNKNOWN
        told = await server.put(TEXT, content="hi")
        assert await looked(server) is Fate.NOT_SENT
        await server.put(TEXT, US, content="something else")
        await server.put(TEXT, content=HELLO.text)
        assert await looked(server) is Fate.NOT_SENT
        said = await server.put(TEXT, US, content=HELLO.text)
        # Ours, and nobody can tell of which try.
        assert await looked(server) is Fate.UNKNOWN
        said["nonce"] = nonce_of("another key")
        server.shows_nonce = True
        assert await looked(server) is Fate.NOT_SENT
        said["nonce"] = nonce_of(HELLO.key)
        assert await looked(server) is Fate.DELIVERED
        said["author"] = ADA
        assert await looked(server) is Fate.NOT_SENT
        server.may_read = False
        assert await looked(server) is Fate.UNKNOWN
        server.may_read, server.unreadable = True, 1
        assert await looked(server) is Fate.UNKNOWN
        for _ in range(100):
            await server.put(TEXT, content="much more")
        assert await looked(server) is Fate.UNKNOWN
        # As far back as what it answers is far enough.
        latest = replace(HELLO, reply_to=server.kept[TEXT][-50]["id"])
        assert await looked(server, latest) is Fate.NOT_SENT
        assert await looked(server, replace(latest, reply_to=told["id"])) is (
            Fate.UNKNOWN
        )
        edit = replace(HELLO, edit_of=said["id"])
        assert await looked(server, edit) is Fate.UNKNOWN


async def test_a_thread_is_asked_for_once_where_discord_does_not_tell() -> None:
    async with DiscordSimulator() as server:
        server.tells_type = False
        line = line_to(server, message_content=True)
        async with running(line):
            await server.put(THREAD, content="one")
            await server.put(THREAD, content="two")
            await server.put(TEXT, content="three")
            heard = await line.hear(3)
        await line.aclose()
    assert [(each.place.peer, each.place.thread) for each in heard] == [
        (TEXT, THREAD),
        (TEXT, THREAD),
        (TEXT, ""),
    ]
    assert server.calls.count(f"GET /channels/{THREAD}") == 1


async def test_without_the_content_what_is_said_to_us_is_heard() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        async with running(line):
            await server.put(TEXT, content="to everybody")
            await server.put(TEXT, content=f"<@{US['id']}>, to us")
            await server.put(DIRECT, content="between us")
            heard = await line.hear(2)
        await line.aclose()
    assert words(line) == ["to us", "between us"]
    assert all(each.mentions_us for each in heard)
    (identity,) = [data for code, data in server.gateway.heard if code == 2]
    assert identity["intents"] == (1 << 9) | (1 << 12)


def read(**fields: Any) -> Any:
    message = {**world.message(TEXT, ADA, content="hi"), **fields}
    if not is_said(message):
        return None
    return inbound(message, HERE, US["id"], updated="edited" in fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": 6},
        {"type": 18},
        # What only we see looks as if it were said directly.
        {"flags": 1 << 6},
        {"author": {**ADA, "id": "../7"}},
        {"author": None},
        {"author": US},
        {"content": "", "attachments": []},
        {"content": "x", "attachments": [{"id": "1"}]},
        {"id": "7 OR 1=1"},
        {"id": 7},
        {"channel_id": "x" * 30},
        {"timestamp": "2026-11-23T10:00:00"},
        {"timestamp": "yesterday"},
        {"edited": True},
        {"mentions": 7},
    ],
)
def test_what_nobody_said_is_not_heard(fields: dict[str, Any]) -> None:
    assert read() is not None
    assert read(**fields) is None


def test_a_program_is_one() -> None:
    assert not read().sender.bot
    assert read(author={**ADA, "bot": True}).sender.bot
    assert read(webhook_id="1").sender.bot
    assert read(member={"nick": "Countess"}).sender.name == "Countess"


def test_an_edit_has_its_time() -> None:
    heard = read(edited=True, edited_timestamp="2026-11-23T10:00:00+00:00")
    assert heard.edited
    assert heard.sent_at == datetime(2026, 11, 23, 10, tzinfo=UTC)


def test_what_is_handed_on_is_no_answer() -> None:
    reference = {"type": 1, "message_id": "5", "channel_id": TEXT}
    ours = {"author": US}
    assert read(message_reference=reference).reply_to == ""
    assert not read(message_reference=reference, referenced_message=ours).mentions_us
    answer = {**reference, "type": 0}
    assert read(message_reference=answer, referenced_message=ours).mentions_us
    assert read(message_reference=answer, referenced_message=None).reply_to == "5"


def test_marks_are_read() -> None:
    said = "<@7> <@!7> <@&8> <#9> <:smile:10> <a:wave:11> <t:1> <@x> <b>"
    assert plain(said, {"7": "Ada"}) == "@Ada @Ada @8 #9 :smile: :wave: <t:1> <@x> <b>"


@settings(max_examples=8, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner),
    ),
    st.sampled_from(sorted(world.message(TEXT, ADA))),
)
def test_no_value_of_a_field_breaks_the_reading(value: Any, field: str) -> None:
    found = read(**{field: value})
    assert found is None or isinstance(json.dumps(found.message_id), str)


@pytest.mark.parametrize(
    ("fields", "room"),
    [
        ({}, Room.DIRECT),
        ({"channel_type": 1}, Room.DIRECT),
        ({"channel_type": 3}, Room.GROUP),
        ({"guild_id": "1", "channel_type": 0}, Room.GROUP),
    ],
)
def test_who_hears_it_is_told(fields: dict[str, Any], room: Room) -> None:
    found = told_where({"channel_id": TEXT, **fields})
    assert found is not None
    assert found.room is room


async def test_an_address_of_a_file_that_is_old_is_asked_for_anew() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        async with running(line):
            file = server.attachment("a.txt", "text/plain", b"abc")
            await server.put(DIRECT, attachments=[file])
            (heard,) = await line.hear(1)
        (attachment,) = heard.attachments
        old = {**attachment.reference, "url": f"{server.url}/files/1?ex=65"}
        assert (
            await Discord(line).download(replace(attachment, reference=old)) == b"abc"
        )
        for url in ("https://evil.example/files/1", "https://cdn.discordapp.com.evil/"):
            forged = {**attachment.reference, "url": url, "message": "x"}
            with pytest.raises(NotFound):
                await Discord(line).download(replace(attachment, reference=forged))
        lost = Attachment("b", "c/d", {**old, "id": "1"})
        with pytest.raises(NotFound):
            await Discord(line).download(lost)
        await line.aclose()


@pytest.mark.parametrize(
    "place",
    [
        Place("default", "1/../../users/@me"),
        Place("default", ""),
        Place("default", TEXT, "a thread"),
        Place("default", "\u0661"),
    ],
)
async def test_no_place_becomes_another_path(place: Place) -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        result = await Discord(line).send(replace(HELLO, place=place))
        bad = replace(HELLO, edit_of="../1")
        assert (await Discord(line).send(bad)).final
        await line.aclose()
    assert (result.fate, result.final) == (Fate.NOT_SENT, True)
    assert not server.calls


async def test_a_channel_that_is_not_ours_is_not_heard() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        async with running(line):
            hidden = {**world.message(HIDDEN, ADA, content="x"), "guild_id": "1"}
            await server.gateway.say("MESSAGE_CREATE", hidden)
            await server.put(DIRECT, content="after")
            await line.hear(1)
        await line.aclose()
    assert words(line) == ["after"]


async def test_nobody_there_is_trouble_and_no_end() -> None:
    server = DiscordSimulator()
    server.url = "http://127.0.0.1:1"
    line = line_to(server)
    result = await Discord(line).send(HELLO)
    assert (result.fate, result.final) == (Fate.NOT_SENT, False)
    assert (await Discord(line).reconcile(HELLO)).fate is Fate.UNKNOWN
    await line.aclose()


async def test_what_discord_asks_of_its_callers_is_told() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        assert await Discord(line).identity() == f"@our_bot ({US['id']})"
        await line.aclose()
    assert server.headers[0]["User-Agent"].startswith("DiscordBot (")


async def test_a_pause_too_long_to_wait_for_is_trouble() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        adapter = Discord(line)
        server.next_answer = (*SLOW, {"retry-after": "600"})
        await adapter.send(HELLO)
        with pytest.raises(Unavailable, match="a pause of 600 seconds"):
            await adapter.identity()
        await line.aclose()


@pytest.mark.parametrize("url", ["http://discord.com/api/v10", "ftp://x", "x"])
def test_an_api_in_the_clear_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="name an https address"):
        Settings(api_url=url)
