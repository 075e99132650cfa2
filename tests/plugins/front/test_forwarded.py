"""Whose address a request has that came through proxies."""

from __future__ import annotations

import logging

import pytest
from agenthost.testing import Daemons
from agenthost_front.asgi import Event, Receive, Scope, Send
from agenthost_front.forwarded import Forwarded

PROXIES = ("127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48")
XFF = "x-forwarded-for"


async def seen(
    header: str, *values: str, peer: str = "127.0.0.1", sent: str = ""
) -> str:
    clients: list[str] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        clients.append(scope["client"][0])

    async def nothing(*_: Event) -> Event:
        return {}

    headers = [((sent or header).encode(), value.encode()) for value in values]
    scope = {"client": (peer, 1), "headers": headers}
    await Forwarded(app, PROXIES, header)(scope, nothing, nothing)  # type: ignore[arg-type]  # nothing is received or sent
    return clients[0]


@pytest.mark.parametrize(
    ("value", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:5123", "192.0.2.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, 10.1.2.3", "192.0.2.7"),
        ("192.0.2.7, 2001:db8:1::5, 10.1.2.3", "192.0.2.7"),
        ("6.6.6.6, 192.0.2.7", "192.0.2.7"),
        ("127.0.0.1, 192.0.2.7, 10.0.0.1", "192.0.2.7"),
        ("10.9.9.9, 10.1.2.3", "10.9.9.9"),
        ("", "127.0.0.1"),
        ("unknown", "127.0.0.1"),
        ("192.0.2.7, unknown, 10.1.2.3", "10.1.2.3"),
        ("192.0.2.7,", "127.0.0.1"),
        ("192.0.2.7 10.0.0.1", "127.0.0.1"),
        ("192.0.2.999", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("\u0661.1.1.1", "127.0.0.1"),
        ("," * 10_000, "127.0.0.1"),
    ],
)
async def test_it_is_read_from_the_right_as_far_as_proxies_are_trusted(
    value: str, client: str
) -> None:
    assert await seen(XFF, value) == client


@pytest.mark.parametrize(
    ("value", "client"),
    [
        ("for=192.0.2.7", "192.0.2.7"),
        ("For=192.0.2.7;proto=https;by=10.0.0.1", "192.0.2.7"),
        ('for="[2001:db8::7]:4711"', "2001:db8::7"),
        ("for=192.0.2.7, for=10.1.2.3", "192.0.2.7"),
        ("for=6.6.6.6, for=192.0.2.7;proto=http", "192.0.2.7"),
        ("for=_hidden", "127.0.0.1"),
        ("for=unknown", "127.0.0.1"),
        ("proto=https", "127.0.0.1"),
        ("for=192.0.2.7;for=192.0.2.8", "127.0.0.1"),
        ("for=192.0.2.7;=", "127.0.0.1"),
        ('for="192.0.2.7', "127.0.0.1"),
        ("192.0.2.7", "127.0.0.1"),
    ],
)
async def test_the_standard_header_is_read_likewise(value: str, client: str) -> None:
    assert await seen("forwarded", value) == client


async def test_several_lines_of_a_header_are_one() -> None:
    assert await seen(XFF, "6.6.6.6", "192.0.2.7, 10.0.0.9") == "192.0.2.7"


async def test_who_is_no_trusted_proxy_is_believed_nothing() -> None:
    assert await seen(XFF, "127.0.0.1", peer="198.51.100.1") == "198.51.100.1"


async def test_the_other_header_is_not_read() -> None:
    assert await seen(XFF, "for=192.0.2.7", sent="forwarded") == "127.0.0.1"


@pytest.mark.setting("server.trusted_proxies")
async def test_a_client_behind_a_proxy_is_not_on_this_machine(
    daemons: Daemons, caplog: pytest.LogCaptureFixture
) -> None:
    text = '[server]\ntrusted_proxies = ["127.0.0.1"]\naccess_log = "text"\n'
    daemon = await daemons.start(config=text)
    with caplog.at_level(logging.INFO, "agenthost.access"):
        headers = {XFF: "127.0.0.1, 192.0.2.7"}
        answer = await daemon.http.get("/api/status", headers=headers)
        assert answer.status_code == 401
        assert (await daemon.http.get("/api/status")).status_code == 200
        await daemons.close()
    assert " 192.0.2.7 " in caplog.text


@pytest.mark.setting("server.forwarded_header")
async def test_each_client_behind_a_proxy_has_its_own_limit(daemons: Daemons) -> None:
    text = (
        'api_key = "k"\n[rate_limit]\nunits_per_minute = 10\nburst = 10\n[server]\n'
        'trusted_proxies = ["127.0.0.0/8"]\nforwarded_header = "Forwarded"\n'
    )
    daemon = await daemons.start(config=text)
    key = {"authorization": "Bearer k"}
    statuses = [
        (
            await daemon.http.get(
                "/api/sessions", headers={**key, "forwarded": f"for=192.0.2.{client}"}
            )
        ).status_code
        for client in (1, 1, 1, 2, 2, 2)
    ]
    assert statuses == [200, 200, 429] * 2


async def test_what_is_no_network_is_refused_at_the_start(daemons: Daemons) -> None:
    from agenthost import ConfigError

    with pytest.raises(ConfigError, match=r"(?s)server.trusted_proxies.*10.0.0.0/8"):
        await daemons.start(config='[server]\ntrusted_proxies = ["my-proxy"]\n')
