"""HTTP/1.1 to the letter, and nothing beside it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost_front.connection import Connection
from h2.config import H2Configuration
from h2.connection import H2Connection
from hypercorn.events import RawData

from .conftest import KEY, Running, Start, until
from .raw import answered, ask, say
from .test_answers import check_headers

HOST = "Host: localhost"
CLOSE = "Connection: close"
GET = "GET /v1/health HTTP/1.1"
POST = "POST /v1/touch HTTP/1.1"
CHUNKED = "Transfer-Encoding: chunked"
SMUGGLED = b"0\r\n\r\nGET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((POST, HOST, "Content-Length: 5", CHUNKED), "content-length: "),
        (("POST /v1/touch HTTP/1.0", HOST, CHUNKED), "transfer-encoding: "),
        ((GET, HOST, "X-A: b", " folded"), "every header is one line"),
        ((GET, HOST, "Authorization:", "\tBearer x"), "every header is one line"),
        ((GET, HOST, "Transfer-Encoding:", " chunked"), "every header is one line"),
        ((GET, f"{HOST}\nX-A: b"), "every header is one line"),
        (("GET /v1/health HTTP/1.2", HOST), "the version is not HTTP/1.1"),
        (("GET /v1/health HTTP/2.0", HOST), "the version is not HTTP/1.1"),
        (("GET /v1/health HTTP/0.9", HOST), "the version is not HTTP/1.1"),
        (("get /v1/health HTTP/1.1", HOST), "a method is written in capitals"),
        (("Get /v1/health HTTP/1.1", HOST), "a method is written in capitals"),
        (
            (GET, HOST, "Authorization: Bearer a", "authorization: Bearer b"),
            "authorization: given more than once",
        ),
        ((GET, HOST, "Origin: http://a", "Origin: http://b"), "origin: given more"),
        ((POST, HOST, "Content-Type: a/b", "Content-Type: c/d"), "content-type: "),
        ((GET, HOST, "Host: localhost"), "the request is not proper HTTP/1.1"),
        ((GET,), "the request is not proper HTTP/1.1"),
        (("NONSENSE",), "the request is not proper HTTP/1.1"),
    ],
)
async def test_what_a_proxy_could_read_differently_is_refused(
    open_front: Running, lines: tuple[str, ...], told: str
) -> None:
    answer = await ask(open_front, *lines, body=SMUGGLED)
    assert answer.status == 400
    assert answer.error.startswith(told)
    assert answer.headers["connection"] == "close"
    check_headers(answer.headers)
    assert not open_front.seen.calls


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\n", b"\n\r\n"])
async def test_lines_that_end_without_a_carriage_return_are_refused(
    open_front: Running, end: bytes
) -> None:
    head = b"GET /v1/health HTTP/1.1\r\nHost: localhost" + end
    answer = answered(await say(open_front, head))
    assert answer.status == 400
    assert answer.error.startswith("every header is one line")


async def test_a_request_may_come_in_pieces(open_front: Running) -> None:
    head = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    pieces = [head[at : at + 1] for at in range(len(head))]
    assert (await say(open_front, *pieces)).startswith(b"HTTP/1.1 200")


async def test_a_body_may_hold_any_line_end(open_front: Running) -> None:
    body = b"\n\n \r\n\x00\n"
    head = (
        "POST /v1/raw HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    said = await say(open_front, head.encode() + body)
    assert said.startswith(b"HTTP/1.1 200")


async def test_a_refused_head_request_has_no_body(open_front: Running) -> None:
    answer = await ask(open_front, "HEAD /v1/health HTTP/1.2", HOST)
    assert (answer.status, answer.body) == (400, b"")


@pytest.mark.parametrize(
    ("lines", "status", "told"),
    [
        ((GET, HOST, "X-A: " + "a" * 16_384), 431, "the headers are over"),
        ((GET, HOST, "X-A: " + "a" * 65_536), 431, "the headers are over"),
        ((POST, HOST, "Transfer-Encoding: gzip"), 501, "transfer-encoding: only"),
        ((POST, HOST, CHUNKED), 400, "the request is not proper"),
    ],
)
async def test_what_the_server_refuses_itself_is_told_in_json(
    open_front: Running, lines: tuple[str, ...], status: int, told: str
) -> None:
    answer = await ask(open_front, *lines, body=b"x\r\n\r\n")
    assert answer.status == status
    assert answer.error.startswith(told)
    check_headers(answer.headers)


async def test_a_whole_answer_leaves_in_one_write(
    open_front: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    send = Connection._send

    async def noted(connection: Connection, event: Any) -> None:
        written.extend([event.data] if isinstance(event, RawData) else [])
        await send(connection, event)

    monkeypatch.setattr(Connection, "_send", noted)
    answer = await ask(open_front, GET, HOST, CLOSE)
    assert (answer.status, answer.body) == (200, b'{"status":"ok"}')
    check_headers(answer.headers)
    (whole,) = written
    assert whole.endswith(answer.body)
    bare = await ask(open_front, "HEAD /v1/health HTTP/1.1", HOST, CLOSE)
    assert bare.headers["content-length"] == str(len(answer.body))
    assert written[1].endswith(b"\r\n\r\n")


async def test_a_stream_is_framed_as_its_client_can_read_it(
    open_front: Running,
) -> None:
    path, said = "/v1/stream/three", b"data: 0\n\ndata: 1\n\ndata: 2\n\n"
    newer = await ask(open_front, f"GET {path} HTTP/1.1", HOST, CLOSE)
    older = await ask(open_front, f"GET {path} HTTP/1.0", HOST)
    bare = await ask(open_front, f"HEAD {path} HTTP/1.1", HOST, CLOSE)
    for answer in (newer, older, bare):
        assert answer.status == 200
        check_headers(answer.headers)
        assert answer.headers.get_list("connection") == ["close"]
        assert "content-length" not in answer.headers
    assert newer.headers.get_list("transfer-encoding") == ["chunked"]
    assert "transfer-encoding" not in older.headers
    pieces = newer.body.split(b"\r\n")
    assert b"".join(pieces[1::2]) == said
    assert (older.body, bare.body) == (said, b"")


async def test_http2_by_prior_knowledge_is_refused(open_front: Running) -> None:
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    answer = answered(await say(open_front, client.data_to_send()))
    assert answer.status == 400
    assert answer.error.startswith("the version is not HTTP/1.1")


async def test_an_upgrade_to_http2_is_ignored(open_front: Running) -> None:
    answer = await ask(
        open_front,
        GET,
        HOST,
        "Connection: Upgrade, HTTP2-Settings, close",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQAAP__",
    )
    assert answer.status == 200
    assert answer.body == b'{"status":"ok"}'


async def test_an_application_that_never_answers_is_answered_for(
    open_front: Running,
) -> None:
    """A plugin's header that cannot be sent ends its answer before it has begun."""
    answer = await ask(open_front, "GET /v1/fail/header HTTP/1.1", HOST)
    assert answer.status == 500
    assert answer.error.startswith("internal error")
    check_headers(answer.headers)


async def test_a_key_may_end_in_any_letter(start: Start) -> None:
    for key in (f"{KEY}\N{LATIN SMALL LETTER A WITH GRAVE}", f"{KEY}\u0445"):
        assert key.encode()[-1] in {0xA0, 0x85}
        front = await start(api_key=key)
        bearer = [(b"authorization", b"Bearer " + key.encode())]
        answer = await front.client.get("/v1/private", headers=bearer)
        assert answer.status_code == 200


async def test_a_client_that_leaves_in_mid_request_leaves_nothing(
    open_front: Running,
) -> None:
    _, writer = await asyncio.open_connection(open_front.host, open_front.port)
    writer.write(b"POST /v1/touch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n")
    writer.write(b"\r\nabc")
    await until(lambda: bool(open_front.front.asgi.running))
    writer.transport.abort()
    await until(lambda: not open_front.front.asgi.running)
