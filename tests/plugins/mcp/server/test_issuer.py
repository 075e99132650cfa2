"""Tokens of an issuer: what they open, and all that is refused of them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import jwt
import pytest
from agenthost import Authenticator, Credentials, Host, Principal, hookimpl
from agenthost.testing import Daemons, ManualClock
from agenthost_mcp import register_authenticator, register_service
from agenthost_mcp.server.issuer import EVERY, FRESH, KEPT
from agenthost_security import health_redaction
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import (
    generate_private_key as ec_key,
)

from ..authority import Authority, public_row, rsa_key
from .conftest import Speaker, request
from .test_calls import KEY, called, made

RESOURCE = "https://agents.example.com/mcp"


METADATA = "/.well-known/oauth-protected-resource"


LIST = request("tools/list", {})


async def guarded(
    daemons: Daemons, authority: Authority, more: str = "", **facts: Any
) -> Speaker:
    """A daemon that takes the authority's tokens, and its operator."""
    config = (
        f'api_key = "{KEY}"\n[mcp]\nissuer = "{authority.issuer}"\n'
        f'resource = "{RESOURCE}"\n{more}\n'
    )
    daemon = await daemons.start(config=config, **facts)
    return Speaker(daemon, {"authorization": f"Bearer {KEY}"})


def bearing(speaker: Speaker, token: str) -> Speaker:
    return Speaker(speaker.daemon, {"authorization": f"Bearer {token}"})


def test_register_authenticator_and_register_service_offer_tokens_of_an_issuer() -> (
    None
):
    assert [each.name for each in register_authenticator()] == ["mcp_tokens"]
    assert [each.name for each in register_service()] == ["mcp_tokens"]


@pytest.mark.setting("mcp.issuer", "mcp.resource")
async def test_a_client_finds_the_issuer_and_comes_in_with_its_token(
    daemons: Daemons, authority: Authority
) -> None:
    owner = await guarded(daemons, authority)
    stranger = Speaker(owner.daemon, {})
    shut = await stranger.post(LIST)
    assert shut.status_code == 401
    place = f"https://agents.example.com{METADATA}/mcp"
    told = shut.headers.get_list("www-authenticate")
    assert told == [f'Bearer resource_metadata="{place}", scope="mcp:use"']
    assert shut.json()["error"]["data"]["code"] == "unauthenticated"
    for path in (METADATA, f"{METADATA}/mcp"):
        said = await owner.daemon.http.get(path)
        assert said.status_code == 200
        assert said.json() == {
            "resource": RESOURCE,
            "authorization_servers": [authority.issuer],
            "scopes_supported": ["mcp:use", "mcp:tools", "mcp:agents"],
            "bearer_methods_supported": ["header"],
            "resource_name": "agenthost",
        }
    ada = bearing(owner, authority.token(RESOURCE))
    opened = await ada.bare("tools/list")
    assert {"file_read", "kv_get"} <= {t["name"] for t in opened["result"]["tools"]}
    # Keys go on as before.
    assert (await owner.post(LIST)).status_code == 200
    assert (await (await made(owner, "c", "chat")).post(LIST)).status_code == 200


async def test_without_an_issuer_there_is_no_metadata_and_no_challenge(
    daemons: Daemons, authority: Authority
) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n')
    key = {"authorization": f"Bearer {KEY}"}
    for path in (METADATA, f"{METADATA}/mcp"):
        assert (await daemon.http.get(path)).status_code == 401
        assert (await daemon.http.get(path, headers=key)).status_code == 404
    shut = await Speaker(daemon, {}).post(LIST)
    assert shut.headers.get_list("www-authenticate") == ["Bearer"]
    token = authority.token(RESOURCE)
    shut = await bearing(Speaker(daemon, {}), token).post(LIST)
    assert shut.status_code == 401
    assert authority.asked.total() == 0


@pytest.mark.setting("mcp.issuer", "mcp.resource")
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('issuer = "https://a.example"', "resource is missing"),
        ('resource = "https://a.example/mcp"', "issuer is missing"),
        (
            'issuer = "http://a.example"\nresource = "https://b.example/mcp"',
            "must be an address of https",
        ),
        (
            'issuer = "https://a.example"\nresource = "https://b.example/mcp#x"',
            "must be an address of https",
        ),
    ],
)
async def test_an_issuer_that_cannot_be_trusted_is_refused_at_the_start(
    daemons: Daemons, config: str, said: str
) -> None:
    with pytest.raises(Exception, match=said):
        await daemons.start(config=f"[mcp]\n{config}\n")


async def test_a_token_opens_mcp_alone_and_as_far_as_its_scopes_say(
    daemons: Daemons, authority: Authority
) -> None:
    owner = await guarded(daemons, authority, 'tools = ["kv_*"]')
    reader = bearing(owner, authority.token(RESOURCE))
    for path in ("/api/agents", "/api/config", "/api/mcp/servers"):
        shut = await owner.daemon.http.get(path, headers=reader.headers)
        assert shut.status_code == 403, path

    async def names(speaker: Speaker) -> set[str]:
        told = await speaker.bare("tools/list")
        return {tool["name"] for tool in told["result"]["tools"]}

    assert "kv_set" not in await names(reader)
    refused = await called(reader, "kv_set", key="a", value="1")
    assert refused["isError"] is True
    assert "no right" in refused["content"][0]["text"]
    counted = await called(reader, "calculate", expression="6*7")
    assert counted["isError"] is False
    writer = bearing(owner, authority.token(RESOURCE, scope="mcp:use mcp:tools"))
    assert "kv_set" in await names(writer)
    assert (await called(writer, "kv_set", key="a", value="1"))["isError"] is False
    # As some issuers write it, and one subject has one memory whatever the token.
    listed = bearing(owner, authority.token(RESOURCE, scope=None, scp=["mcp:use"]))
    assert (await called(listed, "kv_get", key="a"))["content"][0]["text"] == "1"
    bob = bearing(owner, authority.token(RESOURCE, sub="bob"))
    assert (await called(bob, "kv_get", key="a"))["isError"] is True


async def test_agents_are_shown_to_whose_token_says_so(
    daemons: Daemons, authority: Authority
) -> None:
    owner = await guarded(daemons, authority)
    toml = {"manifest_toml": 'name = "tester"\n'}
    await owner.daemon.http.post("/api/agents", json=toml, headers=owner.headers)
    for scope, seen in (("mcp:use", False), ("mcp:use mcp:agents", True)):
        ada = bearing(owner, authority.token(RESOURCE, scope=scope))
        said = str(await ada.bare("resources/list"))
        assert ("agent://tester" in said) is seen


async def test_a_token_without_the_scope_is_told_which_it_needs(
    daemons: Daemons, authority: Authority
) -> None:
    owner = await guarded(daemons, authority)
    for claims in ({"scope": "openid mcp:tools"}, {"scope": None}):
        ada = bearing(owner, authority.token(RESOURCE, **claims))
        shut = await ada.post(LIST)
        assert shut.status_code == 403
        (told,) = shut.headers.get_list("www-authenticate")
        assert 'error="insufficient_scope"' in told
        assert 'scope="mcp:use"' in told
        assert f'{METADATA}/mcp"' in told
    # A key that lacks the right is helped by no scope of a token.
    reader = await made(owner, "r", "read")
    assert "www-authenticate" not in (await reader.post(LIST)).headers


async def test_the_clock_may_differ_a_little(
    daemons: Daemons, authority: Authority
) -> None:
    owner = await guarded(daemons, authority)
    now = time.time()
    for claims in ({"exp": now - 5}, {"nbf": now + 5}, {"iat": now + 5}):
        ada = bearing(owner, authority.token(RESOURCE, **claims))
        assert (await ada.post(LIST)).status_code == 200, claims


@pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits")
async def test_other_algorithms_and_audiences_among_several_are_taken(
    daemons: Daemons,
) -> None:
    curve = ec_key(SECP256R1())
    rows: list[Any] = [
        public_row(curve, "e1", "ES256"),
        public_row(rsa_key("k1"), "p1", "PS256"),
        # None of these may be used: of another kind, too weak, secret, for encryption.
        {"kty": "unheard-of", "kid": "x"},
        {"kty": "oct", "kid": "s", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"},
        public_row(rsa_key("weak", 1024), "w"),
        {**public_row(rsa_key("enc"), "enc"), "use": "enc"},
        "no key",
    ]

    served = Authority(published=rows)
    async with served.running():
        owner = await guarded(daemons, served)
        claims = {
            "iss": served.issuer,
            "aud": ["https://other.example", RESOURCE],
            "sub": "ada",
            "exp": time.time() + 60,
            "scope": "mcp:use",
        }
        cases: list[tuple[Any, str, str, int]] = [
            (curve, "ES256", "e1", 200),
            (rsa_key("k1"), "PS256", "p1", 200),
            # The key is for another algorithm.
            (rsa_key("k1"), "RS256", "p1", 401),
            (rsa_key("weak", 1024), "RS256", "w", 401),
            (rsa_key("enc"), "RS256", "enc", 401),
        ]
        for key, algorithm, kid, status in cases:
            token = jwt.encode(claims, key, algorithm, {"kid": kid})
            answer = await bearing(owner, token).post(LIST)
            assert answer.status_code == status, (kid, algorithm, answer.text)
        # Without a kid the one key that fits counts.
        token = jwt.encode(claims, curve, "ES256")
        assert (await bearing(owner, token).post(LIST)).status_code == 200


async def test_new_keys_of_the_issuer_are_found_and_old_ones_forgotten(
    daemons: Daemons, authority: Authority
) -> None:
    clock = ManualClock(time.time())
    owner = await guarded(daemons, authority, clock=clock)
    ends = time.time() + 10 * KEPT
    old = bearing(owner, authority.token(RESOURCE, exp=ends))
    assert (await old.post(LIST)).status_code == 200
    authority.keys = {"k2": rsa_key("k2")}
    claims = {"iss": authority.issuer, "aud": RESOURCE, "sub": "ada", "exp": ends}
    token = authority.signed({**claims, "scope": "mcp:use"}, "k2")
    new = bearing(owner, token)
    assert (await new.post(LIST)).status_code == 401
    await clock.advance(EVERY)
    assert (await new.post(LIST)).status_code == 200
    assert (await old.post(LIST)).status_code == 401
    # While the issuer is away its keys count for a day.
    authority.down = True
    await clock.advance(FRESH + 1)
    assert (await new.post(LIST)).status_code == 200
    await clock.advance(KEPT)
    assert (await new.post(LIST)).status_code == 503
    authority.down = False
    await clock.advance(EVERY)
    assert (await new.post(LIST)).status_code == 200


async def test_a_stream_ends_with_the_last_token_shown_for_it(
    daemons: Daemons, authority: Authority
) -> None:
    clock = ManualClock(time.time())
    owner = await guarded(daemons, authority, clock=clock)
    short = bearing(owner, authority.token(RESOURCE, exp=clock.time() + 100))
    session = await short.begin()
    stream = session.daemon.http.stream("GET", "/mcp", headers=session.headers)
    async with stream as answer:
        assert answer.status_code == 200
        later = bearing(owner, authority.token(RESOURCE, exp=clock.time() + 200))
        assert (await later.post(LIST)).status_code == 200
        assert (await short.post(LIST)).status_code == 200
        ended = asyncio.create_task(_read(answer))
        for _ in range(5):
            await clock.advance(30)
        assert (await short.post(LIST)).status_code == 401
        assert (await later.post(LIST)).status_code == 200
        assert not ended.done()
        for _ in range(4):
            await clock.advance(30)
        async with asyncio.timeout(120):
            await ended


async def _read(answer: Any) -> None:
    async for _ in answer.aiter_bytes():
        pass


async def test_no_token_counts_for_less_than_nothing_without_a_key(
    daemons: Daemons, authority: Authority
) -> None:
    text = f'[mcp]\nissuer = "{authority.issuer}"\nresource = "{RESOURCE}"\n'
    daemon = await daemons.start(config=text)
    bad = bearing(Speaker(daemon, {}), authority.token("https://other.example"))
    assert (await bad.post(LIST)).status_code == 401
    assert any("[mcp] issuer" in said for said in daemon.daemon.warnings)


class Guests(Authenticator):
    """Takes opaque tokens of its own, and is asked after ours."""

    name = "guests"

    async def authenticate(self, host: Host, shown: Credentials) -> Principal | None:
        return Principal("guest", "g") if shown.token.reveal() == "guest" else None


class Plugin:
    """Offers them."""

    __name__ = "guests"

    @hookimpl
    def register_authenticator(self) -> list[Authenticator]:
        return [Guests()]


async def test_tokens_of_other_plugins_are_left_to_them(
    daemons: Daemons, authority: Authority
) -> None:
    owner = await guarded(daemons, authority, plugins=[Plugin()])
    assert (await bearing(owner, "guest").post(LIST)).status_code == 200
    assert (await bearing(owner, "nobody").post(LIST)).status_code == 401


async def test_the_protections_know_of_the_open_paths(
    daemons: Daemons, authority: Authority
) -> None:
    owner = await guarded(daemons, authority)
    running = owner.daemon
    for path in ("", "/mcp"):
        known = f"/.well-known/oauth-protected-resource{path}"
        assert (await running.http.get(known)).status_code == 200
    await asyncio.to_thread(health_redaction._prove_routes, running.daemon)
