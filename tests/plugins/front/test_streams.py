"""Event streams, and clients that leave, do not read, or pipeline."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import httpx
import pytest
from agenthost_front.asgi import Event
from agenthost_front.inbox import Inbox
from agenthost_front.streams import COMMENT, DisconnectWatcher, Streams

from .conftest import Running, Start, until
from .test_answers import check_headers

PREFIXES = ["/api", "/v1"]


@pytest.mark.parametrize("at", PREFIXES)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_stream_arrives_whole(
    open_front: Running, at: str, method: str
) -> None:
    answer = await open_front.client.request(method, f"{at}/stream/three")
    assert answer.text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-store"
    check_headers(answer.headers)
    assert open_front.seen.closed == 1


@pytest.mark.parametrize("at", PREFIXES)
@pytest.mark.parametrize("kind", ["endless", "tight", "silent"])
async def test_a_client_that_leaves_closes_the_iterator(
    open_front: Running, at: str, kind: str
) -> None:
    url = f"{at}/stream/{kind}"
    async with open_front.client.stream("GET", url) as answer:
        await anext(answer.aiter_raw())
    await until(lambda: open_front.seen.closed == 1)
    await until(lambda: not open_front.front.asgi.running)


@pytest.mark.parametrize("early", [True, False])
async def test_who_leaves_is_noticed_whenever_that_is(early: bool) -> None:
    inbox = Inbox(10)
    loop, left = asyncio.get_running_loop(), {"type": "http.disconnect"}
    if early:
        await inbox.put(left)
    async with asyncio.timeout(30):
        began = loop.time()
        with DisconnectWatcher(inbox, 0.05) as watcher:
            if not early:
                await inbox.put(left)
            # Who only stops sending has so long for an answer.
            await asyncio.Event().wait()
        assert watcher.gone
        assert loop.time() - began >= 0.05 - 1e-3
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_who_leaves_when_the_work_is_done_cancels_nothing() -> None:
    inbox = Inbox(10)
    with DisconnectWatcher(inbox, 0) as watcher:
        await inbox.put({"type": "http.disconnect"})
    await asyncio.sleep(0.01)
    assert not watcher.gone


async def test_a_hundred_clients_that_leave_leave_nothing(open_front: Running) -> None:
    async def leave() -> None:
        async with open_front.client.stream("GET", "/v1/stream/endless") as answer:
            await anext(answer.aiter_raw())

    await asyncio.gather(*(leave() for _ in range(100)))
    await until(lambda: open_front.seen.closed == open_front.seen.opened == 100)
    await until(lambda: not open_front.front.asgi.running)


@pytest.mark.parametrize("at", PREFIXES)
async def test_an_error_in_mid_stream_cuts_the_answer(
    open_front: Running, at: str
) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await open_front.client.get(f"{at}/stream/broken")
    assert open_front.front.panics == 1
    assert open_front.seen.closed == 1


@pytest.mark.parametrize("at", PREFIXES)
async def test_silence_is_filled_with_comments(start: Start, at: str) -> None:
    front = await start(keep_alive=0.02)
    async with front.client.stream("GET", f"{at}/stream/silent") as answer:
        seen = b""
        async for chunk in answer.aiter_raw():
            seen += chunk
            if seen.count(COMMENT) >= 2:
                break
    assert seen.startswith(b"data: 0\n\n" + COMMENT)


async def test_frames_that_are_ready_together_are_sent_together() -> None:
    sent: list[Event] = []

    async def send(message: Event) -> None:
        sent.append(message)

    async def frames() -> AsyncIterator[bytes]:
        for number in range(50):
            yield b"%d " % number

    await Streams(15).serve(frames(), send)
    assert [m["body"] for m in sent] == [
        b"%s" % b"".join(b"%d " % n for n in range(50)),
        b"",
    ]


async def test_a_failing_connection_closes_the_iterator() -> None:
    closed = asyncio.Event()

    async def send(_message: Event) -> None:
        raise ConnectionResetError

    async def frames() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 10_000
        finally:
            closed.set()

    task = asyncio.create_task(Streams(15).serve(frames(), send))
    done, _ = await asyncio.wait((task,), timeout=20)
    assert done
    assert closed.is_set()


async def test_a_client_that_never_reads_is_dropped(start: Start) -> None:
    front = await start(peer_timeout=0.3)
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect((front.host, front.port))
    peer.sendall(b"GET /v1/stream/tight HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await until(lambda: front.seen.opened == 1)
    await until(lambda: front.seen.closed == 1, seconds=10)
    await until(lambda: not front.front.asgi.running)
    peer.close()


async def test_a_pipelined_request_does_not_hide_the_departure(start: Start) -> None:
    front = await start(keep_alive=0.02)
    _, writer = await asyncio.open_connection(front.host, front.port)
    writer.write(
        b"GET /v1/stream/silent HTTP/1.1\r\nHost: localhost\r\n\r\n"
        b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    await writer.drain()
    await until(lambda: front.seen.opened == 1)
    writer.transport.abort()
    await until(lambda: front.seen.closed == 1)


async def test_pipelined_requests_are_answered_in_order(open_front: Running) -> None:
    reader, writer = await asyncio.open_connection(open_front.host, open_front.port)
    writer.write(
        b"GET /v1/keys/one HTTP/1.1\r\nHost: localhost\r\n\r\n"
        b"GET /api/keys/two HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    text = await reader.read()
    writer.close()
    assert text.index(b'["one"]') < text.index(b'["two"]')


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_client_that_leaves_cancels_the_handler(
    open_front: Running, at: str
) -> None:
    task = asyncio.create_task(open_front.client.get(f"{at}/wait"))
    await until(lambda: open_front.seen.opened == 1)
    task.cancel()
    await until(lambda: open_front.seen.cancelled == 1)
    await until(lambda: not open_front.front.asgi.running)
