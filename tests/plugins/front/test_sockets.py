"""WebSockets: refusals, frames, limits, floods."""

from __future__ import annotations

import asyncio
import json

import pytest
import websockets
from websockets.asyncio.client import ClientConnection, connect

from .conftest import Running, Start, until

ONE = "00000000-0000-0000-0000-000000000001"
NONE = "00000000-0000-0000-0000-000000000000"


def echo(front: Running, thing: str = ONE) -> connect:
    return websockets.connect(f"{front.ws}/api/echo/{thing}")


async def greeted(socket: ClientConnection) -> None:
    assert await socket.recv() == "hello loopback"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/api/echo/{NONE}", 404),
        ("/api/echo/nonsense", 400),
        ("/api/nowhere", 404),
        ("/api/health", 404),
    ],
)
async def test_an_upgrade_is_refused_in_json(
    open_front: Running, path: str, status: int
) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(open_front.ws + path)
    response = refused.value.response
    assert response.status_code == status
    assert set(json.loads(response.body)) == {"error", "code"}
    for name in ("x-request-id", "content-security-policy", "x-frame-options"):
        assert len(response.headers.get_all(name)) == 1


async def test_the_handshake_carries_the_headers(open_front: Running) -> None:
    async with echo(open_front) as socket:
        assert socket.response is not None
        assert len(socket.response.headers.get_all("x-request-id")) == 1
        assert socket.response.headers.get_all("x-frame-options") == ["DENY"]


async def test_text_goes_both_ways(open_front: Running) -> None:
    async with echo(open_front) as socket:
        await greeted(socket)
        for text in ("one", "zwei ü", "x" * 65_000, "ü" * 260_000):
            await socket.send(text)
            assert await socket.recv() == text
    await until(lambda: open_front.seen.sockets_ended == 1)


@pytest.mark.parametrize(
    ("message", "code"),
    [("bug", 1011), ("bye", 1000), ("ü" * 300_000, 1009), (b"bytes", 1003)],
)
async def test_a_socket_is_closed_with_its_reason(
    open_front: Running, message: str | bytes, code: int
) -> None:
    async with echo(open_front) as socket:
        await greeted(socket)
        await socket.send(message)
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()
        assert socket.close_code == code
    await until(lambda: not open_front.front.asgi.running)


async def test_an_oversize_frame_is_refused_and_ends_the_handler(
    open_front: Running,
) -> None:
    async with echo(open_front) as socket:
        await greeted(socket)
        await socket.send("x" * 600_000)
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1009
    await until(lambda: open_front.seen.sockets_ended == 1)
    await until(lambda: not open_front.front.asgi.running)


async def test_sockets_of_one_address_are_counted(start: Start) -> None:
    front = await start(sockets_per_client=2)
    async with echo(front), echo(front) as second:
        with pytest.raises(websockets.InvalidStatus) as refused:
            await echo(front)
        assert refused.value.response.status_code == 429
        assert refused.value.response.headers["retry-after"] == "60"
        await second.close()
        await until(lambda: front.seen.sockets_ended == 1)
        await until(lambda: len(front.front.asgi.running) == 1)
        async with echo(front) as third:
            await greeted(third)


async def test_a_silent_socket_is_closed(start: Start) -> None:
    front = await start(socket_idle=0.05)
    async with echo(front) as socket:
        await greeted(socket)
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1001


async def test_sockets_are_pinged(start: Start) -> None:
    front = await start(socket_ping=0.02)
    reader, writer = await asyncio.open_connection(front.host, front.port)
    writer.write(
        b"GET /api/deaf HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    async with asyncio.timeout(30):
        assert await reader.readexactly(4) == b"\x89\x00\x89\x00"
    writer.close()
    front.seen.release.set()
    await until(lambda: not front.front.asgi.running)


async def test_a_peer_that_never_reads_is_dropped(start: Start) -> None:
    front = await start(peer_timeout=0.2, grace=0.2)
    uri = f"{front.ws}/api/flood"
    async with websockets.connect(uri, compression=None) as socket:
        socket.transport.pause_reading()
        await until(lambda: front.seen.sockets_ended == 1, seconds=10)
        await until(lambda: not front.front.asgi.running, seconds=10)
        socket.transport.abort()


async def test_a_handler_that_never_listens_ends_after_its_peer(start: Start) -> None:
    front = await start(grace=0.05)
    async with websockets.connect(f"{front.ws}/api/deaf"):
        pass
    await until(lambda: front.seen.sockets_ended == 1)
    await until(lambda: not front.front.asgi.running)
