"""What an outbound client does on the wire, and what it says when the wire fails."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from agenthost import (
    ALLOW,
    CONTEXT,
    OPERATOR,
    AddressCase,
    AgentHostError,
    Blocked,
    Context,
    Deny,
    EgressPolicy,
    Guard,
    InvalidInput,
    NotSent,
    OutcomeUnknown,
    Principal,
    SecuritySystem,
    TooLarge,
    Unavailable,
    UrlCase,
    Verdict,
)
from agenthost.plugins.guards import Guards
from agenthost_egress import transport
from agenthost_egress.client import AiohttpEgress
from aiohttp.client_proto import ResponseHandler

from .wire import Heard, Wire, always, answer, then_close, then_hang

QUICK = EgressPolicy("quick", timeout=0.2)
OPEN = EgressPolicy("open", timeout=5)


async def test_a_request_arrives_as_it_was_written(egress: AiohttpEgress) -> None:
    async with Wire(always(answer(b"hello", x_one="1"))) as wire:
        response = await egress.client(OPEN).post(
            f"{wire.url}/a%2Fb/c;d?q=%7e+x%20y&&#part",
            headers={"X-Key": "value", "Accept": "text/x"},
            content=b"body",
        )
    heard = wire.heard[0]
    assert heard.line == "POST /a%2Fb/c;d?q=%7e+x%20y&& HTTP/1.1"
    assert heard.body == b"body"
    assert heard.header("host") == f"127.0.0.1:{wire.port}"
    assert heard.header("x-key") == "value"
    assert heard.header("accept") == "text/x"
    assert heard.header("accept-encoding") == "gzip, deflate"
    assert heard.header("user-agent") == "agenthost"
    assert heard.header("content-type") is None
    assert (response.status_code, response.text) == (200, "hello")
    assert response.headers["x-one"] == "1"


@pytest.mark.parametrize("name", ["Host", "Transfer-Encoding", "Connection"])
async def test_a_caller_cannot_set_the_headers_of_the_wire(
    egress: AiohttpEgress, name: str
) -> None:
    async with Wire(always(answer())) as wire:
        await egress.client(OPEN).get(wire.url, headers={name: "evil"})
    assert "evil" not in [value for _, value in wire.heard[0].headers]
    assert wire.heard[0].header("host") == f"127.0.0.1:{wire.port}"


async def test_a_wrong_content_length_is_put_right(egress: AiohttpEgress) -> None:
    async with Wire(always(answer())) as wire:
        await egress.client(OPEN).post(
            wire.url, content=b"four", headers={"Content-Length": "1"}
        )
    assert wire.heard[0].body == b"four"


async def test_large_and_streamed_bodies_arrive_whole(egress: AiohttpEgress) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"piece"

    large = b"0123456789abcdef" * 200_000
    async with Wire(always(answer())) as wire:
        client = egress.client(OPEN)
        await client.post(wire.url, content=large)
        await client.post(wire.url, content=pieces())
        await client.post(wire.url, files={"file": b"content"})
    assert wire.heard[0].body == large
    assert wire.heard[0].header("content-length") == str(len(large))
    assert wire.heard[1].body == b"piece" * 3
    assert b"content" in wire.heard[2].body


async def test_a_stream_is_read_as_it_arrives(egress: AiohttpEgress) -> None:
    go = asyncio.Event()

    async def script(heard: Heard, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"3\r\none\r\n")
        await go.wait()
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")

    async with (
        Wire(script) as wire,
        egress.client(OPEN).stream("GET", wire.url) as response,
    ):
        chunks = response.aiter_bytes()
        assert await anext(chunks) == b"one"
        go.set()
        assert await anext(chunks) == b"two"


async def test_a_body_is_read_once_and_not_behind_its_end(
    egress: AiohttpEgress,
) -> None:
    client = egress.client(OPEN)
    async with Wire(always(answer(b"content"))) as wire:
        async with client.stream("GET", wire.url) as response:
            sized = [each async for each in response.aiter_bytes(3)]
            assert sized == [b"con", b"ten", b"t"]
        async with client.stream("GET", wire.url) as response:
            assert [each async for each in response.aiter_bytes()] == [b"content"]
            with pytest.raises(httpx.StreamConsumed):
                _ = [each async for each in response.aiter_bytes()]
        async with client.stream("GET", wire.url) as response:
            await response.aclose()
            with pytest.raises(httpx.StreamClosed):
                _ = [each async for each in response.aiter_bytes()]
        read = await client.get(wire.url)
        assert [each async for each in read.aiter_bytes()] == [b"content"]


def in_pieces(count: int) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"8\r\n12345678\r\n" * count + b"0\r\n\r\n"


@pytest.mark.parametrize("count", [50, 100_000])
async def test_reading_stops_where_a_reader_is_slow_and_goes_on_only_there(
    egress: AiohttpEgress, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    asked: list[str] = []
    for name in ("pause_reading", "resume_reading"):
        real = getattr(ResponseHandler, name)

        def noted(self: Any, *rest: Any, name: str = name, real: Any = real) -> None:
            asked.append(name)
            real(self, *rest)

        monkeypatch.setattr(ResponseHandler, name, noted)

    async def script(_: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(in_pieces(count))

    read = 0
    async with (
        Wire(script) as wire,
        egress.client(OPEN).stream("GET", wire.url) as response,
    ):
        async for chunk in response.aiter_bytes():
            read += len(chunk)
            await asyncio.sleep(0.001)
    assert read == 8 * count
    assert asked.count("resume_reading") <= asked.count("pause_reading")
    assert bool(asked) == (count > 50)


async def test_a_connection_is_kept_alive_within_a_policy_only(
    egress: AiohttpEgress,
) -> None:
    async with Wire(always(answer())) as wire:
        for _ in range(3):
            await egress.client(OPEN).get(wire.url)
        assert wire.connections == 1
        await egress.client(EgressPolicy("other", timeout=5)).get(wire.url)
        assert wire.connections == 2


async def test_equal_policies_share_a_client(egress: AiohttpEgress) -> None:
    assert egress.client(EgressPolicy("a")) is egress.client(EgressPolicy("a"))
    assert egress.client(EgressPolicy("a")) is not egress.client(EgressPolicy("b"))


async def test_cookies_are_shown_and_never_replayed(egress: AiohttpEgress) -> None:
    async with Wire(always(answer(set_cookie="id=1; Path=/"))) as wire:
        client = egress.client(OPEN)
        url = f"http://localhost:{wire.port}"
        assert (await client.get(url)).cookies["id"] == "1"
        await client.get(url)
    assert wire.heard[1].header("cookie") is None


async def test_the_environment_sets_no_proxy(
    egress: AiohttpEgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Wire(always(answer())) as proxy, Wire(always(answer())) as wire:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        await egress.client(OPEN).get(wire.url)
    assert (proxy.connections, wire.connections) == (0, 1)


async def test_nothing_listening_means_not_sent(egress: AiohttpEgress) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(NotSent):
            await egress.client(QUICK).post(f"http://127.0.0.1:{held.getsockname()[1]}")


async def test_a_name_without_address_means_not_sent(
    egress: AiohttpEgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def unknown(_: object, host: str, *__: object, **___: object) -> object:
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", unknown)
    with pytest.raises(NotSent):
        await egress.client(OPEN).get("http://no-such-name.invalid/")
    assert asked == ["no-such-name.invalid"]


async def test_a_failed_handshake_means_not_sent(egress: AiohttpEgress) -> None:
    async def noise(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail ready\r\n")
        writer.close()

    async with await asyncio.start_server(noise, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NotSent):
            await egress.client(OPEN).post(f"https://127.0.0.1:{port}/")


async def test_a_connection_that_never_opens_is_a_connect_timeout(
    egress: AiohttpEgress,
) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(place)
        with pytest.raises(httpx.ConnectTimeout):
            await egress.client(QUICK).get(f"http://127.0.0.1:{place[1]}/")
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\nConte"])
async def test_a_server_that_leaves_after_a_post_leaves_the_outcome_unknown(
    egress: AiohttpEgress, first: bytes
) -> None:
    async with Wire(then_close(first)) as wire:
        with pytest.raises(OutcomeUnknown):
            await egress.client(OPEN).post(wire.url, content=b"pay")
    assert len(wire.heard) == 1


async def test_a_stale_connection_is_tried_again_for_a_get_only(
    egress: AiohttpEgress,
) -> None:
    seen: list[str] = []

    async def script(heard: Heard, writer: asyncio.StreamWriter) -> None:
        seen.append(heard.line)
        if len(seen) % 2:
            writer.write(answer())
        else:
            writer.close()

    async with Wire(script) as wire:
        client = egress.client(OPEN)
        await client.get(wire.url)
        assert (await client.get(wire.url)).text == "ok"
        assert len(seen) == 3
        with pytest.raises(OutcomeUnknown):
            await client.post(wire.url, content=b"pay")
        assert len(seen) == 4


async def test_no_answer_in_time_is_a_read_timeout(egress: AiohttpEgress) -> None:
    async with Wire(then_hang(b"")) as wire:
        with pytest.raises(httpx.ReadTimeout):
            await egress.client(QUICK).post(wire.url, content=b"x")


async def test_a_server_that_never_reads_a_large_body_does_not_hold_us(
    egress: AiohttpEgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deaf(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()
        writer.transport.abort()

    gone = asyncio.Event()
    monkeypatch.setattr(transport, "_SLOWEST", 10**12)
    async with await asyncio.start_server(deaf, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(httpx.ReadTimeout):
            await egress.client(QUICK).post(
                f"http://127.0.0.1:{port}/", content=bytes(30_000_000)
            )
        gone.set()


async def test_a_body_that_stops_is_a_read_timeout(egress: AiohttpEgress) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
    async with Wire(then_hang(head)) as wire:
        with pytest.raises(httpx.ReadTimeout):
            await egress.client(QUICK).get(wire.url)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b""])
@pytest.mark.parametrize("patience", [5, 4])
@pytest.mark.parametrize("hops", [0, 1])
async def test_dripping_bytes_do_not_outlast_the_total(
    egress: AiohttpEgress, head: bytes, patience: int, hops: int
) -> None:
    async def drip(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(head or b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
        while True:
            writer.write(b"X")
            await writer.drain()
            await asyncio.sleep(0.01)

    policy = EgressPolicy("drip", timeout=5, total_timeout=0.3, max_redirects=hops)
    async with Wire(drip) as wire:
        with pytest.raises(httpx.ReadTimeout):
            await egress.client(policy).get(wire.url, timeout=patience)


async def test_a_request_may_be_more_patient_than_its_policy(
    egress: AiohttpEgress,
) -> None:
    go = asyncio.Event()

    async def script(heard: Heard, writer: asyncio.StreamWriter) -> None:
        await go.wait()
        writer.write(answer())

    async with Wire(script) as wire:
        loop = asyncio.get_running_loop()
        loop.call_later(0.4, go.set)
        response = await egress.client(QUICK).get(wire.url, timeout=5)
    assert response.text == "ok"


async def test_a_body_cut_short_is_no_answer(egress: AiohttpEgress) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
    async with Wire(then_close(head)) as wire:
        with pytest.raises(OutcomeUnknown):
            await egress.client(OPEN).get(wire.url)


@pytest.mark.parametrize(
    "noise",
    [
        b"SMTP ready\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 99_999 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x00" * 64,
    ],
)
async def test_noise_never_escapes_as_another_error(
    egress: AiohttpEgress, noise: bytes
) -> None:
    async with Wire(then_close(noise)) as wire:
        with pytest.raises(OutcomeUnknown):
            await egress.client(OPEN).get(wire.url)


async def test_a_header_that_would_split_the_request_is_refused(
    egress: AiohttpEgress,
) -> None:
    async with Wire(always(answer())) as wire:
        with pytest.raises(InvalidInput):
            await egress.client(OPEN).get(wire.url, headers={"X": "a\r\nEvil: b"})
    assert not wire.heard


async def test_an_answer_over_the_cap_is_refused(egress: AiohttpEgress) -> None:
    policy = EgressPolicy("small", timeout=5, max_bytes=10)
    async with Wire(always(answer(b"x" * 11))) as wire:
        with pytest.raises(TooLarge, match="10 bytes"):
            await egress.client(policy).get(wire.url)
    async with Wire(always(answer(b"x" * 10))) as wire:
        assert len((await egress.client(policy).get(wire.url)).content) == 10


async def test_nothing_leaves_without_a_guard() -> None:
    egress = AiohttpEgress(Guards())
    async with Wire(always(answer())) as wire:
        with pytest.raises(Blocked):
            await egress.client(OPEN).get(wire.url)
    assert wire.connections == 0
    await egress.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_address_guard_sees_literals_and_names(host: str) -> None:
    seen: list[AddressCase] = []

    def refuse(case: AddressCase) -> Verdict:
        seen.append(case)
        return Deny("no")

    def allow(case: UrlCase) -> Verdict:
        return ALLOW

    guards: dict[Any, Callable[[Any], Verdict]] = {
        Guard.URL: allow,
        Guard.ADDRESS: refuse,
    }
    egress = AiohttpEgress(
        Guards([SecuritySystem("ssrf_protection", guards, lambda: None)])
    )
    async with Wire(always(answer())) as wire:
        with pytest.raises(Blocked, match="no"):
            await egress.client(OPEN).get(f"http://{host}:{wire.port}/")
    assert wire.connections == 0
    assert [case.host for case in seen] == [host]
    await egress.close()


class Told:
    """Guards that note the context of each case, by point and host."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []
        guards: dict[Any, Callable[[Any], Verdict]] = {
            Guard.URL: self.url,
            Guard.ADDRESS: self.address,
        }
        self.system = SecuritySystem("ssrf_protection", guards, lambda: None)

    def url(self, case: UrlCase) -> Verdict:
        self.seen.append(("url", case.context))
        return ALLOW

    def address(self, case: AddressCase) -> Verdict:
        self.seen.append(("address", case.context))
        return ALLOW


async def test_guards_are_told_the_context_of_each_request_at_every_hop() -> None:
    told, mine = Told(), Context(OPERATOR)
    follow = EgressPolicy("follow", timeout=5, max_redirects=1)
    egress = AiohttpEgress(Guards([told.system]))
    async with Wire(always(answer())) as there:
        away = answer(status="302 Found", location=there.url)
        async with Wire(always(away)) as here:
            await egress.client(follow).get(here.url, extensions={CONTEXT: mine})
    # A literal address is asked when the socket is made, once a hop.
    assert told.seen == [("url", mine), ("address", mine)] * 2
    await egress.close()


async def test_requests_at_once_are_never_told_of_anothers_context() -> None:
    told = Told()
    egress = AiohttpEgress(Guards([told.system]))
    callers = [Context(Principal("caller", str(n))) for n in range(8)]
    everybody = asyncio.Event()

    async def together(heard: Heard, writer: asyncio.StreamWriter) -> None:
        # No connection is free for another request before all have their own.
        if wire.connections == len(callers) + 1:
            everybody.set()
        await everybody.wait()
        writer.write(answer())

    async with Wire(together) as wire:
        url = f"http://localhost:{wire.port}/"
        client = egress.client(OPEN)
        asked = [client.get(url, extensions={CONTEXT: one}) for one in callers]
        await asyncio.gather(*asked, client.get(url))
    for caller in (*callers, None):
        points = [point for point, context in told.seen if context is caller]
        assert points.count("url") == 1
        assert points.count("address") >= 2
    await egress.close()


async def test_a_closed_egress_sends_nothing() -> None:
    egress = AiohttpEgress(Guards())
    client = egress.client(OPEN)
    await egress.close()
    with pytest.raises(Unavailable):
        egress.client(OPEN)
    with pytest.raises((AgentHostError, RuntimeError)):
        await client.get("http://127.0.0.1:1/")


async def test_a_cancelled_request_closes_its_connection(egress: AiohttpEgress) -> None:
    arrived = asyncio.Event()

    async def script(heard: Heard, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await asyncio.Event().wait()

    async with Wire(script) as wire:
        task = asyncio.create_task(egress.client(OPEN).get(wire.url))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_making_a_client_does_not_load_aiohttp() -> None:
    code = (
        "import sys; from agenthost import EgressPolicy, Guards;"
        "from agenthost_egress import open_egress;"
        "assert 'httpx' not in sys.modules;"
        "open_egress(Guards()).client(EgressPolicy('x'));"
        "assert 'aiohttp' not in sys.modules and 'yarl' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_warming_up_loads_what_a_request_needs() -> None:
    code = (
        "import asyncio, sys; from agenthost import Guards;"
        "from agenthost_egress import open_egress;"
        "asyncio.run(open_egress(Guards()).warm_up());"
        "assert {'aiohttp', 'httpx', 'yarl'} <= sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
