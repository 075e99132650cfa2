"""What did not arrive: told to the agent that said it, and shown in the API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

from agenthost import Answer, Call, Host, NotFound, RouteGroup, timestamp
from typing_extensions import TypedDict

from . import tables, writes
from .settings import Channels

TOLD = (
    "Not all that you said here last is there: {failed} of your messages did not "
    "arrive, and of {unknown} nobody knows whether they did. Say again what is still "
    "of use."
)
"""No words of anybody's: this stands behind the system prompt."""

routes = RouteGroup("channels.losses")


class LostItem(TypedDict):
    """A message that is not there, or nobody knows: ``state`` is failed or unknown."""

    id: str
    to: str
    thread: str
    state: str
    reason: str
    said_at: str


class LostList(TypedDict):
    """``GET /api/channels/{id}/lost``: the newest hundred."""

    lost: list[LostItem]
    total: int


@routes.get("/api/channels/<channel>/lost", scope="persons:admin", answer=LostList)
async def list_lost(call: Call, channel: str) -> Answer:
    """List what did not arrive in the last thirty days, the newest first."""
    if channel not in call.host.settings(Channels).root:
        raise NotFound("channel", channel)
    found = await call.host.store.read(tables.LOST, {"channel": channel})
    rows: list[LostItem] = [
        {
            "id": row["id"],
            "to": row["peer"],
            "thread": row["thread"],
            "state": row["state"],
            "reason": row["reason"],
            "said_at": timestamp(row["created_at"]),
        }
        for row in found
    ]
    return {"lost": rows, "total": len(rows)}


class Losses:
    """What of a conversation did not arrive since its agent was asked last."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = list(rows)

    @classmethod
    async def in_place(cls, host: Host, row: Any) -> Losses:
        """Find them in the place of a message."""
        where = {name: row[name] for name in ("channel", "account", "peer", "thread")}
        return cls(await host.store.read(tables.LOST_HERE, where))

    @property
    def instructions(self) -> str:
        """What the agent is told when it is asked next; "" where nothing was lost."""
        found = Counter(row["state"] for row in self._rows)
        if not found:
            return ""
        return TOLD.format(failed=found["failed"], unknown=found["unknown"])

    async def told(self, host: Host) -> None:
        """Tell of them no more."""
        if self._rows:
            ids = [row["id"] for row in self._rows]
            await host.store.write(partial(writes.tell_lost, ids=ids))
