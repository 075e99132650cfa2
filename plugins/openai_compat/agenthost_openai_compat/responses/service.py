"""What one daemon has of responses, and the order in which it comes up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenthost import Host, ServiceSpec, Unavailable

from ..once import Once
from .background import Background
from .retention import Retention

if TYPE_CHECKING:
    from .live import Live


class Keeping:
    """Keeps the responses of one daemon; what it has is there from its start on."""

    background: Background
    once: Once
    _host: Host
    _retention: Retention
    _live: Live | None = None

    @property
    def live(self) -> Live:
        """Hears of the turns of responses; it is made for the first of them."""
        if self._live is None:
            from .live import Live

            self._live = Live(self._host)
        return self._live

    async def start(self, host: Host) -> None:
        """Take up what was left."""
        self._host = host
        self.background = Background(host)
        self.once = Once(host)
        self._retention = Retention(host)
        await self.background.start()
        self._retention.start()

    async def stop(self, host: Host) -> None:
        """End."""
        del host
        await self._retention.stop()
        await self.once.stop()
        await self.background.stop()


@dataclass(frozen=True, slots=True)
class KeepingService(ServiceSpec):
    """The service of responses, by which their routes find what keeps them."""

    keeping: Keeping = field(kw_only=True)


def served() -> KeepingService:
    """Make one, with the service that starts and stops it."""
    made = Keeping()
    return KeepingService("openai_responses", made.start, made.stop, keeping=made)


def keeping_of(host: Host) -> Keeping:
    """Find what keeps the responses of a daemon.

    Raises:
        Unavailable: Its plugin has failed.
    """
    for _, service in host.registry.offered(ServiceSpec):
        if isinstance(service, KeepingService):
            return service.keeping
    raise Unavailable("responses are not kept: the service has failed")
