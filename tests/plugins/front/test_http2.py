"""HTTP/2 over TLS: what is served, what a peer may not do, what others say of it."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h2.connection
import h2.errors
import h2.events
import httpx
import pytest
from agenthost_front.toll import BURST, PER_SECOND, Toll
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.security.certificate import self_signed

from .conftest import Running, Start

pytestmark = pytest.mark.setting("server.tls_cert", "server.tls_key")

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CALM = h2.errors.ErrorCodes.ENHANCE_YOUR_CALM


class Encrypted:
    """A front that speaks TLS, and what a client needs to trust it."""

    def __init__(self, front: Running, cert: Path) -> None:
        self.front = front
        self.cert = cert
        self.url = f"https://localhost:{front.port}"

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.cert)

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url, http2=True, verify=self.context(), timeout=30
        )


Encrypt = Callable[..., Awaitable[Encrypted]]


@pytest.fixture
async def encrypted(start: Start, tmp_path: Path) -> Encrypt:
    cert, key = self_signed(tmp_path, "localhost")
    key.chmod(0o600)

    async def begin(**more: Any) -> Encrypted:
        return Encrypted(await start(tls=(cert, key), **more), cert)

    return begin


class Peer:
    """A client by hand: h2 keeps its rules, what it sends besides is anything."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.wire = h2.connection.H2Connection()
        self.events: list[h2.events.Event] = []
        self._reader, self._writer = reader, writer

    async def send(self, more: bytes = b"") -> None:
        self._writer.write(self.wire.data_to_send() + more)
        try:
            await self._writer.drain()
        except ConnectionError:
            return

    def ask(self, path: str, method: str = "GET", *more: tuple[str, str]) -> int:
        number = self.wire.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", "localhost")]
        ends = method == "GET"
        self.wire.send_headers(number, [*head, (":path", path), *more], end_stream=ends)
        return number

    async def until(
        self, kind: type[h2.events.Event], number: int | None = None
    ) -> h2.events.Event:
        """Read on until something happens to a stream."""
        async with asyncio.timeout(30):
            while True:
                for event in self.events:
                    told = getattr(event, "stream_id", None)
                    if isinstance(event, kind) and number in {None, told}:
                        self.events.remove(event)
                        return event
                data = await self._reader.read(65_536)
                assert data, f"the connection ended before {kind.__name__}"
                self.events += self.wire.receive_data(data)
                await self.send()

    async def status(self, number: int) -> str:
        answer = await self.until(h2.events.ResponseReceived, number)
        assert isinstance(answer, h2.events.ResponseReceived)
        return dict(answer.headers or [])[b":status"].decode()

    async def end(self) -> list[h2.events.Event]:
        """Read until the other side is done; give all that came."""
        async with asyncio.timeout(30):
            try:
                while data := await self._reader.read(65_536):
                    self.events += self.wire.receive_data(data)
            except ConnectionError:
                pass
        return self.events


@asynccontextmanager
async def peer(server: Encrypted) -> AsyncIterator[Peer]:
    context = server.context()
    context.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection(
        "localhost", server.front.port, ssl=context, family=2
    )
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
    one = Peer(reader, writer)
    one.wire.initiate_connection()
    await one.send()
    try:
        yield one
    finally:
        writer.close()


async def test_requests_share_one_connection(encrypted: Encrypt) -> None:
    server = await encrypted()
    async with server.client() as client:
        first = await client.get("/api/health")
        assert (first.http_version, first.json()) == ("HTTP/2", {"status": "ok"})
        assert first.headers["x-request-id"]
        assert first.headers["x-content-type-options"] == "nosniff"
        said = await asyncio.gather(
            *[
                client.post("/v1/greet", json={"message": f"{n} ", "times": 3})
                for n in range(150)
            ]
        )
        assert [each.json()["said"] for each in said] == [
            f"{n} " * 3 for n in range(150)
        ]
        assert len(client._transport._pool.connections) == 1  # type: ignore[attr-defined]
        missing = await client.get("/api/nowhere")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
        broken = await client.get("/v1/fail/bug")
        assert broken.status_code == 500
        assert "secret" not in broken.text
        head = await client.head("/api/health")
        assert (head.status_code, head.content) == (200, b"")
        gone = await client.delete(f"/v1/things/{'0' * 32}")
        assert gone.status_code == 204


async def test_a_large_body_comes_whole_and_a_larger_one_is_refused(
    encrypted: Encrypt,
) -> None:
    server = await encrypted(body_limit=3_000_000)
    async with server.client() as client:
        text = "é" * 600_000
        large = await client.post("/v1/greet", json={"message": text})
        assert large.json()["said"] == text
        for _ in range(3):
            over = await client.post("/v1/greet", json={"message": text * 3})
            assert over.status_code == 413
        assert (await client.get("/api/health")).status_code == 200
        assert len(client._transport._pool.connections) == 1  # type: ignore[attr-defined]


async def test_a_stream_flows_and_ends_when_its_reader_leaves(
    encrypted: Encrypt,
) -> None:
    server = await encrypted()
    seen = server.front.seen
    async with peer(server) as one:
        endless, three = one.ask("/v1/stream/endless"), one.ask("/v1/stream/three")
        await one.send()
        await one.until(h2.events.StreamEnded, three)
        for _ in range(5):
            await one.until(h2.events.DataReceived, endless)
        one.wire.reset_stream(endless)
        await one.send()
        async with asyncio.timeout(30):
            while seen.closed < seen.opened:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
        other = one.ask("/v1/health")
        await one.send()
        assert await one.status(other) == "200"


async def test_a_reset_cancels_what_was_asked(encrypted: Encrypt) -> None:
    server = await encrypted()
    seen = server.front.seen
    async with peer(server) as one:
        waiting, other = one.ask("/v1/wait"), one.ask("/v1/health")
        await one.send()
        assert await one.status(other) == "200"
        one.wire.reset_stream(waiting)
        await one.send()
        async with asyncio.timeout(30):
            while not seen.cancelled:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("method", "path", "more", "status"),
    [
        ("GET", "/v1/health", [("x-long", "x" * 20_000)], "431"),
        ("GET", "/v1/h\u00e9", [], "400"),
        ("GET", "v1", [], "400"),
        ("get", "/v1/health", [], "400"),
        ("GET", "/v1/health", [("authorization", "a"), ("authorization", "b")], "400"),
        ("OPTIONS", "*", [], "400"),
    ],
)
async def test_what_http_1_1_refuses_is_refused(
    encrypted: Encrypt,
    method: str,
    path: str,
    more: list[tuple[str, str]],
    status: str,
) -> None:
    server = await encrypted()
    async with peer(server) as one:
        number = one.ask(path, method, *more)
        await one.send()
        assert await one.status(number) == status
        body = await one.until(h2.events.DataReceived, number)
        assert isinstance(body, h2.events.DataReceived)
        assert json.loads(body.data or b"")["error"]
        # The connection goes on.
        after = one.ask("/v1/health")
        await one.send()
        assert await one.status(after) == "200"


async def test_nothing_is_tunnelled(encrypted: Encrypt) -> None:
    server = await encrypted()
    async with peer(server) as one:
        number = one.wire.get_next_available_stream_id()
        one.wire.send_headers(
            number, [(":method", "CONNECT"), (":authority", "elsewhere:443")]
        )
        await one.send()
        assert await one.status(number) == "501"


async def test_a_body_is_asked_for_where_its_sender_waits(
    encrypted: Encrypt,
) -> None:
    server = await encrypted()
    async with peer(server) as one:
        head = ("content-type", "application/json"), ("expect", "100-continue")
        number = one.ask("/v1/greet", "POST", *head)
        await one.send()
        await one.until(h2.events.InformationalResponseReceived, number)
        one.wire.send_data(number, b'{"message":"hi"}', end_stream=True)
        await one.send()
        assert await one.status(number) == "201"


async def test_a_body_that_nobody_takes_holds_up_nobody(
    encrypted: Encrypt,
) -> None:
    server = await encrypted(body_timeout=60.0)
    async with peer(server) as one:
        # Bodies whose end never comes; room for all of them comes with an answer.
        first = one.ask("/v1/health")
        await one.send()
        assert await one.status(first) == "200"
        for _ in range(20):
            number = one.ask("/v1/greet", "POST", ("content-type", "application/json"))
            one.wire.send_data(number, b"x" * 16_000)
            await one.send()
        other = one.ask("/v1/health")
        await one.send()
        assert await one.status(other) == "200"


async def test_who_takes_nothing_is_left(encrypted: Encrypt) -> None:
    server = await encrypted(peer_timeout=0.2)
    seen = server.front.seen
    async with peer(server) as one:
        one.wire.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 10})
        number = one.ask("/v1/stream/endless")
        await one.send()
        reset = await one.until(h2.events.StreamReset, number)
        assert isinstance(reset, h2.events.StreamReset)
        assert reset.error_code == h2.errors.ErrorCodes.CANCEL
        async with asyncio.timeout(30):
            while seen.closed < seen.opened:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)


def frame(kind: int, stream: int = 0, body: bytes = b"", flags: int = 0) -> bytes:
    return (
        struct.pack(">I", len(body))[1:]
        + struct.pack(">BBI", kind, flags, stream)
        + body
    )


def heads_with_resets(number: int) -> bytes:
    """Requests that are taken back at once, CVE-2023-44487."""
    from hpack import Encoder

    encoder, made = Encoder(), []
    head = [(":method", "GET"), (":scheme", "https"), (":path", "/v1/wait")]
    for each in range(number):
        block = encoder.encode([*head, (":authority", "localhost")])
        stream = 2 * each + 1
        made += [frame(1, stream, block, 5), frame(3, stream, struct.pack(">I", 8))]
    return b"".join(made)


FLOODS = {
    "settings": frame(4) * 50_000,
    "pings": frame(6, body=b"12345678") * 50_000,
    "priorities": frame(2, 1, b"\0\0\0\0\x10") * 50_000,
    "windows": frame(8, body=b"\0\0\0\x01") * 50_000,
    "unknown frames": frame(77, body=b"x") * 50_000,
    "empty bodies": frame(0, 1) * 50_000,
    "resets": heads_with_resets(3_000),
    "continuations": frame(1, 1, b"", 0) + frame(9, 1) * 50_000,
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_of_frames_ends_its_own_connection_and_no_other(
    encrypted: Encrypt,
    flood: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = await encrypted()
    async with server.client() as other, peer(server) as one:
        await one.send(FLOODS[flood])
        assert (await other.get("/api/health")).status_code == 200
        events = await one.end()
        ends = [e for e in events if isinstance(e, h2.events.ConnectionTerminated)]
        assert [each.error_code for each in ends] in ([CALM], [])
        assert (await other.get("/api/health")).status_code == 200
    assert server.front.seen.opened <= 600
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


async def test_a_connection_that_rests_too_long_is_told_of_its_end(
    encrypted: Encrypt,
) -> None:
    server = await encrypted(connection_idle=0.3)
    async with peer(server) as one:
        number = one.ask("/v1/health")
        await one.send()
        assert await one.status(number) == "200"
        end = await one.until(h2.events.ConnectionTerminated)
        assert isinstance(end, h2.events.ConnectionTerminated)
        assert end.error_code == h2.errors.ErrorCodes.NO_ERROR


async def test_a_stop_waits_for_no_client(encrypted: Encrypt) -> None:
    server = await encrypted()
    async with peer(server) as one:
        number = one.ask("/v1/health")
        await one.send()
        assert await one.status(number) == "200"
        await server.front.front.stop()
        events = await one.end()
        assert any(isinstance(e, h2.events.ConnectionTerminated) for e in events)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 3, 4, 6, 8, 9]), st.integers(0, 600))),
    st.lists(st.integers(1, 400), min_size=1),
)
def test_the_toll_is_the_same_however_the_bytes_come(
    frames: list[tuple[int, int]], cuts: list[int]
) -> None:
    data = PREFACE + b"".join(frame(kind, 1, bytes(size)) for kind, size in frames)
    whole, pieces = Toll(lambda: 0.0), Toll(lambda: 0.0)
    assert whole.pays(data)
    at, step = 0, 0
    while at < len(data):
        assert pieces.pays(data[at : at + cuts[step % len(cuts)]])
        at += cuts[step % len(cuts)]
        step += 1
    paid = sum(1 for kind, size in frames if kind != 0 or size < 256)
    assert whole._left == pieces._left == BURST - paid


def test_the_toll_is_forgiven_with_time_and_with_answers() -> None:
    now = [0.0]
    toll = Toll(lambda: now[0])
    assert toll.pays(PREFACE + frame(6, body=bytes(8)) * int(BURST))
    assert not toll.pays(frame(4))
    now[0] += 5
    assert toll.pays(frame(4) * int(4 * PER_SECOND))
    for _ in range(200):
        toll.sent()
    assert toll.pays(frame(4) * 400)


@pytest.mark.conformance
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
async def test_curl_speaks_it(encrypted: Encrypt, tmp_path: Path) -> None:
    """It is built on nghttp2, which shares nothing with h2."""
    server = await encrypted(body_limit=3_000_000)
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"message": "x" * 1_000_000}))
    curl = await asyncio.create_subprocess_exec(
        *("curl", "--http2", "--silent", "--show-error", "--cacert", str(server.cert)),
        *("--noproxy", "*", "--max-time", "60", "--output", str(tmp_path / "answer")),
        *("--write-out", "%{http_version} %{http_code}"),
        *("--header", "content-type: application/json"),
        *("--header", "expect: 100-continue"),
        *("--data-binary", f"@{body}", f"{server.url}/v1/greet"),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await curl.communicate()
    assert out == b"2 201"
    assert len(json.loads((tmp_path / "answer").read_text())["said"]) == 1_000_000


NODE = """
const http2 = require('node:http2'), fs = require('node:fs');
const [url, cert] = process.argv.slice(1);
const session = http2.connect(url, {ca: fs.readFileSync(cert)});
session.on('goaway', code => console.error('goaway', code));
function ask(head, body) {
  return new Promise((resolve, reject) => {
    const stream = session.request(head, {endStream: body === undefined});
    let status, said = '';
    stream.setEncoding('utf8');
    stream.on('response', told => { status = told[':status']; });
    stream.on('data', part => { said += part; });
    stream.on('end', () => resolve([status, said]));
    stream.on('error', reject);
    if (body !== undefined) stream.end(body);
  });
}
(async () => {
  const json = {'content-type': 'application/json'};
  const many = [];
  for (let n = 0; n < 500; n++) {
    const body = JSON.stringify({message: 'm' + n, times: n % 50 + 1});
    many.push(ask({':method': 'POST', ':path': '/v1/greet', ...json}, body));
    if (n % 90 === 89) await Promise.all(many);
  }
  const said = (await Promise.all(many)).map(([s, t]) => [s, JSON.parse(t).said]);
  const wrong = said.filter(([s, t], n) =>
    s !== 201 || t !== ('m' + n).repeat(n % 50 + 1));
  const [, three] = await ask({':path': '/v1/stream/three'});
  const lone = session.request({':path': '/v1/stream/endless'});
  await new Promise(done => lone.once('data', done));
  lone.close(http2.constants.NGHTTP2_CANCEL);
  const [after] = await ask({':path': '/v1/health'});
  console.log(JSON.stringify({wrong: wrong.length, three, after}));
  session.close();
})().catch(error => { console.error(error); process.exit(1); });
"""


@pytest.mark.conformance
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
async def test_node_speaks_it(encrypted: Encrypt) -> None:
    server = await encrypted()
    node = await asyncio.create_subprocess_exec(
        *("node", "-e", NODE, server.url, str(server.cert)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(120):
        out, err = await node.communicate()
    assert not err, err.decode()
    told = json.loads(out)
    assert told == {
        "wrong": 0,
        "three": "data: 0\n\ndata: 1\n\ndata: 2\n\n",
        "after": 200,
    }
    seen = server.front.seen
    async with asyncio.timeout(30):
        while seen.closed < seen.opened:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
