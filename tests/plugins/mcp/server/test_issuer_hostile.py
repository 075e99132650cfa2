"""Tokens that are not whole, and issuers that mislead, let nobody in."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from agenthost.testing import Daemons, ManualClock
from agenthost_mcp.server.issuer import EVERY
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ..authority import Authority, public_row, rsa_key
from .conftest import Speaker
from .test_issuer import LIST, RESOURCE, bearing, guarded


def _plain(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def _unsigned(authority: Authority) -> str:
    claims = jwt.decode(authority.token(RESOURCE), options={"verify_signature": False})
    return f"{_plain({'alg': 'none', 'kid': 'k1'})}.{_plain(claims)}."


def _with_the_public_key(authority: Authority) -> str:
    """The classic confusion: what is public, taken as the secret of an HMAC."""
    public = rsa_key("k1").public_key()
    secret = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = jwt.decode(authority.token(RESOURCE), options={"verify_signature": False})
    said = f"{_plain({'alg': 'HS256', 'kid': 'k1'})}.{_plain(claims)}"
    made_up = hmac.new(secret, said.encode(), hashlib.sha256).digest()
    return f"{said}.{base64.urlsafe_b64encode(made_up).rstrip(b'=').decode()}"


def _changed(authority: Authority) -> str:
    head, _, signature = authority.token(RESOURCE).split(".")
    now = time.time() + 600
    other = {"iss": authority.issuer, "aud": RESOURCE, "sub": "eve", "exp": now}
    return f"{head}.{_plain({**other, 'scope': 'mcp:use'})}.{signature}"


def _by_another_key(authority: Authority) -> str:
    claims = jwt.decode(authority.token(RESOURCE), options={"verify_signature": False})
    return jwt.encode(claims, rsa_key("stranger"), "RS256", {"kid": "k1"})


def _with_its_own_key(authority: Authority) -> str:
    """The key that it shall be judged by stands in its own header."""
    key = rsa_key("stranger")
    claims = jwt.decode(authority.token(RESOURCE), options={"verify_signature": False})
    headers = {"kid": "k1", "jwk": public_row(key, "k1"), "jku": "http://127.0.0.1:1/"}
    return jwt.encode(claims, key, "RS256", headers)


def _head(**head: Any) -> Callable[[Authority], str]:
    def make(authority: Authority) -> str:
        claims = jwt.decode(
            authority.token(RESOURCE), options={"verify_signature": False}
        )
        headers = {"kid": "k1", **head}
        return jwt.encode(claims, rsa_key("k1"), "RS256", headers)

    return make


def _kid_of_lists(authority: Authority) -> str:
    head = _plain({"alg": "RS256", "kid": ["k1"]})
    return f"{head}.{authority.token(RESOURCE).split('.', 1)[1]}"


def _claims(**claims: Any) -> Callable[[Authority], str]:
    return lambda authority: authority.token(RESOURCE, **claims)


def _deep(authority: Authority) -> str:
    head = authority.token(RESOURCE).split(".")[0]
    nested = base64.urlsafe_b64encode(b"[" * 5000).rstrip(b"=").decode()
    return f"{head}.{nested}.AAAA"


NOW = time.time()


HOSTILE: dict[str, tuple[Callable[[Authority], str], str]] = {
    "alg none": (_unsigned, "it must be one of RS256"),
    "HS256 with the public key": (_with_the_public_key, "it must be one of RS256"),
    "claims changed": (_changed, "signature is wrong"),
    "another key": (_by_another_key, "signature is wrong"),
    "a key of its own": (_with_its_own_key, "signature is wrong"),
    "critical header": (_head(crit=["b64x"], b64x=True), "signature is wrong"),
    "of another kind": (_head(typ="dpop+jwt"), "no access token"),
    "kid that is no text": (_kid_of_lists, "must be text"),
    "another audience": (_claims(aud="https://other.example/mcp"), "not meant for"),
    "no audience": (_claims(aud=None), "lacks one of"),
    "audiences, not ours": (_claims(aud=["a", RESOURCE + "/"]), "not meant for"),
    "audience as an object": (_claims(aud={RESOURCE: 1}), "not meant for"),
    "another issuer": (_claims(iss="https://evil.example"), "of another issuer"),
    "no issuer": (_claims(iss=None), "of another issuer"),
    "expired": (_claims(exp=NOW - 31), "has expired"),
    "never expires": (_claims(exp=None), "lacks one of"),
    "expires at no time": (_claims(exp=float("nan")), "exp is no time"),
    "expires at infinity": (_claims(exp=float("inf")), "exp is no time"),
    "expires as a word": (_claims(exp="9999999999"), "exp is no time"),
    "expires beyond all": (_claims(exp=10**400), "exp is no time"),
    "not good yet": (_claims(nbf=NOW + 3600), "not good yet"),
    "of the future": (_claims(iat=NOW + 3600), "of the future"),
    "no subject": (_claims(sub=None), "lacks one of"),
    "empty subject": (_claims(sub=""), "lacks one of"),
    "a subject of lines": (_claims(sub="a\nb"), "must be printable"),
    "a long subject": (_claims(sub="a" * 256), "must be printable"),
    "bound to a key": (_claims(cnf={"jkt": "x"}), "bound to a key"),
    "scope of numbers": (_claims(scope=[1]), "scope must be"),
    "huge": (_claims(filler="x" * 9000), "over 8 KiB"),
    "deep": (_deep, "of another issuer"),
    "no JWT": (lambda _: "opaque-token-of-some-issuer", "opaque tokens are not taken"),
    "five parts": (lambda _: "a.b.c.d.e", "opaque tokens are not taken"),
    "dots": (lambda _: "..", "no proper JWT"),
    "odd bytes": (lambda _: "\xff.\xfe.\xfd", "no proper JWT"),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_no_token_comes_in_that_is_not_whole(
    daemons: Daemons, authority: Authority, case: str
) -> None:
    make, said = HOSTILE[case]
    owner = await guarded(daemons, authority)
    token = make(authority)
    shut = await Speaker(owner.daemon, {}).post(
        LIST,
        authorization=f"Bearer {token}".encode("latin-1"),  # type: ignore[arg-type]  # reason: httpx takes bytes
    )
    assert shut.status_code == 401, shut.text
    assert said in shut.json()["error"]["message"]
    assert token not in shut.text
    (told,) = shut.headers.get_list("www-authenticate")
    assert 'error="invalid_token"' in told
    assert "resource_metadata=" in told


async def test_keys_are_fetched_seldom_whatever_is_shown(
    daemons: Daemons, authority: Authority
) -> None:
    clock = ManualClock(time.time())
    owner = await guarded(daemons, authority, clock=clock)
    good = bearing(owner, authority.token(RESOURCE))
    answers = await asyncio.gather(*(good.post(LIST) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert authority.asked["/jwks"] == 1

    def unknown(number: int) -> str:
        claims = {"iss": authority.issuer, "sub": "eve"}
        headers = {"kid": f"made-up-{number}"}
        return jwt.encode(claims, rsa_key("stranger"), "RS256", headers)

    await clock.advance(EVERY)
    for number in range(30):
        shut = await bearing(owner, unknown(number)).post(LIST)
        assert shut.status_code == 401
        assert "no key that its issuer has" in shut.text
    assert authority.asked["/jwks"] == 2
    assert (await good.post(LIST)).status_code == 200


@pytest.mark.parametrize(
    ("says", "logged"),
    [
        ({"issuer": "https://evil.example"}, "of another issuer"),
        ({"jwks_uri": "http://keys.example.com/jwks"}, "no address of https"),
        ({"jwks_uri": "file:///etc/passwd"}, "no address of https"),
        ({"jwks_uri": None}, "no address of https"),
    ],
)
async def test_metadata_that_misleads_lets_nobody_in(
    daemons: Daemons,
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
    says: dict[str, Any],
    logged: str,
) -> None:
    authority.says = says
    owner = await guarded(daemons, authority)
    ada = bearing(owner, authority.token(RESOURCE))
    # It may be a good token: nobody should throw it away.
    assert (await ada.post(LIST)).status_code == 503
    assert authority.asked["/jwks"] == 0
    assert logged in caplog.text
