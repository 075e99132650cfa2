"""Whoever shows a token of the issuer: let in to ``/mcp``, as long as it is good."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agenthost import (
    Authenticator,
    Credentials,
    Grants,
    Host,
    Principal,
    Refused,
    Unavailable,
    authorize,
)

from .challenges import AGENTS, KIND, TOOLS, USE, TokenRefused
from .settings import McpSection

if TYPE_CHECKING:
    from .issuer import IssuerKeys
    from .tokens import Bearer

NAMED = "ah_"
"""How named keys begin."""
LONGEST_SLEEP = 30.0
"""Tokens expire by the wall clock, which may jump while a wait does not."""


class IssuedTokens(Authenticator):
    """Tells who comes with a token of ``[mcp] issuer``."""

    name = "mcp_tokens"

    def __init__(self) -> None:
        self._keys: IssuerKeys | None = None
        self._until: dict[str, tuple[float, Principal]] = {}
        self._watch: asyncio.Task[None] | None = None

    async def start(self, host: Host) -> None:
        """Say where tokens would not count."""
        issuer = host.settings(McpSection).issuer
        if issuer is not None and host.config.api_key is None:
            host.warnings.append(
                "api_key is not set: clients on this machine have every right without "
                "a token of [mcp] issuer; set api_key to make them ask for one"
            )

    async def stop(self) -> None:
        """Watch for tokens that expire no more."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    async def authenticate(self, host: Host, shown: Credentials) -> Principal | None:
        """Tell whose token it is.

        Raises:
            TokenRefused: It is meant to be one, and no good.
            Unavailable: The issuer's keys are not known now.
        """
        settings = host.settings(McpSection)
        if settings.issuer is None or settings.resource is None:
            return None
        # A start without an issuer needs none of them.
        from .tokens import LEEWAY, head_of, issuer_in, looks_like_one, verified

        token = shown.token.reveal()
        if shown.scheme != "bearer" or not token or token.startswith(NAMED):
            return None
        if not looks_like_one(token):
            _leave_or_refuse(host, self, "it is no JWT: opaque tokens are not taken")
            return None
        head = head_of(token)
        if (said := issuer_in(token)) != settings.issuer:
            _leave_or_refuse(host, self, f"it is of another issuer: {said[:200]!a}")
            return None
        key = await self._keys_of(host, settings.issuer).of(head)
        now = host.clock.time()
        bearer = verified(token, key, settings.issuer, settings.resource, now)
        principal = principal_of(settings.issuer, bearer)
        self._hold(host, principal, bearer.ends + LEEWAY)
        return principal

    def _keys_of(self, host: Host, issuer: str) -> IssuerKeys:
        from .issuer import IssuerKeys

        if self._keys is None or self._keys.issuer != issuer:
            self._keys = IssuerKeys(host, issuer)
        return self._keys

    def _hold(self, host: Host, principal: Principal, ends: float) -> None:
        """See that what is open ends with the last token that was shown for it."""
        before, _ = self._until.get(principal.name, (0.0, None))
        self._until[principal.name] = max(before, ends), principal
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._expire(host))

    async def _expire(self, host: Host) -> None:
        while self._until:
            due = min(ends for ends, _ in self._until.values())
            wait = min(max(due - host.clock.time(), 0.0), LONGEST_SLEEP)
            await host.clock.sleep(wait)
            now = host.clock.time()
            over = [p for ends, p in self._until.values() if ends <= now]
            for principal in over:
                del self._until[principal.name]
                host.access.dismiss(principal)


def tokens_of(host: Host) -> IssuedTokens:
    """Find what tells the tokens of a daemon.

    Raises:
        Unavailable: Its plugin has failed.
    """
    for _, each in host.registry.offered(Authenticator):
        if isinstance(each, IssuedTokens):
            return each
    raise Unavailable("tokens of an issuer are not taken: the plugin mcp has failed")


def principal_of(issuer: str, bearer: Bearer) -> Principal:
    """Who somebody is to whom an issuer gave a token: good for ``/mcp`` alone."""
    route = (USE,) if USE in bearer.scopes else ()
    more = tuple(sorted(bearer.scopes & {TOOLS, AGENTS}))
    # No issuer has a #, so that no subject can look like one of another issuer.
    name = f"{issuer}#{bearer.subject}"
    return Principal(KIND, name, Grants({"route": route, "mcp": more}))


def may(principal: Principal, scope: str) -> bool:
    """Tell whether a scope that narrows tokens alone leaves something open."""
    grants = principal.grants
    return principal.kind != KIND or grants is None or grants.allow("mcp", scope)


def may_read(principal: Principal) -> bool:
    """Tell whether agents and templates may be read, as over the API."""
    if principal.kind == KIND:
        return may(principal, AGENTS)
    try:
        authorize(principal, "route", "agents:read")
    except Refused:
        return False
    return True


def _leave_or_refuse(host: Host, mine: Authenticator, reason: str) -> None:
    """Leave a token to who is asked later, if somebody is; otherwise refuse it."""
    offered = [each for _, each in host.registry.offered(Authenticator)]
    if offered[-1] is mine:
        raise TokenRefused(f"the token is no good: {reason}")
