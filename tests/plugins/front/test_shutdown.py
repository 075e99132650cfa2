"""Starting, and the order of death."""

from __future__ import annotations

import asyncio
from typing import cast

import httpx
import pytest
import websockets
from agenthost import (
    Answer,
    Call,
    ConfigError,
    Conflict,
    PluginError,
    RouteGroup,
    Socket,
)
from agenthost.daemon import Daemon
from agenthost_front.front import QuartFront
from agenthost_front.settings import FrontSettings

from .conftest import FakeDaemon, Running, Start, until
from .test_answers import check_headers

ECHO = "/api/echo/00000000-0000-0000-0000-000000000001"


async def test_a_taken_port_is_told_in_words(open_front: Running) -> None:
    other = QuartFront(cast("Daemon", FakeDaemon()), FrontSettings())
    with pytest.raises(Conflict, match=f"port {open_front.port} of 127.0.0.1 is taken"):
        await other.start("127.0.0.1", open_front.port)


async def test_a_foreign_address_is_told_in_words() -> None:
    front = QuartFront(cast("Daemon", FakeDaemon()), FrontSettings())
    with pytest.raises(ConfigError, match="listen_addr"):
        await front.start("192.0.2.1", 0)


async def test_it_also_listens_on_ipv6() -> None:
    front = QuartFront(cast("Daemon", FakeDaemon()), FrontSettings())
    _, port = await front.start("::1", 0)
    async with httpx.AsyncClient(verify=False) as client:
        answer = await client.get(f"http://[::1]:{port}/openapi.json")
    assert answer.status_code == 200
    await front.stop()


async def test_new_work_is_refused_before_turns_end(open_front: Running) -> None:
    answers: list[httpx.Response] = []

    async def end_turns() -> None:
        answers.append(await open_front.client.get("/api/health"))
        answers.append(await open_front.client.get("/v1/health"))

    await open_front.front.drain(end_turns)
    for answer in answers:
        assert answer.status_code == 503
        assert answer.json()["code"] == "draining"
        check_headers(answer.headers)
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(open_front.ws + ECHO)
    assert refused.value.response.status_code == 503


async def test_draining_ends_streams_and_sockets_in_good_order(
    open_front: Running,
) -> None:
    client, seen = open_front.client, open_front.seen
    streams = [
        asyncio.create_task(client.get(f"{at}/stream/{kind}"))
        for at in ("/api", "/v1")
        for kind in ("silent", "endless")
    ]
    sockets = [await websockets.connect(open_front.ws + ECHO) for _ in range(3)]
    await until(lambda: seen.opened == 4)
    await open_front.front.drain()
    for answer in await asyncio.gather(*streams):
        assert answer.text.startswith("data: 0\n\n")
    for socket in sockets:
        await socket.wait_closed()
        assert socket.close_code == 1001
    assert seen.closed == 4
    assert not open_front.front.asgi.running


async def test_stopping_ends_what_does_not_end_by_itself(start: Start) -> None:
    front = await start(grace=0.05)
    waiting = [
        asyncio.create_task(front.client.get(f"{at}/wait")) for at in ("/api", "/v1")
    ]
    await until(lambda: front.seen.opened == 2)
    await front.front.drain()
    await front.front.stop()
    assert front.seen.cancelled == 2
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(r, httpx.Response | httpx.HTTPError) for r in results)
    with pytest.raises(httpx.ConnectError):
        await front.client.get("/api/health")


def test_two_groups_cannot_serve_one_path() -> None:
    first, second = RouteGroup("first"), RouteGroup("second")

    @first.get("/x/<a>", scope="x:read")
    async def by_a(call: Call, a: str) -> Answer:
        return []

    @second.get("/x/<b>", scope="x:read")
    async def by_b(call: Call, b: str) -> Answer:
        return []

    front = QuartFront(cast("Daemon", FakeDaemon()), FrontSettings())
    front.mount(first)
    with pytest.raises(PluginError, match=r"GET /x/\{b\} of .*'second'.*'first'"):
        front.mount(second)


def test_a_handler_must_fit_its_route() -> None:
    group = RouteGroup("odd")

    @group.socket("/x/<a>", scope="x:read")
    async def odd(socket: Socket, b: str) -> None:
        return

    front = QuartFront(cast("Daemon", FakeDaemon()), FrontSettings())
    with pytest.raises(PluginError, match="odd"):
        front.mount(group)
