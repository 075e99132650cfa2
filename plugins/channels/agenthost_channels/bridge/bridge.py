"""The channels that are configured, while the daemon runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from agenthost import AgentHostError, ChannelSpec, Host, ServiceSpec, Unavailable

if TYPE_CHECKING:
    from .account import Account
    from .gauges import Gauge
    from .receiver import Receiver
    from .settings import ChannelSection

log = logging.getLogger(__name__)
RETRY_SECONDS = 5.0
LOOK_SECONDS = 1.0
BEGIN_AFTER = 0.1
"""Seconds that the start has for itself: what connecting imports is a lot."""
FORGET_SECONDS = 86_400.0


class Bridge:
    """Runs one task for each channel that is on.

    On is what the configuration has on, as it is read now, unless the API has switched
    it off.
    """

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.receivers: dict[str, Receiver] = {}
        self.troubles: dict[str, str] = {}
        self.on: dict[str, ChannelSection] = {}
        self.configured = 0
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._given: dict[str, asyncio.Event] = {}
        self._following: asyncio.Task[None] | None = None
        # One change after another: two would begin the same channel twice.
        self._changing = asyncio.Lock()
        # One thread loads all: each that does keeps memory of its own.
        self._loading = asyncio.Lock()
        self._ready = False
        self._forget_at = 0.0

    async def start(self, host: Host) -> None:
        """Begin to connect; nobody waits for it."""
        self.configured = len(_configured(host))
        self._following = asyncio.create_task(self._follow(host))

    async def stop(self, host: Host) -> None:  # noqa: ARG002
        """End all of them; what they have not done is on disk."""
        tasks = [*self._tasks.values()]
        if self._following is not None:
            tasks.append(self._following)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    async def _follow(self, host: Host) -> None:
        """Do what the configuration says, also when it was read anew."""
        from .settings import Channels

        done: Channels | None = None
        await asyncio.sleep(BEGIN_AFTER)
        while True:
            said = host.settings(Channels)
            if said is not done:
                try:
                    await self.apply(host)
                    done = said
                except AgentHostError as error:
                    log.warning("channels: not as configured yet: %s", error)
                except Exception:
                    log.exception("channels: not as configured yet")
            if self._ready and host.clock.time() >= self._forget_at:
                await self._forget(host)
            # By no clock that a test may hurry: it would do nothing else.
            await asyncio.sleep(LOOK_SECONDS)

    async def _forget(self, host: Host) -> None:
        """Forget what was over long ago, and look again in a day."""
        from .writes import forget

        now = host.clock.time()
        self._forget_at = now + FORGET_SECONDS
        try:
            await host.store.write(partial(forget, now=now))
        except AgentHostError as error:
            log.warning("channels: nothing was forgotten: %s", error)

    async def apply(self, host: Host) -> None:
        """Connect what is on now, and end what is not or is another than before.

        Raises:
            Unavailable: The database does not say what is switched off.
        """
        async with self._changing:
            wanted = await self._wanted(host)
            for name in [n for n, each in self.on.items() if wanted.get(n) != each]:
                await self._end(name)
            offered = {s.name: s for _, s in host.registry.offered(ChannelSpec)}
            for name in wanted.keys() - self.on.keys():
                self.on[name] = wanted[name]
                if name in offered:
                    serving = self._serve(host, offered[name], wanted[name])
                    self._tasks[name] = asyncio.create_task(serving)
                else:
                    self.troubles[name] = "no plugin offers this channel"

    async def _wanted(self, host: Host) -> dict[str, ChannelSection]:
        on = _configured(host)
        self.configured = len(on)
        if not on:
            return {}
        if not self._ready:
            # SQLAlchemy and what it imports: off the loop, after the start.
            await asyncio.to_thread(_prepare)
            self._ready = True
        from .tables import SWITCHED_OFF

        off = {row["channel"] for row in await host.store.read(SWITCHED_OFF)}
        return {name: each for name, each in on.items() if name not in off}

    async def _end(self, name: str) -> None:
        """End a channel; what it has not done is on disk."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        # No service finds its path any more before the channel is another.
        for known in (self.receivers, self.accounts, self.troubles, self._given):
            known.pop(name, None)
        del self.on[name]

    async def _serve(
        self, host: Host, spec: ChannelSpec, section: ChannelSection
    ) -> None:
        given = self._given.setdefault(spec.name, asyncio.Event())
        while not await self._open(host, spec, section):
            # A secret that it lacks may still be given.
            await given.wait()
            given.clear()
        await self._keep_up(host, spec.name)

    async def _open(
        self, host: Host, spec: ChannelSpec, section: ChannelSection
    ) -> bool:
        from ..facts import known
        from .line import opened

        try:
            async with self._loading:
                kind = await asyncio.to_thread(spec.load)
            facts = getattr(kind, "facts", None) or known(spec.name)
            line = opened(host, kind, section, facts)
            # Only who has all that it needs is worth the rest.
            await asyncio.to_thread(_load_accounts)
        except AgentHostError as error:
            self._trouble(spec.name, str(error))
            return False
        except Exception:
            log.exception("channel %s cannot be loaded", spec.name)
            self.troubles[spec.name] = "it cannot be loaded; see the log"
            return False
        from .account import Account
        from .receiver import Receiver

        account = Account(host, kind, line, section, facts)
        self.accounts[spec.name] = account
        if account.adapter.called:
            self.receivers[spec.name] = Receiver(host, spec.name, account, section)
        return True

    async def _keep_up(self, host: Host, name: str) -> None:
        """Begin again when the store refuses: what is on disk is not lost."""
        while True:
            try:
                await self.accounts[name].run()
            except* AgentHostError as errors:
                self._trouble(name, str(errors.exceptions[0]))
            except* Exception:
                log.exception("channel %s broke", name)
                self.troubles[name] = "it broke; see the log"
            await host.clock.sleep(RETRY_SECONDS)

    def secrets_changed(self, name: str) -> None:
        """Connect a channel anew, or for the first time: its secrets are others."""
        if name in self.accounts:
            self.accounts[name].reconnect()
        elif name in self._given:
            self._given[name].set()

    def standing(self, name: str) -> tuple[bool, str]:
        """Tell whether a channel is connected, and what is wrong with it."""
        account = self.accounts.get(name)
        if account is None:
            return False, self.troubles.get(name, "")
        return account.line.up.is_set(), account.line.trouble

    def _trouble(self, name: str, reason: str) -> None:
        log.warning("channel %s: %s", name, reason)
        self.troubles[name] = reason


@dataclass(frozen=True, slots=True)
class ChannelService(ServiceSpec):
    """The service that connects channels, by which its routes find the bridge."""

    bridge: Bridge = field(kw_only=True)

    @property
    def channels_configured(self) -> int:
        """How many are switched on: ``/api/config`` tells it."""
        return self.bridge.configured

    async def gauges(self, host: Host) -> Sequence[Gauge]:
        """Tell a monitor how channels stand."""
        from .gauges import gauges

        return await gauges(host, self.bridge)


def served() -> ServiceSpec:
    """Give the service that connects what is configured."""
    made = Bridge()
    return ChannelService("channels", made.start, made.stop, bridge=made)


def bridge_of(host: Host) -> Bridge:
    """Find what connects the channels of a daemon."""
    for _, service in host.registry.offered(ServiceSpec):
        if isinstance(service, ChannelService):
            return service.bridge
    raise Unavailable("no channel is served here")


def _configured(host: Host) -> dict[str, ChannelSection]:
    from .settings import Channels

    sections = host.settings(Channels).root
    return {name: each for name, each in sections.items() if each.enabled}


def _prepare() -> None:
    from . import line, tables, writes

    del line, tables, writes


def _load_accounts() -> None:
    from . import account, receiver

    del account, receiver
