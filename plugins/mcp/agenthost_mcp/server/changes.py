"""What has changed since a client last heard: lists, and resources it subscribed to.

Nobody tells of all of these, so they are looked at while a client listens.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

from agenthost import Call, JsonObject

from .answering import frame
from .methods import Server
from .rpc import notification
from .source import Visit

EVERY = 0.5
LISTS = ("tools", "prompts", "resources")


class Changes:
    """What one client has heard of.

    Args:
        server: Of which server.
        visit: Who listens.
        lists: The lists that it wants to hear of.
        uris: Gives the resources that it has subscribed to.
    """

    def __init__(
        self,
        server: Server,
        visit: Visit,
        lists: Iterable[str],
        uris: Callable[[], Iterable[str]],
    ) -> None:
        self._server, self._visit, self._uris = server, visit, uris
        self._seen: dict[str, Any] = {each: self._now(each) for each in lists}
        self._revisions: dict[str, str] = {}
        self._read()

    async def refresh(self) -> None:
        """Have what is looked at find out what there is."""
        await self._server.stock.refresh()

    def due(self) -> list[JsonObject]:
        """The notifications of what changed since this was asked last."""
        told: list[JsonObject] = []
        for each, before in self._seen.items():
            self._seen[each] = now = self._now(each)
            if now is not before and now != before:
                told.append(notification(f"notifications/{each}/list_changed", {}))
        changed = self._read()
        name = "notifications/resources/updated"
        return told + [notification(name, {"uri": uri}) for uri in changed]

    def _now(self, kind: str) -> Any:
        server, visit = self._server, self._visit
        if kind == "tools":
            return server.tools.shown(visit.host)
        if kind == "prompts":
            return server.stock.prompts(visit)
        return server.stock.resources(visit)

    def _read(self) -> list[str]:
        """Read the revisions anew; what is new is not changed."""
        before = self._revisions
        now = {uri: self._server.stock.revision(uri) for uri in self._uris()}
        self._revisions = now
        return [uri for uri, said in now.items() if before.get(uri, said) != said]


async def frames(
    call: Call,
    changes: Changes,
    told: Callable[[JsonObject], JsonObject],
    ended: Callable[[], bool],
) -> AsyncGenerator[bytes, None]:
    """Tell of changes until the client leaves, or is to be told no more.

    Args:
        call: Whose clock counts.
        changes: What is looked at.
        told: Writes each notification as the client is to have it.
        ended: Says whether there is nobody to tell any more.
    """
    while not ended():
        await changes.refresh()
        for each in changes.due():
            yield frame(told(each))
        await call.host.clock.sleep(EVERY)
