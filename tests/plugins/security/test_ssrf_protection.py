"""No form of a local address is reached: judged by listeners that must stay unheard."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost import (
    ALLOW,
    AddressCase,
    AgentHostError,
    Blocked,
    Deny,
    EgressPolicy,
    NotSent,
    UrlCase,
)
from agenthost.plugins.guards import Guards
from agenthost_egress.client import AiohttpEgress
from agenthost_security import ssrf_protection

from ..egress.wire import Wire, always, answer
from .certificate import self_signed

NONE: frozenset[str] = frozenset()
FOLLOW = EgressPolicy("fetch", timeout=20, max_redirects=5)

LOCAL_FORMS = [
    "127.0.0.1",
    "127.1.2.3",
    "127.1",
    "127.0.1",
    "0.0.0.0",
    "0",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7F.1",
    "00000177.1",
    "127.0.0.1.",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[::1%25lo]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "ip6-localhost",
    "127。0。0。1",
    "１２７.0.0.1",
    "①②⑦.0.0.1",
    "ⓛocalhost",
    "127.0.0.1%2f",
    "public.example@127.0.0.1",
    "public.example:80@127.0.0.1",
    "127.0.0.1\\@public.example",
    "public.example%40127.0.0.1",
]


@asynccontextmanager
async def canaries() -> AsyncIterator[tuple[Wire, Wire]]:
    """Listen on one port of both loopback families."""
    async with Wire(always(answer(b"canary"))) as four:
        six = Wire(always(answer(b"canary")), host="::1")
        server = await asyncio.start_server(six._serve, "::1", four.port)
        try:
            yield four, six
        finally:
            server.close()


@pytest.fixture
async def egress() -> AsyncIterator[AiohttpEgress]:
    made = AiohttpEgress(Guards([ssrf_protection.security_system()]))
    yield made
    await made.close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Resolve these names to these addresses, and all others as ever."""
    table: dict[str, list[str]] = {}
    real = asyncio.base_events.BaseEventLoop.getaddrinfo

    async def fake(
        self: Any, host: str, port: int, **options: Any
    ) -> list[tuple[Any, ...]]:
        if host not in table:
            return await real(self, host, port, **options)
        return [_info(address, port) for address in table[host]]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", fake)
    return table


def _info(address: str, port: int) -> tuple[Any, ...]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    place = (address, port, 0, 0) if ":" in address else (address, port)
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)


@pytest.mark.parametrize("form", LOCAL_FORMS)
async def test_no_form_of_a_local_host_is_reached(
    egress: AiohttpEgress, form: str
) -> None:
    async with canaries() as (four, six):
        for user in ("", "user:pw@"):
            url = f"http://{user}{form}:{four.port}/"
            with pytest.raises((AgentHostError, httpx.InvalidURL)):
                await egress.client(FOLLOW).get(url)
        assert (four.connections, six.connections) == (0, 0)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("form", LOCAL_FORMS[::3])
async def test_no_redirect_leads_to_a_local_host(
    egress: AiohttpEgress, code: int, form: str
) -> None:
    async with canaries() as (four, six):
        place = f"http://{form}:{four.port}/".encode()
        head = b"HTTP/1.1 %d Moved\r\nContent-Length: 0\r\nLocation: " % code
        async with Wire(always(head + place + b"\r\n\r\n"), host="127.0.0.2") as door:
            policy = EgressPolicy(
                "door",
                allowed_hosts=frozenset({"127.0.0.2"}),
                timeout=20,
                max_redirects=5,
            )
            with pytest.raises((AgentHostError, httpx.InvalidURL)):
                await egress.client(policy).get(door.url)
            assert door.connections == 1
        assert (four.connections, six.connections) == (0, 0)


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["1.1.1.1", "127.0.0.1"],
        ["169.254.169.254"],
        ["10.0.0.1"],
    ],
)
async def test_a_public_name_with_one_local_address_is_refused(
    egress: AiohttpEgress, names: dict[str, list[str]], addresses: list[str]
) -> None:
    names["public.example"] = addresses
    async with canaries() as (four, six):
        with pytest.raises(Blocked):
            await egress.client(FOLLOW).get(f"http://public.example:{four.port}/")
        assert (four.connections, six.connections) == (0, 0)


async def test_a_name_that_turns_local_between_check_and_connect_gains_nothing(
    egress: AiohttpEgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = 0

    async def rebinding(
        self: Any, host: str, port: int, **options: Any
    ) -> list[tuple[Any, ...]]:
        nonlocal answers
        answers += 1
        return [_info("127.0.0.1" if answers % 2 == 0 else "192.0.2.1", port)]

    loop = asyncio.base_events.BaseEventLoop
    monkeypatch.setattr(loop, "getaddrinfo", rebinding)
    async with canaries() as (four, six):
        for _ in range(100):
            with pytest.raises(Blocked):
                await egress.client(FOLLOW).get(f"http://re.example:{four.port}/")
        assert (four.connections, six.connections) == (0, 0)
    assert answers == 100


async def test_a_kept_local_connection_serves_no_stranger(
    egress: AiohttpEgress, names: dict[str, list[str]]
) -> None:
    async with Wire(always(answer())) as wire:
        names["inside.example"] = ["127.0.0.1"]
        url = f"http://inside.example:{wire.port}/"
        hosts = frozenset({"inside.example"})
        allowed = EgressPolicy("allowed", allowed_hosts=hosts, timeout=20)
        await egress.client(allowed).get(url)
        with pytest.raises(Blocked):
            await egress.client(FOLLOW).get(url)
        assert len(wire.heard) == 1


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.0/8"),
        ("localhost", "localhost"),
        ("LocalHost", "localhost"),
        ("box.lan.example", "*.lan.example"),
        ("box.lan.example", "127.0.0.1"),
    ],
)
async def test_what_the_operator_configured_is_reached(
    egress: AiohttpEgress, names: dict[str, list[str]], host: str, allowed: str
) -> None:
    names["box.lan.example"] = ["127.0.0.1"]
    policy = EgressPolicy("own", allowed_hosts=frozenset({allowed}), timeout=20)
    async with Wire(always(answer(b"in"))) as wire:
        response = await egress.client(policy).get(f"http://{host}:{wire.port}/")
    assert response.text == "in"


async def test_tls_speaks_the_name_to_the_checked_address(
    names: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names["service.example"] = ["127.0.0.1"]
    certificate, key = self_signed(tmp_path, "service.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    asked: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    wire = Wire(always(answer(b"secret")))
    server = await asyncio.start_server(wire._serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    names["other.example"] = ["127.0.0.1"]
    hosts = frozenset({"service.example", "other.example"})
    egress = AiohttpEgress(Guards([ssrf_protection.security_system()]))
    client = egress.client(EgressPolicy("tls", allowed_hosts=hosts, timeout=5))
    response = await client.get(f"https://service.example:{port}/")
    with pytest.raises(NotSent):
        await client.get(f"https://other.example:{port}/")
    assert response.text == "secret"
    assert asked == ["service.example", "other.example"]
    assert wire.heard[0].header("host") == f"service.example:{port}"
    assert len(wire.heard) == 1
    await egress.close()
    server.close()


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.1.1"),
        *("172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.1.1"),
        *("198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1"),
        *("240.0.0.1", "255.255.255.255", "192.88.99.1", "::", "::1", "fe80::1"),
        *("fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1", "100::1"),
        *("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "2002:808:808::1"),
        *("::10.0.0.1", "64:ff9b:1::808:808", "2001:0:808:808::1", "fe80::1%eth0"),
        "2606:4700::5efe:10.0.0.1",
    ],
)
def test_an_address_that_is_not_public_is_denied(address: str) -> None:
    case = AddressCase("h.example", address, 80, NONE)
    assert isinstance(ssrf_protection.public_address(case), Deny)


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1"),
        *("2606:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1"),
        *("::ffff:8.8.8.8", "64:ff9b::808:808", "192.167.1.1"),
    ],
)
def test_a_public_address_passes(address: str) -> None:
    case = AddressCase("h.example", address, 443, NONE)
    assert ssrf_protection.public_address(case) == ALLOW


@pytest.mark.parametrize("address", sorted(map(str, ssrf_protection.METADATA)))
def test_a_metadata_address_needs_its_own_name(address: str) -> None:
    broad = frozenset({"0.0.0.0/0", "::/0", "h.example", "*.example", address + "/32"})
    case = AddressCase("h.example", address, 80, broad)
    assert isinstance(ssrf_protection.public_address(case), Deny)
    case = AddressCase(address, address, 80, frozenset({address}))
    assert ssrf_protection.public_address(case) == ALLOW


@pytest.mark.parametrize("dress", ["::ffff:{}", "64:ff9b::{}", "::{}"])
def test_a_metadata_address_is_known_in_any_dress(dress: str) -> None:
    address = dress.format("169.254.169.254")
    case = AddressCase("h.example", address, 80, frozenset({"h.example", "::/0"}))
    assert isinstance(ssrf_protection.public_address(case), Deny)


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "a.localhost", "ip6-localhost", "printer.local", "127.0.0.1"),
        *("metadata.google.internal", "metadata.aws.internal", "instance-data", "::1"),
        *("metadata", "x.internal", "169.254.169.254"),
    ],
)
def test_a_name_that_says_local_is_denied_before_any_look_up(host: str) -> None:
    case = UrlCase("http", host, 80, NONE)
    assert isinstance(ssrf_protection.public_name(case), Deny)


def test_a_metadata_name_is_not_allowed_by_a_pattern() -> None:
    case = UrlCase("http", "metadata.google.internal", 80, frozenset({"*.internal"}))
    assert isinstance(ssrf_protection.public_name(case), Deny)


def test_the_self_test_passes_and_notices_sabotage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = ssrf_protection.security_system()
    system.self_test()
    weak: Callable[[AddressCase], object] = lambda _: ALLOW  # noqa: E731
    monkeypatch.setattr(ssrf_protection, "public_address", weak)
    with pytest.raises(RuntimeError):
        system.self_test()


@pytest.mark.parametrize("form", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"])
async def test_the_canaries_do_hear_what_is_allowed(
    egress: AiohttpEgress, form: str
) -> None:
    policy = EgressPolicy("hear", frozenset({form, "localhost"}), timeout=20)
    async with canaries() as (four, six):
        await egress.client(policy).get(f"http://{form}:{four.port}/")
        assert four.connections + six.connections == 1
