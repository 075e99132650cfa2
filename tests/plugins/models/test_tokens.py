"""Tokens are fetched once for all, kept until shortly before their end, and renewed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from agenthost import Delta, ProviderError, ProviderFault, Secret, TextChunk
from agenthost.testing import ManualClock, installed_exchange
from agenthost_models.grants import ClientCredentials, ServiceAccount
from agenthost_models.tokens import MOST_KEPT, Tokens
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
)
from cryptography.hazmat.primitives.asymmetric.ec import (
    generate_private_key as new_curve,
)

from .token_endpoint import CLOUD, ROBOT, account_file, new_account, verified

KEY = Secret("the-client-secret")
GRANT = ClientCredentials("https://login.example/t/token", "app-1", "scope-1")
Answer = Callable[[int], httpx.Response]


def tokens(**told: Any) -> Answer:
    told = {"token_type": "Bearer", "expires_in": 3600, **told}
    return lambda number: httpx.Response(
        200, json={"access_token": f"token-{number}", **told}
    )


class Desk:
    """Tokens over an endpoint in memory."""

    def __init__(self, answer: Answer) -> None:
        self.clock = ManualClock()
        self.asked = 0
        self.answer = answer
        self.open, self.reached = asyncio.Event(), asyncio.Event()
        self.open.set()
        client = httpx.AsyncClient(transport=httpx.MockTransport(self._hear))
        egress = SimpleNamespace(client=lambda _: client, exchange=installed_exchange())
        host = SimpleNamespace(clock=self.clock, egress=egress)
        self.tokens = Tokens(cast("Any", host), "acme", GRANT)

    async def _hear(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        assert request.method == "POST"
        number = self.asked
        self.reached.set()
        await self.open.wait()
        return self.answer(number)

    async def of(self, key: Secret = KEY) -> str:
        return (await self.tokens.of(key)).reveal()


async def test_a_token_is_kept_until_shortly_before_its_end() -> None:
    desk = Desk(tokens())
    assert await desk.of() == await desk.of() == "token-1"
    await desk.clock.advance(3_299)
    assert await desk.of() == "token-1"
    await desk.clock.advance(2)
    assert await desk.of() == "token-2"


async def test_a_short_life_is_used_by_half() -> None:
    desk = Desk(tokens(expires_in="60"))
    await desk.of()
    await desk.clock.advance(29)
    assert await desk.of() == "token-1"
    await desk.clock.advance(2)
    assert await desk.of() == "token-2"


async def test_a_life_that_lasts_for_ever_lasts_a_day() -> None:
    desk = Desk(tokens(expires_in=10**400))
    with pytest.raises(ProviderError):
        await desk.of()
    desk = Desk(tokens(expires_in=1e300))
    await desk.of()
    await desk.clock.advance(86_400)
    assert await desk.of() == "token-2"


async def test_many_at_once_ask_once() -> None:
    desk = Desk(tokens())
    assert await asyncio.gather(*(desk.of() for _ in range(50))) == ["token-1"] * 50
    assert desk.asked == 1


async def test_many_at_once_fail_together() -> None:
    desk = Desk(lambda _: httpx.Response(401, json={"error": "invalid_client"}))
    ends = await asyncio.gather(*(desk.of() for _ in range(20)), return_exceptions=True)
    faults = {end.fault for end in ends if isinstance(end, ProviderError)}
    assert (len(ends), faults, desk.asked) == (20, {ProviderFault.AUTH}, 1)
    assert len({id(end) for end in ends}) == 20


async def test_who_leaves_leaves_the_fetching_to_another() -> None:
    desk = Desk(tokens())
    desk.open.clear()
    first = asyncio.create_task(desk.of())
    others = [asyncio.create_task(desk.of()) for _ in range(5)]
    await desk.reached.wait()
    first.cancel()
    await asyncio.wait([first])
    desk.open.set()
    assert await asyncio.gather(*others) == ["token-2"] * 5
    assert first.cancelled()


async def test_who_waits_and_leaves_stops_nobody() -> None:
    desk = Desk(tokens())
    desk.open.clear()
    first, second = (asyncio.create_task(desk.of()) for _ in range(2))
    await desk.reached.wait()
    second.cancel()
    await asyncio.wait([second])
    desk.open.set()
    assert await first == "token-1"


async def test_keys_have_their_own_and_few_are_kept() -> None:
    desk = Desk(tokens())
    for number in range(MOST_KEPT + 1):
        assert await desk.of(Secret(f"key-{number}")) == f"token-{number + 1}"
    assert await desk.of(Secret(f"key-{MOST_KEPT}")) == f"token-{MOST_KEPT + 1}"
    assert len(desk.tokens.live) == MOST_KEPT
    assert await desk.of(Secret("key-0")) == f"token-{MOST_KEPT + 2}"


async def test_a_token_that_came_meanwhile_is_not_forgotten() -> None:
    desk = Desk(tokens())
    old = await desk.tokens.of(KEY)
    desk.tokens.forget(KEY, old)
    assert await desk.of() == "token-2"
    desk.tokens.forget(KEY, old)
    assert await desk.of() == "token-2"


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, content=b"<html>"),
        httpx.Response(200, content=b"[" * 100_000),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={}),
        httpx.Response(200, json={"access_token": 7, "expires_in": 60}),
        httpx.Response(200, json={"access_token": "", "expires_in": 60}),
        httpx.Response(200, json={"access_token": "a\r\nHost: b", "expires_in": 60}),
        httpx.Response(200, json={"access_token": "é", "expires_in": 60}),
        httpx.Response(200, json={"access_token": "a" * 9_000, "expires_in": 60}),
        httpx.Response(200, json={"access_token": "a"}),
        httpx.Response(200, json={"access_token": "a", "expires_in": 0}),
        httpx.Response(200, json={"access_token": "a", "expires_in": -5}),
        httpx.Response(200, content=b'{"access_token": "a", "expires_in": NaN}'),
        httpx.Response(302, headers={"Location": "https://evil.example"}),
    ],
)
async def test_what_is_no_token_is_none(answer: httpx.Response) -> None:
    desk = Desk(lambda _: answer)
    with pytest.raises(ProviderError) as told:
        await desk.of()
    assert told.value.fault is ProviderFault.MALFORMED
    assert desk.tokens.live == []


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (400, ProviderFault.AUTH),
        (403, ProviderFault.AUTH),
        (429, ProviderFault.RATE_LIMITED),
        (500, ProviderFault.SERVER),
        (503, ProviderFault.OVERLOADED),
    ],
)
async def test_a_refusal_has_its_fault_and_shows_no_secret(
    status: int, fault: ProviderFault
) -> None:
    words = f"bad secret {KEY.reveal()} " + "x" * 10_000
    told = {"error": "invalid_client", "error_description": words}
    desk = Desk(
        lambda _: httpx.Response(status, json=told, headers={"Retry-After": "7"})
    )
    with pytest.raises(ProviderError) as refused:
        await desk.of()
    error = refused.value
    assert (error.fault, error.retry_after) == (fault, 7)
    assert "invalid_client: bad secret ***" in error.detail
    assert len(error.detail) < 400


async def test_silence_is_a_timeout() -> None:
    def silent(_: int) -> httpx.Response:
        raise httpx.ReadTimeout("no word")

    with pytest.raises(ProviderError) as told:
        await Desk(silent).of()
    assert told.value.fault is ProviderFault.TIMEOUT


def refusing(*refused: str, after: str = "") -> Callable[..., Any]:
    """A provider that refuses these tokens."""

    async def send(token: Secret) -> AsyncGenerator[Delta, None]:
        if token.reveal() in refused:
            if after:
                yield TextChunk(after)
            raise ProviderError(ProviderFault.AUTH, "acme", f"no {token.reveal()}")
        yield TextChunk(f"by {token.reveal()}")

    return send


async def heard(desk: Desk, send: Callable[..., Any]) -> list[Delta]:
    return [delta async for delta in desk.tokens.spoken(KEY, send)]


async def test_a_token_that_is_refused_is_renewed_once() -> None:
    desk = Desk(tokens())
    assert await heard(desk, refusing("token-1")) == [TextChunk("by token-2")]
    assert await heard(desk, refusing("token-1")) == [TextChunk("by token-2")]
    with pytest.raises(ProviderError, match="no token-3"):
        await heard(desk, refusing("token-2", "token-3"))
    assert desk.asked == 3


async def test_nothing_is_said_twice() -> None:
    desk = Desk(tokens())
    with pytest.raises(ProviderError):
        await heard(desk, refusing("token-1", after="one"))
    assert desk.asked == 1


async def test_without_a_key_nobody_is_asked() -> None:
    desk = Desk(tokens())
    with pytest.raises(ProviderError, match="no key") as told:
        await desk.tokens.of(None)
    assert (told.value.fault, desk.asked) == (ProviderFault.AUTH, 0)


def test_an_assertion_is_signed_by_the_account() -> None:
    account = new_account()
    grant = ServiceAccount("https://token.example/token")
    form = grant.form(account_file(account), 1_700_000_000.9)
    head, claims = verified(form["assertion"], account)
    assert head == {"alg": "RS256", "typ": "JWT", "kid": "kid-1"}
    assert claims == {
        "iss": ROBOT,
        "scope": CLOUD,
        "aud": "https://token.example/token",
        "iat": 1_700_000_000,
        "exp": 1_700_003_600,
    }
    assert verified(form["assertion"], new_account()) == ({}, {})


def test_googles_own_library_writes_the_same_assertion() -> None:
    library = pytest.importorskip("google.oauth2.service_account")
    account = new_account()
    file = account_file(account)
    import json

    credentials = library.Credentials.from_service_account_info(
        json.loads(file), scopes=[CLOUD]
    )
    theirs = credentials._make_authorization_grant_assertion().decode()
    head, claims = verified(theirs, account)
    grant = ServiceAccount("https://oauth2.googleapis.com/token")
    ours = grant.form(file, claims["iat"])["assertion"]
    assert verified(ours, account) == (head, claims)


CURVE = new_curve(SECP256R1())


@pytest.mark.parametrize(
    "key",
    [
        "",
        "an-api-key",
        "[]",
        "{}",
        "[" * 100_000,
        '{"client_email": 1, "private_key": 2}',
        account_file(CURVE),
        '{"client_email": "a", "private_key": "-----BEGIN PRIVATE KEY-----"}',
    ],
    ids=["nothing", "key", "list", "table", "deep", "numbers", "curve", "stump"],
)
async def test_a_key_that_is_no_service_account_is_told(key: str) -> None:
    desk = Desk(tokens())
    desk.tokens.grant = ServiceAccount("https://token.example/token")
    with pytest.raises(ProviderError, match="no service account's") as told:
        await desk.of(Secret(key))
    assert (told.value.fault, desk.asked) == (ProviderFault.AUTH, 0)
