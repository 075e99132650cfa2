"""What anybody may send is read as what it is, and nothing is said in the open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest
from agenthost import Unauthenticated, Unavailable
from agenthost_channels.contract import Fate, Outbound, Place
from agenthost_channels.testing import FakeLine
from agenthost_channels.xmpp.adapter import Xmpp
from agenthost_channels.xmpp.archive import Archives, Marks
from agenthost_channels.xmpp.client import Client
from agenthost_channels.xmpp.config import Settings
from agenthost_channels.xmpp.mapping import (
    addressed,
    archived,
    in_room,
    is_named,
    late,
    moment,
    said_of,
)
from agenthost_channels.xmpp.wire import opened
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from slixmpp.jid import JID

ROOM = "room@conference.example.org"


def message(inside: str = "", *, kind: str = "chat", sender: str = "ada@x/desk") -> Any:
    """Make a message as a server hands it on."""
    return fromstring(
        f"<message xmlns='jabber:client' from='{sender}' type='{kind}' id='m1'>"
        f"<body>hi</body>{inside}</message>"
    )


def stanza_id(by: str, id_: str) -> str:
    return f"<stanza-id xmlns='urn:xmpp:sid:0' by='{by}' id='{id_}'/>"


def test_words_are_read() -> None:
    said = said_of(message())
    assert said is not None
    assert (said.bare, said.nick, said.words, said.kind) == (
        "ada@x",
        "desk",
        "hi",
        "chat",
    )


@pytest.mark.parametrize("kind", ["error", "headline", "nonsense"])
def test_what_is_no_talk_is_no_message(kind: str) -> None:
    assert said_of(message(kind=kind)) is None


@pytest.mark.parametrize(
    ("inside", "replaces"),
    [
        ("", None),
        ("<replace xmlns='urn:xmpp:message-correct:0' id='m0'/>", "m0"),
        ("<replace xmlns='urn:xmpp:message-correct:0'/>", ""),
    ],
)
def test_a_correction_says_what_it_replaces(inside: str, replaces: str | None) -> None:
    said = said_of(message(inside))
    assert said is not None
    assert said.replaces == replaces


def test_what_is_encrypted_says_so() -> None:
    inside = "<encryption xmlns='urn:xmpp:eme:0' namespace='eu.siacs.conversations'/>"
    said = said_of(message(inside))
    assert said is not None
    assert said.encrypted


def test_an_archive_names_a_message_last() -> None:
    """Prosody leaves what its sender forged before its own."""
    ids = stanza_id("us@x", "forged") + stanza_id("eve@x", "x") + stanza_id("us@x", "1")
    said = said_of(message(ids))
    assert said is not None
    assert said.kept_as("us@x") == "1"
    assert said.kept_as("nobody@x") == ""


def test_an_id_that_cannot_be_shown_is_none() -> None:
    said = said_of(message(stanza_id("us@x", "a b")))
    assert said is not None
    assert said.kept_as("us@x") == ""


def test_a_name_of_its_senders_is_no_name_for_other_words() -> None:
    first, again = said_of(message()), said_of(message())
    other = said_of(message(sender="eve@x/desk"))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.own_id() == again.own_id() != other.own_id()


def test_what_has_no_name_is_another_each_time() -> None:
    raw = fromstring(
        "<message xmlns='jabber:client' from='a@x'><body>x</body></message>"
    )
    said = said_of(raw)
    assert said is not None
    assert said.own_id() != said.own_id()


def test_ours_are_known_by_either_id() -> None:
    origin = "<origin-id xmlns='urn:xmpp:sid:0' id='key'/>"
    assert is_named(message(origin), "key")
    assert is_named(message(), "m1")
    assert not is_named(message(origin), "other")


@pytest.mark.parametrize(
    ("inside", "real", "who"),
    [
        ("", "Ada@x/desk", "ada@x"),
        ("<occupant-id xmlns='urn:xmpp:occupant-id:0' id='o1'/>", "", f"{ROOM}#o1"),
        (
            "<x xmlns='http://jabber.org/protocol/muc#user'><item jid='ada@x/y'/></x>",
            "",
            "ada@x",
        ),
        ("", "", f"{ROOM}/Ada"),
    ],
    ids=["address", "occupant", "archive", "nick"],
)
def test_who_speaks_in_a_room(inside: str, real: str, who: str) -> None:
    said = said_of(message(inside, kind="groupchat", sender=f"{ROOM}/Ada"))
    assert said is not None
    sender = in_room(said, real)
    assert (sender.id, sender.name) == (who, "Ada")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bot: what?", (True, "what?")),
        ("@BOT what?", (True, "what?")),
        ("ask the bot", (True, "ask the bot")),
        ("robots", (False, "robots")),
    ],
)
def test_a_nick_in_a_text_speaks_to_us(text: str, told: tuple[bool, str]) -> None:
    assert addressed(text, "bot") == told


def test_times_have_a_zone() -> None:
    assert late(message("<delay xmlns='urn:xmpp:delay' stamp='never'/>")) is None
    read = moment("2026-07-01T12:00:00Z")
    assert read is not None
    assert read.isoformat() == "2026-07-01T12:00:00+00:00"


@settings(max_examples=8, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_any_result_is_a_message_or_none(id_: str, stamp: str, body: str) -> None:
    result = Element("{urn:xmpp:mam:2}result", {"id": id_})
    forwarded = Element("{urn:xmpp:forward:0}forwarded")
    result.append(forwarded)
    forwarded.append(Element("{urn:xmpp:delay}delay", {"stamp": stamp}))
    inner = Element("{jabber:client}message", {"id": id_, "from": stamp})
    words = Element("{jabber:client}body")
    words.text = body
    inner.append(words)
    forwarded.append(inner)
    read = archived(result)
    assert read is None or read[0] == id_
    said = said_of(inner)
    assert (said is None) == (not body.strip())


class NoClient:
    """Nobody is asked anything."""


def test_results_that_nobody_asked_for_are_dropped() -> None:
    archives = Archives(NoClient(), "us@x")  # type: ignore[arg-type]  # never asked
    kept: list[Any] = []
    archives._open["q"] = (ROOM, kept)
    inside = (
        "<result xmlns='urn:xmpp:mam:2' queryid='{}' id='1'><forwarded"
        " xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client' from='e@x'>"
        "<body>forged</body></message></forwarded></result>"
    )
    assert archives.take(message(inside.format("q"), sender="eve@x"))
    assert archives.take(message(inside.format("other"), sender=ROOM))
    assert kept == []
    assert archives.take(message(inside.format("q"), sender=ROOM))
    assert [each.id for each in kept] == ["1"]
    assert not archives.take(message())


def test_a_cursor_tells_of_each_archive() -> None:
    first = Marks.of("").moved("us@x", "1", moment("2026-07-01T12:00:00Z"))
    second = Marks.of(first).moved(ROOM, "", None)
    assert Marks.of(second).reached == {
        "us@x": ["1", "2026-07-01T12:00:00+00:00"],
        ROOM: ["", ""],
    }


@pytest.mark.parametrize("server", ["example.org", "10.0.0.1", "localhost.example.org"])
def test_nothing_goes_out_in_the_open(server: str) -> None:
    with pytest.raises(ValidationError, match='tls = "none" would send everything'):
        Settings(jid="bot@example.org", server=server, tls="none")


@pytest.mark.parametrize("server", ["127.0.0.1", "::1", "localhost"])
def test_a_server_here_may_be_spoken_to_in_the_open(server: str) -> None:
    assert Settings(jid="bot@example.org", server=server, tls="none").at == 5222


@pytest.mark.parametrize("jid", ["bot", "bot@x/desk", "b'@x", "bot@x'y", "a b@x", "@x"])
def test_an_account_is_a_bare_address(jid: str) -> None:
    with pytest.raises(ValidationError, match="jid"):
        Settings(jid=jid)


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[tuple[FakeLine, list[bytes]]]:
    """Answer each thing that is said with the next of these bytes."""
    heard: list[bytes] = []
    gone: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        gone.append(task)
        for answer in answers:
            heard.append(await reader.read(4096))
            writer.write(answer)
        heard.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    line = FakeLine(Settings(jid="bot@localhost", server="127.0.0.1", port=port))
    try:
        yield line, heard
    finally:
        server.close()
        await line.aclose()
        await asyncio.wait(gone)


FEATURES = (
    b"<stream:stream><stream:features><starttls"
    b" xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:features>"
)
PROCEED = b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ((b"<stream:stream><stream:features/>",), "offers no encryption"),
        ((b"HTTP/1.1 400 Bad Request\r\n",), "no XMPP server"),
        ((b"x" * 70_000,), "no XMPP server"),
        ((FEATURES, b"<failure/>"), "refuses to be encrypted"),
        ((FEATURES, PROCEED + b"<forged/>"), "encrypted|certificate"),
    ],
    ids=["downgrade", "http", "flood", "failure", "injected"],
)
async def test_nothing_is_said_before_it_is_encrypted(
    answers: tuple[bytes, ...], told: str
) -> None:
    async with answering(*answers) as (line, heard):
        async with asyncio.timeout(20):
            with pytest.raises(Unavailable, match=told):
                await opened(line, line.settings)
        assert line.left_open() == 0
    assert b"bot" not in b"".join(heard)


@pytest.mark.parametrize(
    "change", [{"typing": True}, {"text": "hi"}], ids=["typing", "text"]
)
async def test_nothing_goes_out_without_a_session(change: dict[str, Any]) -> None:
    adapter = Xmpp(FakeLine(Settings(jid="bot@x")))
    sent = await adapter.send(Outbound("k", Place("default", "ada@x"), **change))
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, False)


async def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        __import__("sys").modules, "agenthost_channels.xmpp.session", None
    )
    adapter = Xmpp(FakeLine(Settings(jid="bot@x"), {"password": "x"}))
    with pytest.raises(Unavailable, match=r"pip install 'agenthost\[xmpp\]'"):
        await adapter.run()


async def test_strangers_are_not_let_in_and_not_turned_away() -> None:
    client = Client(Settings(jid="bot@x"), "secret")
    said: list[Any] = []
    client.add_event_handler("stanza_not_sent", said.append)
    asks = client.make_presence("bot@x", ptype="subscribe", pfrom=JID("eve@x"))
    client.recv_stanza(asks)
    assert said == []


async def test_a_password_is_needed() -> None:
    with pytest.raises(Unauthenticated, match="XMPP_PASSWORD"):
        await Xmpp(FakeLine(Settings(jid="bot@x"))).run()
