"""TLS by files: what is served, what is refused, what an attacker can hold."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import ssl
from pathlib import Path

import httpx
import pytest
from agenthost import ConfigError
from agenthost.testing import Daemons, RunningDaemon
from agenthost_front.tls import read_tls
from websockets.asyncio.client import connect

from tests.plugins.security.certificate import self_signed

DAY = 86_400


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    cert, key = self_signed(tmp_path, "localhost")
    key.chmod(0o600)
    return cert, key


@pytest.fixture
async def daemon(daemons: Daemons, files: tuple[Path, Path]) -> RunningDaemon:
    cert, key = files
    text = f'[server]\ntls_cert = "{cert}"\ntls_key = "{key}"\n'
    return await daemons.start(config=text)


def trusting(cert: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=cert)


def port_of(daemon: RunningDaemon) -> int:
    return int(daemon.daemon.address.rpartition(":")[2])


@pytest.mark.setting("server.tls_cert", "server.tls_key")
async def test_everything_is_served_over_tls(
    daemon: RunningDaemon, files: tuple[Path, Path]
) -> None:
    trusted = trusting(files[0])
    at = f"localhost:{port_of(daemon)}"
    async with httpx.AsyncClient(verify=trusted) as client:
        for _ in range(2):
            answer = await client.get(f"https://{at}/api/health")
            assert (answer.status_code, answer.http_version) == (200, "HTTP/1.1")
        made = await client.post(
            f"https://{at}/api/agents",
            json={"manifest_toml": 'name = "one"'},
            headers={"origin": f"https://{at}"},
        )
        assert made.status_code == 201, made.text
        daemon.model.says("hello")
        agent = made.json()["agent_id"]
        address = f"wss://{at}/api/agents/{agent}/ws"
        async with connect(address, ssl=trusted) as socket:
            await socket.send("hi")
            frames = [json.loads(await socket.recv()) for _ in range(3)]
    assert [frame["type"] for frame in frames] == [
        "connected",
        "thinking",
        "text_delta",
    ]


async def test_a_client_that_can_is_answered_by_http_2(
    daemon: RunningDaemon, files: tuple[Path, Path]
) -> None:
    """The rest of it stands in ``test_http2``."""
    at = f"https://localhost:{port_of(daemon)}"
    async with httpx.AsyncClient(http2=True, verify=trusting(files[0])) as client:
        made = await client.post(
            f"{at}/api/agents", json={"manifest_toml": 'name = "one"'}
        )
        assert (made.status_code, made.http_version) == (201, "HTTP/2"), made.text
        daemon.model.says("hello")
        said = await client.post(
            f"{at}/api/agents/{made.json()['agent_id']}/message", json={"message": "hi"}
        )
    assert said.json()["response"] == "hello"


async def test_plain_http_is_not_answered(daemon: RunningDaemon) -> None:
    with pytest.raises(httpx.HTTPError):
        await daemon.http.get("/api/health")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (
            b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            200,
        ),
        (b"nonsense\r\n\r\n", 400),
    ],
    ids=["asked to close", "no request"],
)
async def test_an_answer_that_ends_its_connection_is_whole(
    daemon: RunningDaemon,
    files: tuple[Path, Path],
    sent: bytes,
    status: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader, writer = await asyncio.open_connection(
        "localhost", port_of(daemon), ssl=trusting(files[0])
    )
    writer.write(sent)
    async with asyncio.timeout(30):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d" % status)
    assert json.loads(body)
    writer.close()
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


async def test_what_is_no_handshake_leaves_nothing_behind(
    daemons: Daemons,
    daemon: RunningDaemon,
    files: tuple[Path, Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for words in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\xff\xff" + b"x" * 70_000,
        b"",
    ):
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(daemon))
            writer.write(words)
            writer.close()
            del reader
    silent = [
        await asyncio.open_connection("127.0.0.1", port_of(daemon)) for _ in range(50)
    ]
    async with httpx.AsyncClient(verify=trusting(files[0])) as client:
        answer = await client.get(f"https://localhost:{port_of(daemon)}/api/health")
        assert answer.status_code == 200
    for _, writer in silent:
        writer.close()
    async with asyncio.timeout(30):
        while len(os.listdir("/proc/self/fd")) > before + 2:  # noqa: ASYNC110 - files have no event
            await asyncio.sleep(0.01)
    await daemons.close()
    assert "could not stop" not in caplog.text


async def test_a_stop_does_not_wait_for_a_handshake_that_never_ends(
    daemons: Daemons, daemon: RunningDaemon
) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port_of(daemon))
    async with asyncio.timeout(8):
        await daemons.close()
    writer.close()


async def test_it_tells_of_its_certificate(
    daemon: RunningDaemon, files: tuple[Path, Path]
) -> None:
    leaf = ssl.PEM_cert_to_DER_cert(files[0].read_text())
    assert daemon.daemon.front.fingerprint == hashlib.sha256(leaf).hexdigest()
    assert any("server.tls_cert: it expires on" in w for w in daemon.daemon.warnings)


@pytest.mark.parametrize(
    ("days", "told"), [(-30, 0), (0.5, 1), (3, 1)], ids=["long", "soon", "over"]
)
def test_a_certificate_that_ends_is_warned_of(
    files: tuple[Path, Path], days: float, told: int
) -> None:
    import time

    warnings = read_tls(*files, time.time() + days * DAY).warnings
    assert len(warnings) == told
    if days > 1:
        assert "it expired on" in warnings[0]


def test_files_that_cannot_be_used_are_named(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = files
    other = tmp_path / "other"
    other.mkdir()
    _, strange = self_signed(other, "elsewhere")
    strange.chmod(0o600)
    empty = tmp_path / "empty.pem"
    empty.touch(mode=0o600)
    binary = tmp_path / "binary.pem"
    binary.write_bytes(b"\xff" * 100)
    binary.chmod(0o600)
    for bad, good, named in (
        (cert, strange, "tls_key"),
        (cert, tmp_path / "none", "tls_key"),
        (tmp_path / "none", key, "tls_cert"),
        (empty, key, "tls_"),
        (cert, empty, "tls_key"),
        (binary, key, "tls_cert"),
        (tmp_path, key, "tls_cert"),
    ):
        with pytest.raises(ConfigError, match=rf"server\.{named}") as refused:
            read_tls(bad, good, 0)
        assert str(tmp_path) not in refused.value.message


def test_a_key_that_others_can_read_is_refused(files: tuple[Path, Path]) -> None:
    files[1].chmod(0o644)
    with pytest.raises(ConfigError, match=r"tls_key: other users .* chmod 600"):
        read_tls(*files, 0)


async def test_one_file_without_the_other_is_refused(daemons: Daemons) -> None:
    with pytest.raises(ConfigError, match=r"server\.tls_key: TLS needs"):
        await daemons.start(config='[server]\ntls_cert = "cert.pem"\n')
