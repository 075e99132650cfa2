"""Tokens that a provider takes in place of a key: fetched, kept, fetched again."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from agenthost import (
    Delta,
    EgressPolicy,
    Host,
    ProviderError,
    ProviderFault,
    Secret,
    redacted,
)

from .extras import is_header_value

if TYPE_CHECKING:
    import httpx

PATIENCE = 10.0
LONGEST = 20.0
LARGEST = 64 * 1024
MOST_KEPT = 32
AHEAD = 300.0
"""Seconds before its end that a token is no longer used; half of a short life."""
LONGEST_LIFE = 86_400.0
WORDS = 200
FAULTS = {
    400: ProviderFault.AUTH,
    401: ProviderFault.AUTH,
    403: ProviderFault.AUTH,
    429: ProviderFault.RATE_LIMITED,
    503: ProviderFault.OVERLOADED,
}


class Grant(Protocol):
    """How a key becomes a token: which form is posted where."""

    @property
    def url(self) -> str:
        """The token endpoint."""

    def form(self, key: str, now: float) -> Mapping[str, str]:
        """Write the form; called off the event loop.

        Args:
            key: What the provider's key holds.
            now: Seconds since 1970.

        Raises:
            ValueError: The key is not what the grant needs; without the key.
        """


@dataclass(frozen=True, slots=True)
class _Token:
    """A token, and until when of the monotonic clock it is used."""

    secret: Secret
    until: float


@dataclass
class Tokens:
    """The tokens of one provider, by key.

    Of many who need one at once, one fetches it and the others wait for that.
    """

    host: Host
    slug: str
    grant: Grant
    _kept: OrderedDict[str, _Token] = field(default_factory=OrderedDict, repr=False)
    _coming: dict[str, asyncio.Future[Secret]] = field(default_factory=dict, repr=False)

    @property
    def live(self) -> list[str]:
        """What no message may show."""
        return [token.secret.reveal() for token in self._kept.values()]

    async def spoken(
        self,
        key: Secret | None,
        send: Callable[[Secret], AsyncGenerator[Delta, None]],
    ) -> AsyncGenerator[Delta, None]:
        """Make a call with a token; once more with another if it is refused.

        Raises:
            ProviderError: The call's, or no token is to be had.
        """
        for last in (False, True):
            token, said = await self.of(key), False
            try:
                async with aclosing(send(token)) as deltas:
                    async for delta in deltas:
                        said = True
                        yield delta
                return
            except ProviderError as error:
                if last or said or error.fault is not ProviderFault.AUTH:
                    raise
                self.forget(key, token)

    async def of(self, key: Secret | None) -> Secret:
        """Give the token of a key, fetched if there is none.

        Raises:
            ProviderError: AUTH, the key or the grant is refused; or the fault of the
                token endpoint.
        """
        if key is None:
            raise self._error(ProviderFault.AUTH, "there is no key to get a token with")
        name = _digest(key)
        while True:
            token = self._kept.get(name)
            if token is not None and self.host.clock.monotonic() < token.until:
                return token.secret
            coming = self._coming.get(name)
            if coming is None:
                return await self._fetched(name, key)
            await asyncio.wait((coming,))
            # Who fetched it may have been cancelled: then somebody else does.
            if not coming.cancelled():
                return _outcome(coming)

    def forget(self, key: Secret | None, token: Secret) -> None:
        """The provider refuses a token; one that came since then stays."""
        name = _digest(key) if key else ""
        kept = self._kept.get(name)
        if kept is not None and kept.secret is token:
            del self._kept[name]

    async def _fetched(self, name: str, key: Secret) -> Secret:
        coming = asyncio.get_running_loop().create_future()
        self._coming[name] = coming
        try:
            token = await self._fetch(key)
        except ProviderError as error:
            coming.set_exception(error)
            # It is raised here; that nobody waited is no mistake.
            coming.exception()
            raise
        except BaseException:
            coming.cancel()
            raise
        finally:
            del self._coming[name]
        self._kept[name] = token
        self._kept.move_to_end(name)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        coming.set_result(token.secret)
        return token.secret

    async def _fetch(self, key: Secret) -> _Token:
        grant, egress = self.grant, self.host.egress
        now = self.host.clock.time()
        try:
            form = await asyncio.to_thread(grant.form, key.reveal(), now)
        except ValueError as error:
            raise self._error(ProviderFault.AUTH, str(error)) from None
        policy = EgressPolicy(
            f"token:{self.slug}",
            frozenset({urlsplit(grant.url).hostname or ""}),
            timeout=PATIENCE,
            total_timeout=LONGEST,
            max_bytes=LARGEST,
        )
        asked = self.host.clock.monotonic()
        async with egress.exchange.faults(self.slug):
            answer = await egress.client(policy).post(
                grant.url, data=dict(form), headers={"Accept": "application/json"}
            )
        if not answer.is_success:
            raise self._refused(answer, [key.reveal(), *form.values()])
        return self._read(answer, asked)

    def _read(self, answer: httpx.Response, asked: float) -> _Token:
        told = _object(answer)
        token, life = told.get("access_token"), _seconds(told.get("expires_in"))
        if not (isinstance(token, str) and is_header_value(token)) or life <= 0:
            raise self._error(
                ProviderFault.MALFORMED, "the token endpoint sent no usable token"
            )
        return _Token(Secret(token), asked + max(life - AHEAD, life / 2))

    def _refused(self, answer: httpx.Response, secrets: list[str]) -> ProviderError:
        status, told = answer.status_code, _object(answer)
        server = ProviderFault.SERVER if status >= 500 else ProviderFault.MALFORMED
        words = [told.get("error"), told.get("error_description")]
        said = ": ".join(word for word in words if isinstance(word, str))[:WORDS]
        detail = redacted(said, secrets) or f"HTTP {status}"
        wait = _seconds(answer.headers.get("retry-after"))
        return self._error(
            FAULTS.get(status, server),
            f"the token endpoint refused: {detail} (check the key and who it is for)",
            wait or None,
        )

    def _error(
        self, fault: ProviderFault, detail: str, wait: float | None = None
    ) -> ProviderError:
        return ProviderError(fault, self.slug, detail, retry_after=wait)


def _outcome(coming: asyncio.Future[Secret]) -> Secret:
    """Give what another fetched, or raise anew what it met."""
    error = coming.exception()
    if isinstance(error, ProviderError):
        raise ProviderError(
            error.fault, error.provider, error.detail, retry_after=error.retry_after
        )
    return coming.result()


def _digest(key: Secret) -> str:
    return hashlib.blake2b(key.reveal().encode(), digest_size=16).hexdigest()


def _object(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        told = json.loads(answer.content)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _seconds(value: Any) -> float:
    """Read a time to wait or to live, which some write as text; 0 for anything else."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_LIFE) if math.isfinite(seconds) else 0.0
