"""Logins under way: an address for a person's browser, and what it brings back."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from agenthost import Conflict, Context, Host, InvalidInput
from agenthost_values.value_class import value_class

from ...addresses import is_secure
from ..settings import OAuth
from .asking import LoginRefused, granted, identity, tokens
from .discovery import OFFLINE, Found, discovered
from .door import Door
from .grant import Client, Grant

PATH = "/oauth/callback"
SECONDS = 600
MOST = 32


@value_class
class Login:
    """One under way; ``verifier`` is what proves that it was begun here (PKCE)."""

    door: Door
    found: Found
    who: Client
    redirect: str
    scope: str
    verifier: str
    by: Context
    ends: float


@value_class
class Started:
    """What a person opens, and what is asked for there."""

    url: str
    issuer: str
    redirect: str
    scope: str


class Logins:
    """Those under way of one daemon, each found by its ``state``, once.

    Args:
        host: Its clock, its address and its vault.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiting: dict[str, Login] = {}

    @property
    def any(self) -> bool:
        """Whether a browser may come back."""
        now = self._host.clock.monotonic()
        return any(now < each.ends for each in self._waiting.values())

    async def start(self, door: Door, by: Context) -> Started:
        """Begin one.

        Raises:
            Unusable: Nobody can be found who gives tokens for it.
            LoginRefused: The authorization server knows us not.
            Conflict: A browser could not come back.
        """
        settings = door.server.oauth or OAuth()
        redirect = settings.redirect_uri or redirect_of(self._host)
        url, before = str(door.server.transport.url), door.grant
        client = door.client
        found = await discovered(client, url, door.challenge, settings.issuer)
        who = await identity(client, found, settings, before, redirect)
        scope = wanted(door, found, before)
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        ends = self._host.clock.monotonic() + SECONDS
        while len(self._waiting) >= MOST:
            del self._waiting[next(iter(self._waiting))]
        login = Login(door, found, who, redirect, scope, verifier, by, ends)
        self._waiting[state] = login
        return Started(_address(login, state), found.issuer, redirect, scope)

    async def finish(self, query: Mapping[str, str]) -> tuple[Login, Grant]:
        """End one with what the browser brought; what it gives is kept by nobody yet.

        Raises:
            InvalidInput: It is of no login that was begun here, or says no code.
            LoginRefused: The answer is of another issuer, or the login was refused.
            Unusable: The authorization server does not give tokens as it should.
        """
        login = self._waiting.pop(query.get("state", ""), None)
        if login is None or self._host.clock.monotonic() >= login.ends:
            raise InvalidInput("state", "no login waits for this; begin it anew")
        _check(login, query)
        form = {
            "grant_type": "authorization_code",
            "code": query["code"],
            "redirect_uri": login.redirect,
            "code_verifier": login.verifier,
            "resource": login.found.resource,
        }
        door, endpoint = login.door, login.found.token
        said = await tokens(door.client, endpoint, login.who, form)
        return login, granted(_empty(login), said, self._host.clock.time())


def redirect_of(host: Host) -> str:
    """Where browsers on this machine find the daemon.

    Raises:
        Conflict: They would not, or not safely.
    """
    address = host.address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")  # noqa: S104  # nosec B104 # read, not bound
    redirect = f"http://{address}{PATH}"
    if not is_secure(redirect):
        raise Conflict(
            f"no browser comes back to {address} safely: write redirect_uri into oauth "
            f"of the server, the https address of {PATH}"
        )
    return redirect


def wanted(door: Door, found: Found, before: Grant | None) -> str:
    """Tell which scopes to ask for: configured, wanted just now, or supported."""
    settings = door.server.oauth or OAuth()
    challenge = door.challenge
    scopes = list(settings.scopes) or (challenge.scope or found.scope).split()
    if challenge.error == "insufficient_scope" and before and not settings.scopes:
        scopes = [*before.scope.split(), *scopes]
    if found.offline and scopes:
        scopes.append(OFFLINE)
    return " ".join(dict.fromkeys(scopes))


def _address(login: Login, state: str) -> str:
    digest = hashlib.sha256(login.verifier.encode()).digest()
    asked = {
        "response_type": "code",
        "client_id": login.who.id,
        "redirect_uri": login.redirect,
        "state": state,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        "resource": login.found.resource,
    }
    if login.scope:
        asked["scope"] = login.scope
    place = login.found.authorize
    return f"{place}{'&' if urlsplit(place).query else '?'}{urlencode(asked)}"


def _check(login: Login, query: Mapping[str, str]) -> None:
    """See that the answer is the issuer's (RFC 9207), and that it is a yes."""
    said, issuer = query.get("iss"), login.found.issuer
    if said is None and login.found.names_itself:
        raise LoginRefused(f"the answer does not say that it is of {issuer}")
    if said is not None and said != issuer:
        raise LoginRefused(f"the answer is of another issuer than {issuer}")
    if "error" in query:
        raise LoginRefused(f"{issuer} refuses: {query['error'][:64]!a}")
    if not query.get("code"):
        raise InvalidInput("code", "is missing; begin the login anew")


def _empty(login: Login) -> Grant:
    found, who = login.found, login.who
    return Grant(
        url=str(login.door.server.transport.url),
        resource=found.resource,
        issuer=found.issuer,
        token_endpoint=found.token,
        redirect=login.redirect,
        client=who.id,
        secret=who.secret,
        method=who.method,
        access="",
        refresh="",
        scope=login.scope,
        ends=0.0,
    )
