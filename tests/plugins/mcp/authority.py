"""An authorization server in this process, strict about what RFCs ask of clients.

Its tokens are signed with PyJWT, a library that no product code uses.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    generate_private_key,
)


@cache
def rsa_key(name: str, bits: int = 2048) -> RSAPrivateKey:
    """A key of a name, made once."""
    del name
    return generate_private_key(65537, bits)


def public_row(key: Any, kid: str, algorithm: str = "RS256") -> dict[str, Any]:
    """What an issuer publishes of a key."""
    maker = jwt.get_algorithm_by_name(algorithm)
    row = maker.to_jwk(key.public_key(), as_dict=True)
    return {**row, "kid": kid, "use": "sig", "alg": algorithm}


@dataclass
class Authority:
    """It; ``asked`` counts requests by path, ``forms`` are those of ``/token``.

    Attributes:
        says: What its metadata says differently.
        resources: What it gives tokens for; None for whatever is asked.
        gives: What its answers of ``/token`` say differently.
        returns: What its redirects say differently.
    """

    resources: set[str] | None = None
    issuer: str = ""
    keys: dict[str, Any] = field(default_factory=lambda: {"k1": rsa_key("k1")})
    says: dict[str, Any] = field(default_factory=dict)
    gives: dict[str, Any] = field(default_factory=dict)
    returns: dict[str, str] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    forms: list[dict[str, str]] = field(default_factory=list)
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    down: bool = False
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    refresh: dict[str, dict[str, str]] = field(default_factory=dict)

    def token(self, resource: str, **claims: Any) -> str:
        """Sign an access token; None leaves a claim out."""
        now = int(time.time())
        said: dict[str, Any] = {
            "iss": self.issuer,
            "aud": resource,
            "sub": "ada",
            "exp": now + 600,
            "iat": now,
            "scope": "mcp:use",
            **claims,
        }
        whole = {name: value for name, value in said.items() if value is not None}
        return self.signed(whole)

    def signed(
        self, claims: Mapping[str, Any], kid: str = "k1", algorithm: str = "RS256"
    ) -> str:
        """Sign claims as they are."""
        headers = {"kid": kid, "typ": "at+jwt"}
        return jwt.encode(dict(claims), self.keys[kid], algorithm, headers)

    async def _metadata(self, request: web.Request) -> web.Response:
        self.asked[request.path] += 1
        if self.down:
            return web.Response(status=503)
        return web.json_response(
            {
                "issuer": self.issuer,
                "jwks_uri": f"{self.issuer}/jwks",
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": True,
                **self.says,
            }
        )

    async def _jwks(self, request: web.Request) -> web.Response:
        self.asked[request.path] += 1
        rows = [public_row(key, kid) for kid, key in self.keys.items()]
        return web.json_response({"keys": rows})

    async def _register(self, request: web.Request) -> web.Response:
        self.asked[request.path] += 1
        said = await request.json()
        name = f"client-{len(self.clients) + 1}"
        self.clients[name] = said
        return web.json_response({**said, "client_id": name}, status=201)

    async def _authorize(self, request: web.Request) -> web.Response:
        """Let whoever asks in: the person has said yes."""
        said = dict(request.query)
        known = self.clients.get(said["client_id"], {})
        wrong = (
            said.get("response_type") != "code"
            or said.get("code_challenge_method") != "S256"
            or len(said.get("code_challenge", "")) != 43
            or said["redirect_uri"] not in known.get("redirect_uris", ())
            or (self.resources is not None and said["resource"] not in self.resources)
        )
        if wrong:
            return web.Response(status=400, text=str(said))
        code = f"code-{len(self._codes) + 1}"
        self._codes[code] = said
        told = {"code": code, "state": said["state"], "iss": self.issuer}
        whole = {k: v for k, v in {**told, **self.returns}.items() if v}
        place = f"{said['redirect_uri']}?{urlencode(whole)}"
        return web.Response(status=302, headers={"Location": place})

    async def _token(self, request: web.Request) -> web.Response:
        form = dict(parse_qsl(await request.text(), strict_parsing=True))
        self.forms.append(form)
        granted = self._granted(form)
        if granted is None:
            return web.json_response({"error": "invalid_grant"}, status=400)
        again = f"refresh-{len(self.refresh) + 1}"
        self.refresh[again] = granted
        scope = granted.get("scope", "mcp:use")
        told = {
            "access_token": self.token(granted["resource"], scope=scope),
            "token_type": "Bearer",
            "expires_in": 600,
            "refresh_token": again,
            "scope": scope,
            **self.gives,
        }
        return web.json_response({k: v for k, v in told.items() if v is not None})

    def _granted(self, form: Mapping[str, str]) -> dict[str, str] | None:
        if form["grant_type"] == "refresh_token":
            said = self.refresh.pop(form["refresh_token"], None)
        else:
            said = self._codes.pop(form["code"], None)
            if said is not None:
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                if proof != said["code_challenge"]:
                    return None
                if form["redirect_uri"] != said["redirect_uri"]:
                    return None
        same = ("client_id", "resource")
        if said is None or any(form.get(each) != said[each] for each in same):
            return None
        return said

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Authority]:
        """Serve until the block ends."""
        app = web.Application()
        app.router.add_get("/.well-known/oauth-authorization-server", self._metadata)
        app.router.add_get("/jwks", self._jwks)
        app.router.add_post("/register", self._register)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.issuer = self.issuer or f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()
