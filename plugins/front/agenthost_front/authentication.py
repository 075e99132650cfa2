"""Ask the plugins' authenticators who somebody is, and count who is nobody."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from agenthost import (
    AgentHostError,
    Authenticator,
    Credentials,
    Guard,
    Principal,
    RequestCase,
    Unauthenticated,
    Unavailable,
    within,
)

if TYPE_CHECKING:
    from agenthost import Host

SECONDS = 5.0
"""How long an authenticator may take."""
FAILED_COST = 30
"""Units that a wrong key costs, beside those of the request."""
LOG_EVERY = 10.0

_log = logging.getLogger("agenthost.front")


class Seldom:
    """Lets one of many go by: what an attacker can cause must not fill a disk."""

    def __init__(self, monotonic: Callable[[], float], every: float) -> None:
        self._monotonic = monotonic
        self._every = every
        self._count = 0
        self._due = float("-inf")

    def count(self) -> int:
        """Count one more; give how many there were when it is time, otherwise 0."""
        self._count += 1
        now = self._monotonic()
        if now < self._due:
            return 0
        counted, self._count = self._count, 0
        self._due = now + self._every
        return counted


class FailedLogins:
    """Wrong keys: each costs the client's address, and the log tells of some."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._seldom = Seldom(host.clock.monotonic, LOG_EVERY)

    def add(self, client: str) -> None:
        """Take note of a wrong key.

        Raises:
            AgentHostError: What a guard of the point ``request`` says of so many.
        """
        if count := self._seldom.count():
            _log.warning("%d failed logins, the last from %s", count, client)
        guards = self._host.guards
        if guards.filled(Guard.REQUEST):
            case = RequestCase("LOGIN", "/login", client, FAILED_COST)
            guards.check(Guard.REQUEST, case)


class Authenticators:
    """The authenticators of a daemon's plugins, asked in order; false without one."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._all: tuple[tuple[str, Authenticator], ...] = ()
        self._seldom = Seldom(host.clock.monotonic, LOG_EVERY)

    def take(self) -> None:
        """Ask those on offer from now on: the front is made before the registry is."""
        self._all = tuple(self._host.registry.offered(Authenticator))

    def __bool__(self) -> bool:
        return bool(self._all)

    async def ask(self, shown: Credentials) -> Principal | None:
        """Tell whose credentials these are, None when nobody knows them.

        Raises:
            Unauthenticated: They are of somebody's kind, and no good.
            Unavailable: An authenticator failed or took too long: what it would have
                said is not known.
        """
        plugins = self._host.plugins
        for key, authenticator in self._all:
            if not plugins.healthy(key):
                continue
            with plugins.charges.timed(key):
                principal = await self._one(key, authenticator, shown)
            if principal is not None:
                return principal
        return None

    async def _one(
        self, key: str, authenticator: Authenticator, shown: Credentials
    ) -> Principal | None:
        name = f"authenticator {authenticator.name} of {key}"
        try:
            asked = _answer(authenticator, self._host, shown)
            answer = await within(SECONDS, name, asked)
        except Unauthenticated:
            raise
        except AgentHostError as error:
            raise self._failed(name, error.message) from error
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            # Its text might repeat what it was shown.
            raise self._failed(name, type(error).__name__) from None
        if answer is None or isinstance(answer, Principal):
            return answer
        raise self._failed(name, f"it answered {type(answer).__name__}, no principal")

    def _failed(self, name: str, reason: str) -> Unavailable:
        if count := self._seldom.count():
            _log.warning("%s cannot tell who asks (%d times): %s", name, count, reason)
        return Unavailable("whose key this is cannot be told now; try again later")


async def _answer(
    authenticator: Authenticator, host: Host, shown: Credentials
) -> object:
    """Call it inside what bounds it: it may raise before it gives a coroutine."""
    return await authenticator.authenticate(host, shown)
