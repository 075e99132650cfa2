"""The keys of the issuer: fetched when they are needed, and seldom."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agenthost import EgressPolicy, Host, Unavailable

from ..metadata import MOST_BYTES, Unusable, check, json_at, metadata_of
from .challenges import TokenRefused
from .tokens import Head, chosen, keys_in

if TYPE_CHECKING:
    from joserfc.jwk import Key

SECONDS = 4.0
"""An authenticator may take 5."""
EVERY = 10.0
"""Seconds between two fetches at least, whatever tokens are shown."""
FRESH = 3600.0
KEPT = 24 * 3600.0
"""Seconds that keys count while the issuer cannot be reached."""

_log = logging.getLogger("agenthost.mcp")


class IssuerKeys:
    """The keys that one issuer publishes.

    Args:
        host: Its way out and its clock.
        issuer: As its metadata writes it.
    """

    def __init__(self, host: Host, issuer: str) -> None:
        self.issuer = issuer
        self._host = host
        self._keys: tuple[Key, ...] = ()
        self._read_at = float("-inf")
        self._tried_at = float("-inf")
        self._fetching = asyncio.Lock()

    async def of(self, head: Head) -> Key:
        """Give the key that a token says it is signed with.

        Raises:
            TokenRefused: The issuer has none that fits.
            Unavailable: The issuer's keys are not known now.
        """
        now = self._host.clock.monotonic
        key = chosen(self._keys, head)
        if key is None or now() - self._read_at > FRESH:
            await self._fetch()
            key = chosen(self._keys, head)
        if now() - self._read_at > KEPT:
            raise Unavailable("the issuer's keys cannot be fetched; try again later")
        if key is None:
            raise TokenRefused("the token is signed with no key that its issuer has")
        return key

    async def _fetch(self) -> None:
        """Fetch them, unless that was tried a moment ago; a failure is logged."""
        async with self._fetching:
            monotonic = self._host.clock.monotonic
            if monotonic() - self._tried_at < EVERY:
                return
            self._tried_at = monotonic()
            try:
                async with asyncio.timeout(SECONDS):
                    self._keys = await self._published()
            except (Unusable, TimeoutError) as error:
                why = str(error) or "it does not answer in time"
                _log.warning("the keys of [mcp] issuer cannot be fetched: %s", why)
            else:
                self._read_at = monotonic()

    async def _published(self) -> tuple[Key, ...]:
        # The operator wrote the issuer by hand, so that it may be a local one.
        named = frozenset({urlsplit(self.issuer).hostname or ""})
        policy = EgressPolicy("mcp.issuer", named, SECONDS, SECONDS, MOST_BYTES)
        client = self._host.egress.client(policy)
        found = await metadata_of(client, self.issuer)
        published = await json_at(client, check(found.get("jwks_uri")))
        keys = keys_in(published or {})
        if not keys:
            raise Unusable(f"{self.issuer} publishes no key that can be used")
        return keys
