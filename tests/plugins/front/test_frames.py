"""WebSockets held to RFC 6455: handshakes, frames and how they end."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest
import websockets
from agenthost import Call, Principal, PrincipalKind
from agenthost_front.asgi import Event
from agenthost_front.gate import Gate
from agenthost_front.headers import SendWrapper
from agenthost_front.settings import FrontSettings
from agenthost_front.sockets import OpenSocket

from .conftest import KEY, Running, until
from .raw import ECHO, KEY_LINE, answered, ask, say, upgrade
from .test_answers import check_headers

TEXT, PING, CLOSE = 0x81, 0x89, 0x88
COMPRESSED = 0xC1
MASK = b"\x00\x00\x00\x00"
HOLDER = Principal(PrincipalKind.API_KEY, "k")


def frame(first: int, payload: bytes = b"", *, masked: bool = True) -> bytes:
    """One frame of a client, masked with zeros."""
    bit = 0x80 if masked else 0
    if len(payload) < 126:
        head = bytes([first, bit | len(payload)])
    elif len(payload) < 65_536:
        head = bytes([first, bit | 126]) + struct.pack("!H", len(payload))
    else:
        head = bytes([first, bit | 127]) + struct.pack("!Q", len(payload))
    return head + (MASK if masked else b"") + payload


class Peer:
    """A client that speaks in frames of its own making."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self.writer = writer

    async def frame(self) -> tuple[int, bytes]:
        """The next frame of the server that is no ping."""
        async with asyncio.timeout(30):
            first = PING
            while first == PING:
                first, size = await self.reader.readexactly(2)
                if size > 125:
                    wide = "!H" if size == 126 else "!Q"
                    length = await self.reader.readexactly(struct.calcsize(wide))
                    (size,) = struct.unpack(wide, length)
                payload = await self.reader.readexactly(size)
            return first, payload

    async def ended_with(self) -> int:
        """The code of the close frame, and nothing behind it."""
        first, payload = await self.frame()
        assert first == CLOSE
        async with asyncio.timeout(30):
            assert await self.reader.read() == b""
        return int(struct.unpack("!H", payload[:2])[0])


@pytest.fixture
async def peer(open_front: Running) -> AsyncIterator[Peer]:
    """A peer whose socket is open."""
    streams = await asyncio.open_connection(open_front.host, open_front.port)
    one = Peer(*streams)
    offer = "Sec-WebSocket-Extensions: permessage-deflate"
    one.writer.write(upgrade(ECHO, offer))
    head = await one.reader.readuntil(b"\r\n\r\n")
    assert b" 101 " in head
    assert b"extensions" not in head.lower()
    assert await one.frame() == (TEXT, b"hello loopback")
    yield one
    one.writer.close()


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(TEXT, b"\xff\xfe"), 1007),
        (frame(0x01, b"\xc3") + frame(0x80, b"\x28"), 1007),
        (frame(CLOSE, b"\x03\xe8\xff"), 1007),
        (frame(TEXT, b"a", masked=False), 1002),
        (frame(0x83, b"a"), 1002),
        (frame(0x80, b"a"), 1002),
        (frame(0x01, b"a") + frame(TEXT, b"b"), 1002),
        (frame(PING, b"a" * 126), 1002),
        (frame(0x09, b"a"), 1002),
        (frame(CLOSE, b"a"), 1002),
        (frame(CLOSE, struct.pack("!H", 999)), 1002),
        (frame(CLOSE, struct.pack("!H", 1006)), 1002),
        (frame(COMPRESSED, zlib.compress(b"a" * 1000)[2:-4]), 1002),
        (frame(TEXT, b"a" * (512 * 1024 + 1)), 1009),
        (frame(0x82, b"a"), 1003),
        (frame(CLOSE, struct.pack("!H", 1000)), 1000),
        (frame(CLOSE, struct.pack("!H", 4_321) + b"bye"), 4_321),
    ],
)
async def test_every_end_has_its_close_code(
    open_front: Running, peer: Peer, sent: bytes, code: int
) -> None:
    peer.writer.write(sent)
    assert await peer.ended_with() == code
    await until(lambda: not open_front.front.asgi.running)
    assert open_front.seen.sockets_ended == 1
    assert open_front.front.panics == 0


async def test_a_peer_that_goes_on_sending_still_gets_the_close_frame(
    peer: Peer,
) -> None:
    peer.writer.write(frame(0x83))
    for _ in range(64):
        peer.writer.write(frame(TEXT, b"a" * 60_000))
    assert await peer.ended_with() == 1002


async def test_a_message_up_to_the_limit_is_read(peer: Peer) -> None:
    whole = b"\xf0\x9f\x99\x82" * (128 * 1024)
    peer.writer.write(frame(TEXT, whole))
    assert await peer.frame() == (TEXT, whole)


async def test_a_ping_is_answered(peer: Peer) -> None:
    peer.writer.write(frame(PING, b"x" * 125))
    assert await peer.frame() == (0x8A, b"x" * 125)


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        (upgrade(version="12"), 426, "sec-websocket-version: only 13"),
        (
            upgrade().replace(b"Sec-WebSocket-Version: 13\r\n", b""),
            426,
            "sec-websocket",
        ),
        (upgrade().replace(KEY_LINE.encode(), b"X: y"), 400, "sec-websocket-key: "),
        (upgrade().replace(b"dGhl", b"!Ghl"), 400, "sec-websocket-key: "),
        (upgrade().replace(b"dGhl", b""), 400, "sec-websocket-key: "),
        (
            upgrade().replace(b"HTTP/1.1", b"HTTP/1.0"),
            400,
            "a WebSocket needs HTTP/1.1",
        ),
        (upgrade() + frame(TEXT, b"early"), 400, "frames came before the handshake"),
    ],
)
async def test_a_handshake_that_is_none_is_refused_in_json(
    open_front: Running, sent: bytes, status: int, told: str
) -> None:
    answer = answered(await say(open_front, sent))
    assert answer.status == status
    assert answer.error.startswith(told)
    check_headers(answer.headers)
    if status == 426:
        assert answer.headers["sec-websocket-version"] == "13"
        assert answer.headers["upgrade"] == "websocket"
        assert answer.headers["connection"] == "upgrade, close"
    await until(lambda: not open_front.front.asgi.running)


@pytest.mark.parametrize("path", [ECHO, "/api/echo/nonsense", "/api/flood"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_socket_asked_for_without_an_upgrade_says_so(
    open_front: Running, method: str, path: str
) -> None:
    answer = await open_front.client.request(method, path)
    assert answer.status_code == 426
    assert answer.headers["upgrade"] == "websocket"
    assert answer.headers["connection"] == "upgrade"
    assert answer.headers["sec-websocket-version"] == "13"
    check_headers(answer.headers)
    if method == "GET":
        assert answer.json()["code"] == "upgrade_required"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_other_methods_are_not_allowed_at_a_socket(
    open_front: Running, method: str
) -> None:
    answer = await open_front.client.request(method, ECHO)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"
    assert answer.json()["code"] == "method_not_allowed"


async def test_without_the_key_nobody_learns_of_sockets(locked_front: Running) -> None:
    answer = await locked_front.client.get(ECHO)
    assert answer.status_code == 401


async def test_a_socket_asked_of_a_plain_route_is_told_what_it_is(
    open_front: Running,
) -> None:
    for path in ("/api/health", "/v1/health"):
        answer = answered(await say(open_front, upgrade(path)))
        assert answer.status == 404
        assert answer.error == (
            f"WebSocket not found: {path}; it is served without an upgrade"
        )


async def test_a_mistake_does_not_cost_a_ticket(locked_front: Running) -> None:
    ticket = locked_front.front.tickets.issue(HOLDER)
    for path in ("/api/nowhere", "/api/health", "/api/echo/nonsense"):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(f"{locked_front.ws}{path}?ticket={ticket}")
        assert refused.value.response.status_code in {400, 404}
    async with websockets.connect(f"{locked_front.ws}{ECHO}?ticket={ticket}") as socket:
        assert await socket.recv() == "hello api_key"


async def test_of_many_with_one_ticket_one_gets_in(locked_front: Running) -> None:
    ticket = locked_front.front.tickets.issue(HOLDER)
    uri = f"{locked_front.ws}{ECHO}?ticket={ticket}"

    async def enter() -> int:
        try:
            async with websockets.connect(uri):
                return 101
        except websockets.InvalidStatus as refused:
            return refused.response.status_code

    statuses = await asyncio.gather(*(enter() for _ in range(20)))
    assert sorted(statuses) == [101] + [401] * 19


async def test_what_a_handler_has_not_read_is_bounded() -> None:
    brought = 0

    async def receive() -> Event:
        nonlocal brought
        brought += 1
        return {"type": "websocket.receive", "text": "a" * 200_000}

    async def send(message: Event) -> None:
        return

    gate = cast("Gate", SimpleNamespace(settings=FrontSettings()))
    sender = SendWrapper(send, "/", "id")
    socket = OpenSocket(cast("Call", None), receive, sender, gate)
    await socket.accept()
    for expected in (3, 4, 5):
        for _ in range(100):
            await asyncio.sleep(0)
        assert brought == expected
        assert await socket.receive() == "a" * 200_000
    socket.release()


async def test_a_plain_request_asks_with_a_key_line_in_vain(
    open_front: Running,
) -> None:
    answer = await ask(
        open_front,
        "POST /v1/touch HTTP/1.1",
        "Host: localhost",
        "Upgrade: websocket",
        "Connection: Upgrade, close",
        KEY_LINE,
    )
    assert answer.status == 200


async def test_a_locked_socket_opens_with_its_key(locked_front: Running) -> None:
    head = f"Authorization: Bearer {KEY}"
    reader, writer = await asyncio.open_connection(locked_front.host, locked_front.port)
    writer.write(upgrade(ECHO, head))
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    writer.close()
