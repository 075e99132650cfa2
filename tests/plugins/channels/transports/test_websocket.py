"""The WebSocket of the channels speaks to another implementation."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from agenthost import Unavailable
from agenthost_channels.testing import FakeLine
from agenthost_channels.transports.websocket import Closed, WebSocket
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

Act = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def opened(act: Act) -> AsyncIterator[WebSocket]:
    line = FakeLine(None)
    async with serve(act, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        socket = await WebSocket.connect(line, f"ws://127.0.0.1:{port}/a?b=c")
        try:
            yield socket
        finally:
            socket.close()
            await line.aclose()


async def test_a_ping_is_answered() -> None:
    async def act(server: ServerConnection) -> None:
        async with asyncio.timeout(30):
            await (await server.ping())
        await server.send("ponged")

    async with opened(act) as socket:
        assert await socket.receive(10) == "ponged"


async def test_texts_go_both_ways_in_parts_and_whole() -> None:
    async def act(server: ServerConnection) -> None:
        assert server.request is not None
        await server.send([server.request.path, " ", str(await server.recv())])
        await server.send("next")

    async with opened(act) as socket:
        await socket.send("héllo")
        assert await socket.receive(10) == "/a?b=c héllo"
        assert await socket.receive(10) == "next"


async def test_a_close_tells_its_code() -> None:
    async with opened(lambda server: server.close(4004)) as socket:
        with pytest.raises(Closed) as told:
            await socket.receive(10)
    assert told.value.number == 4004


async def test_a_broken_connection_is_told() -> None:
    async def act(server: ServerConnection) -> None:
        server.transport.abort()

    async with opened(act) as socket:
        with pytest.raises(Unavailable):
            await socket.receive(10)


async def test_a_message_without_an_end_is_refused() -> None:
    async def act(server: ServerConnection) -> None:
        await server.send(["x" * 1_000_000] * 6)

    async with opened(act) as socket:
        with pytest.raises(Unavailable, match="4 MB"):
            await socket.receive(10)


async def test_a_refused_opening_tells_the_status() -> None:
    def refuse(server: ServerConnection, _: Request) -> Response:
        return server.respond(HTTPStatus.FORBIDDEN, "no")

    async def act(_: ServerConnection) -> None: ...

    line = FakeLine(None)
    async with serve(act, "127.0.0.1", 0, process_request=refuse) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match="403"):
            await WebSocket.connect(line, f"ws://127.0.0.1:{port}/")
    assert line.left_open() == 0
    with pytest.raises(Unavailable, match="no WebSocket"):
        await WebSocket.connect(line, "https://example.org/")
