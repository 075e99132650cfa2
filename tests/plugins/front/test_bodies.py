"""Bodies: too large, too slow, cut short."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest
from agenthost_front.bodies import patience
from agenthost_front.dispatch import Exchange
from agenthost_front.settings import FrontSettings

from .conftest import Running, Start, until
from .test_answers import check_headers

PREFIXES = ["/api", "/v1"]


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 65536


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_body_over_the_limit_is_refused_by_its_length(
    open_front: Running, at: str
) -> None:
    answer = await open_front.client.post(
        f"{at}/greet",
        content=b"x" * (5 * 1024 * 1024),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"
    check_headers(answer.headers)


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_body_over_the_limit_is_refused_while_it_streams(
    open_front: Running, at: str
) -> None:
    answer = await open_front.client.post(
        f"{at}/greet",
        content=chunks(40),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 413
    check_headers(answer.headers)


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_route_has_its_own_limit(open_front: Running, at: str) -> None:
    for size, status in ((9, 200), (10, 413)):
        answer = await open_front.client.post(f"{at}/raw", content=b"x" * size)
        assert answer.status_code == status


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_slow_body_is_given_up(start: Start, at: str) -> None:
    front = await start(body_timeout=0.05)
    reader, writer = await asyncio.open_connection(front.host, front.port)
    writer.write(
        f"POST {at}/greet HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    assert b" 408 " in head


@pytest.mark.parametrize(
    ("headers", "limit", "seconds"),
    [
        ({}, 5, 2.0),
        ({}, 100, 20.0),
        ({"content-length": "9"}, 100, 2.0),
        ({"content-length": "50"}, 100, 10.0),
        ({"content-length": "999999"}, 100, 20.0),
        ({"content-length": "none"}, 10, 2.0),
    ],
)
def test_who_announces_more_may_take_longer_where_the_route_takes_more(
    headers: dict[str, str], limit: int, seconds: float
) -> None:
    settings = FrontSettings(body_limit=10, body_timeout=2.0)
    exchange = Exchange("r", "POST", "/", "127.0.0.1", headers, b"")
    assert patience(settings, exchange, limit) == seconds


async def test_a_refused_client_can_go_on_on_its_connection(
    locked_front: Running,
) -> None:
    for _ in range(3):
        answer = await locked_front.client.post("/api/touch", content=b"x" * 100_000)
        assert answer.status_code == 401
    pool = locked_front.client._transport._pool  # type: ignore[attr-defined]
    assert len(pool.connections) == 1


async def test_a_client_that_leaves_in_its_body_leaves_nothing(
    open_front: Running,
) -> None:
    _, writer = await asyncio.open_connection(open_front.host, open_front.port)
    writer.write(
        b"POST /api/greet HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    )
    await writer.drain()
    await until(lambda: bool(open_front.front.asgi.running))
    writer.close()
    await until(lambda: not open_front.front.asgi.running)


@pytest.mark.parametrize("at", PREFIXES)
@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip", "nonsense"])
async def test_a_compressed_body_is_refused_by_name(
    open_front: Running, at: str, coding: str
) -> None:
    answer = await open_front.client.post(
        f"{at}/greet",
        content=gzip.compress(b'{"message":"a"}'),
        headers={"content-type": "application/json", "content-encoding": coding},
    )
    assert answer.status_code == 415
    assert answer.json()["error"].startswith("content-encoding: ")
    assert answer.json()["code"] == "unsupported_encoding"
    assert answer.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("at", PREFIXES)
async def test_a_body_may_say_that_it_is_not_compressed(
    open_front: Running, at: str
) -> None:
    headers = {"content-encoding": "identity"}
    answer = await open_front.client.post(
        f"{at}/greet", json={"message": "a"}, headers=headers
    )
    assert answer.status_code == 201
