"""``/api/channels``: which channels there are, and which are switched on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from agenthost import Answer, Call, ChannelSpec, RouteGroup
from typing_extensions import TypedDict

from ..contract import Adapter, Facts
from ..facts import known, names
from .bridge import bridge_of
from .gauges import STATES, counted
from .line import lacking
from .settings import Channels
from .tables import SWITCHED_OFF

routes = RouteGroup("channels")
COUNTED = ("unanswered", *STATES)


class ChannelRow(TypedDict):
    """A channel; ``available`` tells whether a plugin offers it.

    ``trouble`` says why it is not connected, "" where nothing is wrong; ``lacks`` names
    the secrets that it cannot work without, of one that is configured. ``counts`` has
    what waits for an answer, and what became of the last day's messages.
    """

    name: str
    enabled: bool
    has_token: bool
    configured: bool
    display_name: str
    category: str
    status: str
    available: bool
    connected: bool
    trouble: str
    lacks: list[str]
    counts: dict[str, int]


class ChannelList(TypedDict):
    """``GET /api/channels``."""

    channels: list[ChannelRow]
    total: int


@routes.get("/api/channels", scope="system:read", cost=5, answer=ChannelList)
async def list_channels(call: Call) -> Answer:
    """List every channel by name, those included that no plugin offers yet."""
    host = call.host
    offered = {spec.name: spec for _, spec in host.registry.offered(ChannelSpec)}
    sections = host.settings(Channels).root
    # Adapters with what they import, and files: off the loop.
    facts = await asyncio.to_thread(_facts, offered, sections)
    wanted = [spec for name, spec in offered.items() if name in sections]
    kinds = await asyncio.to_thread(_kinds, wanted)
    lacks = {name: lacking(host, name, kind) for name, kind in kinds.items()}
    off = {row["channel"] for row in await host.store.read(SWITCHED_OFF)}
    bridge = bridge_of(host)
    counts = await counted(host)
    standing = {name: bridge.standing(name) for name in facts}
    rows: list[ChannelRow] = [
        {
            "name": name,
            "enabled": name in sections and sections[name].enabled and name not in off,
            "has_token": name in kinds and not lacks[name],
            "configured": name in sections,
            "display_name": about.display_name,
            "category": about.category,
            "status": about.status,
            "available": name in offered,
            "connected": standing[name][0],
            "trouble": standing[name][1],
            "lacks": lacks.get(name, []),
            "counts": {key: counts.get(name, {}).get(key, 0) for key in COUNTED},
        }
        for name, about in sorted(facts.items())
    ]
    return {"channels": rows, "total": len(rows)}


def _facts(offered: Iterable[str], sections: Iterable[str]) -> dict[str, Facts]:
    found = {name: Facts(name, name, "other", "") for name in sections}
    found |= {
        name: Facts(name, said["display_name"], said["category"], "", said["status"])
        for name, said in names().items()
    }
    return found | {name: known(name) for name in offered}


def _kinds(specs: list[ChannelSpec]) -> dict[str, type[Adapter]]:
    kinds: dict[str, type[Adapter]] = {}
    for spec in specs:
        # The bridge logs why one cannot be loaded; the others are listed all the same.
        with suppress(Exception):
            kinds[spec.name] = spec.load()
    return kinds
