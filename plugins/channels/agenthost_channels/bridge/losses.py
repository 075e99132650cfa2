"""What did not arrive: told to the agent that said it, and shown in the API."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from agenthost import Answer, Call, Host, NotFound, RouteGroup, timestamp
from typing_extensions import TypedDict

from . import tables, writes
from .settings import Channels

LONGEST = 200
WORDS = {
    "failed": "what you said here before did not arrive",
    "unknown": "nobody knows whether what you said here before arrived",
}

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
    def lines(self) -> str:
        """What the agent is told before the next thing that is said to it."""
        return "\n".join(map(_line, self._rows))

    async def told(self, host: Host) -> None:
        """Tell of them no more."""
        if self._rows:
            ids = [row["id"] for row in self._rows]
            await host.store.write(partial(writes.tell_lost, ids=ids))


def _line(row: Any) -> str:
    words = " ".join(row["plain"].split())
    short = words if len(words) <= LONGEST else f"{words[:LONGEST]}..."
    what = f'"{short}"' if short else "a file"
    return f"[{WORDS[row['state']]} ({row['reason']}): {what}]"
