"""Files over XMPP: where they may be, and what becomes of those that are refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element, fromstring

import pytest
from agenthost import InvalidInput, NotFound, Unavailable
from agenthost_channels.contract import Fate, OutFile, Room
from agenthost_channels.testing import FakeLine
from agenthost_channels.testing.stage import Played, played
from agenthost_channels.testing.stages.xmpp import ProsodyStage, prosody
from agenthost_channels.xmpp.adapter import Xmpp
from agenthost_channels.xmpp.config import Settings
from agenthost_channels.xmpp.files import Uploads, attachment_of, fetched, is_safe
from agenthost_channels.xmpp.mapping import said_of
from aiohttp import web
from pydantic import ValidationError
from slixmpp.jid import JID

REPORT = OutFile("a report & more.pdf", "application/pdf", b"%PDF-1.7 all of it")
OURS = "https://im.example:5281/file_share/"


def told(body: str, *addresses: str) -> Element:
    """Make a message with files, as a server hands it on."""
    files = "".join(f"<x xmlns='jabber:x:oob'><url>{a}</url></x>" for a in addresses)
    return fromstring(
        "<message xmlns='jabber:client' from='ada@x/desk' type='chat' id='m1'>"
        f"<body>{body}</body>{files}</message>"
    )


def with_files_at(address: str, server: str = "xmpp.im.example") -> Settings:
    return Settings(jid="bot@im.example", server=server, files_at=address)


@asynccontextmanager
async def answering(status: int) -> AsyncIterator[str]:
    """Answer everything with a status; give where."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=b"what it is")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("message", "text", "files"),
    [
        (told("https://h/a.png", "https://h/a.png"), "", ("https://h/a.png",)),
        (told("", "https://h/a.png"), "", ("https://h/a.png",)),
        (
            told("look", "HTTPS://h/a", "http://h/b"),
            "look",
            ("HTTPS://h/a", "http://h/b"),
        ),
        (told("look", "https://h/a", "https://h/a"), "look", ("https://h/a",)),
        (told("xmpp:room@h?join", "xmpp:room@h?join"), "xmpp:room@h?join", ()),
        (told("https://h/a.png"), "https://h/a.png", ()),
    ],
)
def test_the_address_of_a_file_is_no_text(
    message: Element, text: str, files: tuple[str, ...]
) -> None:
    said = said_of(message)
    assert said is not None
    assert (said.text, said.files) == (text, files)


def test_without_words_or_a_file_nothing_is_said() -> None:
    assert said_of(told("")) is None
    assert said_of(told(" ", "geo:1,2")) is None


@pytest.mark.parametrize(
    ("address", "name", "kind"),
    [
        ("https://h/x/photo%20one.png?t=1#p", "photo one.png", "image/png"),
        ("https://h/x/..%2F..%2Fpasswd", "../../passwd", "application/octet-stream"),
        ("https://h/", "file", "application/octet-stream"),
        ("https://[h/a.png", "file", "application/octet-stream"),
    ],
)
def test_a_file_has_the_name_of_its_address(address: str, name: str, kind: str) -> None:
    attachment = attachment_of(address)
    assert (attachment.name, attachment.media_type) == (name, kind)


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        (f"{OURS}x/a.png", True),
        ("https://upload.example/a.png", True),
        ("https://upload.example:5443/a.png", True),
        ("http://upload.example/a.png", False),
        ("file:///etc/passwd", False),
        ("https:///a.png", False),
        ("https://ada@upload.example/a.png", False),
        ("https://upload.example\\@im.example/a.png", False),
        ("https://upload.example/a\\b.png", False),
        ("https://xmpp.im.example/admin", False),
        ("https://upload.example:x/a.png", False),
        ("https://im.example/a.png", False),
        ("https://im.example:5281/admin/a.png", False),
        ("http://im.example:5281/file_share/a.png", False),
        (f"{OURS}../admin", False),
        (f"{OURS}%2e%2e/admin", False),
        (f"{OURS}x%2F..%2F..%2Fadmin", False),
    ],
)
def test_a_server_of_ones_own_is_asked_for_its_files_alone(
    address: str, *, asked: bool
) -> None:
    assert is_safe(address, with_files_at(OURS)) is asked


def test_without_a_server_of_ones_own_any_encrypted_one_is_asked() -> None:
    options = with_files_at("")
    assert is_safe("https://im.example/a.png", options)
    assert not is_safe("http://im.example/a.png", options)


@pytest.mark.parametrize(
    "wrong", ["https://h", "ftp://h/", "https://h/?x/", "https://a@h/", "h/"]
)
def test_where_files_are_is_the_beginning_of_an_address(wrong: str) -> None:
    with pytest.raises(ValidationError):
        with_files_at(wrong)


async def test_what_may_not_be_asked_is_not_asked() -> None:
    line = FakeLine(with_files_at(OURS))
    with pytest.raises(InvalidInput):
        await fetched(line, attachment_of("http://127.0.0.1:1/a.png"))
    assert line._client is None


class Slots:
    """A stream whose server gives this slot."""

    def __init__(self, inside: str) -> None:
        self._answer = fromstring(
            f"<iq><slot xmlns='urn:xmpp:http:upload:0'>{inside}</slot></iq>"
        )

    def make_iq_get(self, **_: object) -> list[Element]:
        return []

    async def ask(self, _: object) -> Any:
        class Answer:
            xml = self._answer

        return Answer


@pytest.mark.parametrize(
    ("slot", "reason"),
    [
        (
            "<put url='http://127.0.0.1:1/f/a'/><get url='http://127.0.0.1:1/f/a'/>",
            "handed",
        ),
        ("<put url='http://127.0.0.1:1/f/a'/>", "names no address"),
        ("", "names no address"),
    ],
)
async def test_what_may_go_another_time_is_tried_again(slot: str, reason: str) -> None:
    line = FakeLine(with_files_at("http://127.0.0.1:1/f/"))
    uploads = Uploads(Slots(slot), line)  # type: ignore[arg-type]  # it is asked alone
    uploads._service = JID("upload.im.example")
    with pytest.raises(Unavailable, match=reason):
        await uploads.put(REPORT)
    await line.aclose()


@pytest.mark.parametrize("status", [200, 201, 204])
async def test_what_was_taken_is_there(status: int) -> None:
    async with answering(status) as place:
        line = FakeLine(with_files_at(place))
        uploads = Uploads(Slots(f"<put url='{place}a'/><get url='{place}b'/>"), line)  # type: ignore[arg-type]  # it is asked alone
        uploads._service = JID("upload.im.example")
        assert await uploads.put(REPORT) == f"{place}b"
        await line.aclose()


@pytest.mark.parametrize("status", [202, 301, 403, 500])
async def test_what_was_not_taken_is_not_there(status: int) -> None:
    async with answering(status) as place:
        line = FakeLine(with_files_at(place))
        uploads = Uploads(Slots(f"<put url='{place}a'/><get url='{place}b'/>"), line)  # type: ignore[arg-type]  # it is asked alone
        uploads._service = JID("upload.im.example")
        with pytest.raises(Unavailable, match=str(status)):
            await uploads.put(REPORT)
        await line.aclose()


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, NotFound), (410, NotFound), (500, Unavailable), (204, Unavailable)],
)
async def test_what_is_no_file_is_none(status: int, error: type[Exception]) -> None:
    async with answering(status) as place:
        line = FakeLine(with_files_at(place))
        with pytest.raises(error):
            await fetched(line, attachment_of(f"{place}a.png"))
        await line.aclose()


async def test_the_server_asks_for_few_headers_alone() -> None:
    headers = "".join(
        f"<header name='{name}'>{value}</header>"
        for name, value in (
            ("Authorization", "Bearer\n x"),
            ("Host", "evil"),
            ("", "x"),
        )
    )
    uploads = Uploads(
        Slots(f"<put url='p'>{headers}</put><get url='g'/>"),  # type: ignore[arg-type]  # it is asked alone
        FakeLine(with_files_at("")),
    )
    slot = await uploads._slot(JID("upload.im.example"), REPORT)
    assert slot == ("p", {"Authorization": "Bearer x"}, "g")


async def sent(
    play: Played, file: OutFile, room: Room = Room.DIRECT
) -> tuple[Fate, bool, str]:
    message = replace(play.message("", room), files=(file,))
    found = await play.adapter.send(message)
    return found.fate, found.final, found.reason


@pytest.mark.conformance
async def test_a_file_goes_to_a_room_under_its_name(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        assert (await sent(play, REPORT, Room.GROUP))[0] is Fate.DELIVERED
        [(name, data)] = await stage.files_seen(1)
        # Programs show it where its address is all that is said.
        assert await stage.seen(1, Room.GROUP) == stage.ada.addresses
    assert unquote(name) == REPORT.name
    assert data == REPORT.data


@pytest.mark.conformance
async def test_a_file_that_the_server_refuses_is_not_sent(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        large = OutFile("large.bin", "application/octet-stream", bytes(100_001))
        fate, final, reason = await sent(play, large)
        assert (fate, final) == (Fate.NOT_SENT, True)
        assert reason == "the XMPP server takes no files so large"
        two = replace(play.message(""), files=(REPORT, REPORT))
        assert (await play.adapter.send(two)).final
        await play.adapter.send(play.message("still here"))
        assert await stage.seen(1) == ["still here"]


@pytest.mark.conformance
async def test_a_server_without_uploads_says_so(tmp_path: Path) -> None:
    async with prosody(tmp_path, uploads="") as stage, played(stage) as play:
        fate, final, reason = await sent(play, REPORT)
    assert (fate, final) == (Fate.NOT_SENT, True)
    assert "takes no files" in reason


class ElsewhereStage(ProsodyStage):
    """Of a server that keeps files where the settings do not say."""

    def settings(self) -> Settings:
        told = super().settings().model_dump()
        return Settings(**{**told, "files_at": "http://127.0.0.1:1/file_share/"})


@pytest.mark.conformance
async def test_a_file_goes_nowhere_that_the_settings_do_not_know(
    tmp_path: Path,
) -> None:
    async with prosody(tmp_path) as stage:
        elsewhere = ElsewhereStage(stage.cable, stage.ada, stage.folder)
        async with played(elsewhere) as play:
            fate, final, reason = await sent(play, REPORT)
    assert (fate, final) == (Fate.NOT_SENT, True)
    assert "set files_at" in reason


@pytest.mark.conformance
async def test_a_file_that_is_gone_is_not_found(tmp_path: Path) -> None:
    async with prosody(tmp_path) as stage, played(stage) as play:
        assert isinstance(play.adapter, Xmpp)
        with pytest.raises(NotFound):
            await play.adapter.download(attachment_of(f"{stage.files_at}x/gone.png"))
