"""Others tell who asks: after the key, in order, within their time, failing closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import websockets
from agenthost import (
    AgentHostError,
    Authenticator,
    Credentials,
    Grants,
    Host,
    Principal,
    PrincipalKind,
    Unauthenticated,
)
from agenthost_front import authentication

from .conftest import KEY, Running, Start, until

ECHO = "/api/echo/00000000-0000-0000-0000-000000000001"
READER = Principal("badge", "reader", Grants({"route": ("*:read",)}))
PATHS = pytest.mark.parametrize("at", ["/api", "/v1"])


class Badges(Authenticator):
    """Knows what it was told, and keeps what it was asked."""

    name = "badges"

    def __init__(self, **known: Callable[[], Any] | Principal) -> None:
        self.known = known
        self.asked: list[Credentials] = []

    async def authenticate(self, host: Host, shown: Credentials) -> Principal | None:
        self.asked.append(shown)
        found = self.known.get(shown.token.reveal())
        if found is None or isinstance(found, Principal):
            return found
        answer = found()
        if asyncio.iscoroutine(answer):
            answer = await answer
        return answer  # type: ignore[no-any-return]  # reason: also what is none


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def raising(error: BaseException) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    return fail


@PATHS
async def test_who_is_known_elsewhere_comes_in_with_its_rights(
    start: Start, at: str
) -> None:
    badges = Badges(b1=READER)
    front = await start(api_key=KEY, authenticators=[badges])
    answer = await front.client.get(f"{at}/private", headers=bearer("b1"))
    assert answer.json()["who"] == "badge"
    refused = await front.client.post(f"{at}/touch", headers=bearer("b1"))
    assert refused.status_code == 403
    unknown = await front.client.get(f"{at}/private", headers=bearer("b2"))
    assert unknown.status_code == 401
    assert front.daemon.plugins.charges.of("plugin:test").calls == 3


async def test_authenticators_are_given_what_was_shown(start: Start) -> None:
    badges = Badges()
    front = await start(api_key=KEY, authenticators=[badges])
    await front.client.get("/api/private", headers={"authorization": "Basic a:b"})
    [shown] = badges.asked
    assert (shown.scheme, shown.token.reveal()) == ("basic", "a:b")
    assert (shown.client, shown.local) == ("127.0.0.1", True)
    assert "a:b" not in repr(shown)


async def test_the_configured_key_and_nothing_at_all_are_nobodys_to_judge(
    start: Start,
) -> None:
    badges = Badges(**{KEY: READER})
    front = await start(api_key=KEY, authenticators=[badges])
    answer = await front.client.get("/api/private", headers=bearer(KEY))
    assert answer.json()["who"] == PrincipalKind.API_KEY
    for headers in ({}, {"authorization": ""}, {"authorization": "Bearer"}):
        refused = await front.client.get("/api/private", headers=headers)
        assert refused.status_code == 401
    for path in ("/", "/api/health"):
        assert (await front.client.get(path, headers=bearer("x"))).status_code == 200
    assert badges.asked == []


async def test_the_first_who_knows_decides(start: Start) -> None:
    first, second = Badges(b=READER), Badges(b=READER, c=READER)
    front = await start(api_key=KEY, authenticators=[first, second])
    for token in ("b", "c"):
        answer = await front.client.get("/api/private", headers=bearer(token))
        assert answer.status_code == 200
    assert (len(first.asked), len(second.asked)) == (2, 1)


async def test_without_a_key_loopback_is_served_unless_a_badge_says_less(
    start: Start,
) -> None:
    no_good = raising(Unauthenticated("the badge is out of date"))
    front = await start(authenticators=[Badges(b=READER, old=no_good)])
    for headers, status in (
        ({}, 200),
        (bearer("sk-dummy"), 200),
        (bearer("b"), 403),
        (bearer("old"), 401),
    ):
        answer = await front.client.post("/v1/touch", headers=headers)
        assert answer.status_code == status, headers


@pytest.mark.parametrize(
    "fault",
    [
        raising(RuntimeError("cannot read sk-canary")),
        raising(SystemExit(3)),
        raising(KeyboardInterrupt()),
        raising(asyncio.CancelledError()),
        raising(AgentHostError("the store is away")),
        lambda: "reader",
        lambda: True,
        lambda: {"kind": "operator"},
        lambda: asyncio.sleep(60),
    ],
)
@PATHS
async def test_one_that_fails_lets_nobody_in(
    start: Start,
    at: str,
    fault: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(authentication, "SECONDS", 0.05)
    later = Badges(**{"sk-canary": READER})
    front = await start(
        api_key=KEY, authenticators=[Badges(**{"sk-canary": fault}), later]
    )
    answers = [
        await front.client.get(f"{at}/private", headers=bearer("sk-canary"))
        for _ in range(3)
    ]
    for answer in answers:
        assert answer.status_code == 503
        assert answer.json()["code"] == "unavailable"
        assert "www-authenticate" not in answer.headers
    assert later.asked == []
    assert "badges" in caplog.text
    assert len(caplog.records) == 1
    assert "sk-canary" not in caplog.text
    assert front.front.panics == 0


async def test_a_failed_plugins_authenticator_is_asked_no_more(start: Start) -> None:
    badges = Badges(b=READER)
    front = await start(api_key=KEY, authenticators=[badges])
    front.daemon.plugins.failed.add("plugin:test")
    answer = await front.client.get("/api/private", headers=bearer("b"))
    assert (answer.status_code, badges.asked) == (401, [])


async def test_a_failed_login_costs_and_is_told_without_the_secret(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    no_good = raising(Unauthenticated("revoked"))
    front = await start(api_key=KEY, authenticators=[Badges(old=no_good)])
    cases = front.record_cases()
    for token in ("sk-canary", "old"):
        await front.client.get("/api/private", headers=bearer(token))
    await front.client.get("/api/private")
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(f"{front.ws}{ECHO}?ticket=sk-canary")
    logins = [case for case in cases if case.method == "LOGIN"]
    assert [(case.client, case.cost) for case in logins] == [("127.0.0.1", 30)] * 3
    [line] = caplog.messages
    assert line == "1 failed logins, the last from 127.0.0.1"


async def test_a_thousand_wrong_keys_are_a_few_lines(
    locked_front: Running, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        headers = bearer(f"wrong-{number}")
        answer = await locked_front.client.get("/v1/private", headers=headers)
        assert answer.status_code == 401
    assert 1 <= len(caplog.records) <= 6
    assert "wrong-" not in caplog.text


async def test_wrong_keys_are_refused_by_a_limit_on_logins(start: Start) -> None:
    from agenthost import Deny, Guard, RateLimited, RequestCase, SecuritySystem
    from agenthost.plugins.guards import ALLOW

    front = await start(api_key=KEY)

    def no_logins(case: RequestCase) -> Any:
        return Deny("too many", RateLimited) if case.method == "LOGIN" else ALLOW

    system = SecuritySystem("stub", {Guard.REQUEST: no_logins}, lambda: None)
    front.daemon.guards.compile([system])
    for token, status in (("wrong", 429), (KEY, 200)):
        answer = await front.client.get("/v1/private", headers=bearer(token))
        assert answer.status_code == status


@PATHS
async def test_two_keys_at_once_are_refused(start: Start, at: str) -> None:
    front = await start(api_key=KEY, authenticators=[Badges(b=READER)])
    for pair in (("b", KEY), (KEY, "b"), (KEY, KEY)):
        headers = [("authorization", f"Bearer {token}") for token in pair]
        answer = await front.client.get(f"{at}/private", headers=headers)
        assert answer.status_code == 400
        assert "more than once" in answer.json()["error"]
    twice = [("authorization", f"Bearer {KEY}"), ("x-odd", "1"), ("x-odd", "2")]
    answer = await front.client.get(f"{at}/private", headers=twice)
    assert answer.status_code == 200


@PATHS
async def test_an_allowance_is_taken_at_every_request(start: Start, at: str) -> None:
    poor = Principal("badge", "poor", None, "", 30)
    front = await start(api_key=KEY, authenticators=[Badges(b=poor)])
    body = {"message": "hi"}
    for status in (201, 429):
        answer = await front.client.post(f"{at}/greet", json=body, headers=bearer("b"))
        assert answer.status_code == status
    assert answer.headers["retry-after"] == "60"
    assert answer.headers["ratelimit-limit"] == "30"
    assert answer.headers["ratelimit-remaining"] == "0"
    assert int(answer.headers["ratelimit-reset"]) in range(55, 61)
    assert (await front.client.get("/", headers=bearer("b"))).status_code == 200


async def test_a_tickets_socket_costs_its_principals_allowance(start: Start) -> None:
    poor = Principal("badge", "poor", None, "", 3)
    front = await start(api_key=KEY)
    uri = f"{front.ws}{ECHO}?ticket="
    first, second = (front.front.tickets.issue(poor) for _ in range(2))
    async with websockets.connect(uri + first) as socket:
        assert await socket.recv() == "hello badge"
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(uri + second)
    assert refused.value.response.status_code == 429


async def test_who_is_dismissed_loses_sockets_streams_and_tickets(
    start: Start,
) -> None:
    other = Principal("badge", "other", READER.grants)
    badges = Badges(b=READER, o=other)
    front = await start(api_key=KEY, authenticators=[badges])
    unused = front.front.tickets.issue(READER)
    uri = front.ws + ECHO
    async with (
        websockets.connect(uri, additional_headers=bearer("b")) as gone,
        websockets.connect(uri, additional_headers=bearer("o")) as stays,
        front.client.stream("GET", "/v1/stream/silent", headers=bearer("b")) as stream,
        front.client.stream(
            "GET", "/api/stream/silent", headers=bearer("b")
        ) as behind_quart,
    ):
        assert await gone.recv() == await stays.recv() == "hello badge"
        await until(lambda: len(front.front.asgi.streams._open) == 2)
        badges.known = {"o": other}
        front.front.access.dismiss(Principal("badge", "reader"))
        with pytest.raises(websockets.ConnectionClosed):
            await asyncio.wait_for(gone.recv(), 30)
        assert gone.close_code == 1008
        assert [line async for line in stream.aiter_lines()][:1] == ["data: 0"]
        assert [line async for line in behind_quart.aiter_lines()][:1] == ["data: 0"]
        await stays.send("still here")
        assert await stays.recv() == "still here"
    assert front.seen.closed == 2
    for headers, query in ((bearer("b"), ""), ({}, f"?ticket={unused}")):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(uri + query, additional_headers=headers)
        assert refused.value.response.status_code == 401


async def test_frames_that_wait_are_dropped_with_who_sent_them(start: Start) -> None:
    from agenthost import RouteGroup, Socket

    taken: list[str] = []
    go_on = asyncio.Event()
    group = RouteGroup("slow")

    @group.socket("/api/slow", scope="x:read")
    async def slow(socket: Socket) -> None:
        await socket.accept()
        while (text := await socket.receive()) is not None:
            taken.append(text)
            await go_on.wait()

    front = await start(group, api_key=KEY, authenticators=[Badges(b=READER)])
    async with websockets.connect(
        f"{front.ws}/api/slow", additional_headers=bearer("b")
    ) as socket:
        for number in range(10):
            await socket.send(str(number))
        [opened] = front.front.access._sockets.open
        await until(lambda: opened._inbox.qsize() == 9)
        front.front.access.dismiss(READER)
        await asyncio.wait_for(socket.wait_closed(), 30)
        go_on.set()
        await until(lambda: not front.front.access._sockets.open)
    assert taken == ["0"]


@PATHS
async def test_who_is_dismissed_while_sending_a_body_is_out(
    start: Start, at: str
) -> None:
    badges = Badges(b=Principal("badge", "writer"))
    front = await start(api_key=KEY, authenticators=[badges])

    async def slowly() -> Any:
        yield b'{"message":'
        await until(lambda: len(badges.asked) == 1)
        await asyncio.sleep(0.05)
        front.front.access.dismiss(Principal("badge", "writer"))
        yield b'"hi"}'

    answer = await front.client.post(
        f"{at}/greet",
        content=slowly(),
        headers=bearer("b") | {"content-type": "application/json"},
    )
    assert answer.status_code == 401
    again = await front.client.post(
        f"{at}/greet", json={"message": "hi"}, headers=bearer("b")
    )
    assert again.status_code == 201


async def test_who_is_dismissed_while_being_asked_about_is_out(start: Start) -> None:
    front: Running

    async def late() -> Principal:
        front.front.access.dismiss(READER)
        return READER

    front = await start(api_key=KEY, authenticators=[Badges(b=late)])
    answer = await front.client.get("/api/private", headers=bearer("b"))
    assert answer.status_code == 401
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(front.ws + ECHO, additional_headers=bearer("b"))
