"""Who comes in: keys, peers, hosts, origins, CORS, tickets."""

from __future__ import annotations

from typing import cast

import httpx
import pytest
import websockets
from agenthost import Principal, PrincipalKind, Secret
from agenthost.daemon import Daemon
from agenthost_front.access import Tickets, is_loopback
from agenthost_front.front import QuartFront
from agenthost_front.settings import FrontSettings

from .conftest import KEY, FakeDaemon, Running, Start
from .routes import Seen, everything

BEARER = {"authorization": f"Bearer {KEY}"}
WRONG = {"authorization": "Bearer nonsense"}
BASIC = {"authorization": f"Basic {KEY}"}
ECHO = "/api/echo/00000000-0000-0000-0000-000000000001"


async def ask(
    peer: str, path: str, headers: dict[str, str], settings: FrontSettings
) -> int:
    """Ask a front as a peer of that address would."""
    front = QuartFront(cast("Daemon", FakeDaemon()), settings)
    for group in everything(Seen()):
        front.mount(group)
    transport = httpx.ASGITransport(front.asgi, client=(peer, 5))
    async with httpx.AsyncClient(transport=transport) as client:
        answer = await client.get(f"http://localhost{path}", headers=headers)
    return answer.status_code


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.8.9.1"])
@pytest.mark.parametrize("path", ["/", "/api/health", "/api/private", "/v1/private"])
async def test_without_a_key_this_machine_is_served(peer: str, path: str) -> None:
    assert await ask(peer, path, {}, FrontSettings()) == 200


@pytest.mark.parametrize("peer", ["10.0.0.7", "192.0.2.1", "2001:db8::1", "", "x"])
@pytest.mark.parametrize("path", ["/api/private", "/v1/private", "/api/nowhere"])
async def test_without_a_key_others_are_refused(peer: str, path: str) -> None:
    assert await ask(peer, path, {}, FrontSettings()) == 401
    opened = FrontSettings(allow_unauthenticated_network=True)
    assert await ask(peer, path, {}, opened) in {200, 404}


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.0.0.7"])
@pytest.mark.parametrize("headers", [{}, WRONG, BASIC, {"authorization": KEY}])
@pytest.mark.parametrize(
    ("path", "public"),
    [
        ("/", True),
        ("/api/health", True),
        ("/v1/health", True),
        ("/api/private", False),
        ("/v1/private", False),
        ("/api/nowhere", False),
        ("/openapi.json", False),
        ("//api/private", False),
        (f"/api/private?ticket={KEY}&api_key={KEY}", False),
    ],
)
async def test_with_a_key_only_the_public_is_free(
    peer: str, headers: dict[str, str], path: str, *, public: bool
) -> None:
    settings = FrontSettings(api_key=Secret(KEY), allow_unauthenticated_network=True)
    assert await ask(peer, path, headers, settings) == (200 if public else 401)


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.0.0.7"])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_key_opens_everything(peer: str, scheme: str) -> None:
    settings = FrontSettings(api_key=Secret(KEY))
    headers = {"authorization": f"{scheme} {KEY}"}
    for path in ("/", "/api/health", "/api/private", "/v1/private", "/openapi.json"):
        assert await ask(peer, path, headers, settings) == 200


def test_what_is_loopback() -> None:
    assert is_loopback("127.255.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("::ffff:10.0.0.1")
    assert not is_loopback("localhost.example")


REBINDING = [
    {"host": "evil.example"},
    {"host": "evil.example:4200"},
    {"host": "127.0.0.1.evil.example"},
    {"host": "localhost.evil.example"},
    {"host": "user@localhost"},
    {"host": "[::ffff:10.0.0.1]"},
    {"host": "0.0.0.0"},
    {"host": "localhost:4200, evil.example"},
    {"host": "[::1].evil.example"},
    {"host": "[::1]evil"},
    {"host": "[::1"},
    {"host": "::1"},
    {"host": "localhost:65536"},
    {"host": "localhost:1:2"},
]
FORGED = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "file://"},
    {"origin": "http://localhost.evil.example"},
    {"origin": "http://127.0.0.1@evil.example"},
    {"origin": "chrome-extension://abcdef"},
    {"origin": "http://[::1].evil.example"},
    {"origin": "http://[::1]evil"},
    {"origin": "http://localhost:4200/evil.example"},
]


@pytest.mark.parametrize("headers", REBINDING)
@pytest.mark.parametrize("path", ["/api/health", "/api/private", "/v1/health"])
async def test_a_foreign_host_is_refused(
    open_front: Running, headers: dict[str, str], path: str
) -> None:
    answer = await open_front.client.get(path, headers=headers)
    assert answer.status_code == 403
    assert answer.json()["code"] == "denied"


@pytest.mark.parametrize("headers", FORGED)
@pytest.mark.parametrize("path", ["/api/touch", "/v1/touch"])
async def test_a_foreign_page_cannot_change_anything(
    open_front: Running, headers: dict[str, str], path: str
) -> None:
    answer = await open_front.client.post(path, headers=headers)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("headers", [*FORGED, {"origin": "http://localhost:1"}])
async def test_with_a_key_a_page_needs_to_be_allowed(
    locked_front: Running, headers: dict[str, str]
) -> None:
    answer = await locked_front.client.post("/api/touch", headers=headers | BEARER)
    assert answer.status_code == 403


@pytest.mark.parametrize("headers", [*FORGED, *REBINDING[:1]])
async def test_a_foreign_page_cannot_open_a_socket(
    open_front: Running, headers: dict[str, str]
) -> None:
    host = headers.get("host")
    extra = {"origin": headers["origin"]} if "origin" in headers else {}
    uri = f"ws://{host}{ECHO}" if host else open_front.ws + ECHO
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(
            uri, additional_headers=extra, host=open_front.host, port=open_front.port
        )
    assert refused.value.response.status_code == 403
    assert refused.value.response.headers["x-frame-options"] == "DENY"


@pytest.mark.setting("server.allowed_origins")
async def test_the_same_origin_and_configured_names_are_served(start: Start) -> None:
    front = await start(
        allowed_hosts=("box.example",), allowed_origins=("https://ui.example",)
    )
    for headers in (
        {"origin": f"http://{front.host}:{front.port}"},
        {"origin": "https://ui.example"},
        {"host": "box.example", "origin": "http://box.example"},
        {"host": "BOX.example:80"},
        {"host": "localhost:1"},
        {"host": "[::1]:4200"},
    ):
        answer = await front.client.post("/api/touch", headers=headers)
        assert answer.status_code == 200, headers


PREFLIGHT = {"access-control-request-method": "POST"}


async def test_without_a_key_localhost_pages_may_read(open_front: Running) -> None:
    origin = {"origin": "http://localhost:3000"}
    asked = await open_front.client.options("/v1/greet", headers=origin | PREFLIGHT)
    assert asked.status_code == 204
    assert "authorization" in asked.headers["access-control-allow-headers"]
    answer = await open_front.client.post("/v1/touch", headers=origin)
    assert answer.headers["access-control-allow-origin"] == origin["origin"]
    assert answer.headers["vary"] == "origin"


@pytest.mark.setting("server.cors_origins")
async def test_with_a_key_only_cors_origins_may_read(start: Start) -> None:
    front = await start(api_key=KEY, cors_origins=("https://chat.example",))
    for origin, status in (
        ("https://chat.example", 204),
        ("http://localhost:3000", 403),
        ("https://evil.example", 403),
    ):
        headers = {"origin": origin, **PREFLIGHT}
        asked = await front.client.options("/v1/greet", headers=headers)
        assert asked.status_code == status
        assert ("access-control-allow-origin" in asked.headers) == (status == 204)
    headers = {"origin": "https://chat.example"}
    refused = await front.client.get("/api/private", headers=headers)
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == "https://chat.example"


HOLDER = Principal(PrincipalKind.API_KEY, "k")


class Hand:
    """A clock moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_ticket_works_once() -> None:
    tickets = Tickets(Hand())
    ticket = tickets.issue(HOLDER)
    assert tickets.redeem(ticket) is HOLDER
    assert tickets.redeem(ticket) is None
    assert tickets.redeem("nonsense") is None


def test_a_ticket_expires() -> None:
    hand = Hand()
    tickets = Tickets(hand)
    early, late = tickets.issue(HOLDER), tickets.issue(HOLDER)
    hand.now = 29.9
    assert tickets.redeem(early) is HOLDER
    hand.now = 30.0
    assert tickets.redeem(late) is None


def test_tickets_are_bounded() -> None:
    tickets = Tickets(Hand(), limit=2)
    first, second, third = (tickets.issue(HOLDER) for _ in range(3))
    assert tickets.redeem(first) is None
    assert tickets.redeem(second) is tickets.redeem(third) is HOLDER


async def test_a_socket_opens_with_the_key_or_a_ticket_once(
    locked_front: Running,
) -> None:
    uri = locked_front.ws + ECHO
    async with websockets.connect(uri, additional_headers=BEARER) as socket:
        assert await socket.recv() == "hello api_key"
    ticket = locked_front.front.tickets.issue(HOLDER)
    async with websockets.connect(f"{uri}?ticket={ticket}") as socket:
        assert await socket.recv() == "hello api_key"
    for query in ("", f"?ticket={ticket}", f"?ticket={KEY}", f"?api_key={KEY}"):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(uri + query)
        assert refused.value.response.status_code == 401
