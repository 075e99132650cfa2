"""The pins on disk, and a copy of them in memory."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agenthost import OPERATOR, UNTRUSTED, Context, Host, telling

from .events import McpEvent
from .pins import LAUNCH, Pending, Pin, name_for

if TYPE_CHECKING:
    from sqlalchemy import Connection

ALL = "SELECT server, tool, digest, name, definition FROM mcp_pins"


class Book:
    """What was agreed to, of all servers.

    Args:
        host: The daemon.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._pins: dict[str, dict[str, Pin]] = defaultdict(dict)

    async def load(self) -> None:
        """Read all pins."""
        for row in await self._host.store.read(ALL):
            server, tool, digest, name, said = row
            pin = Pin(server, tool, digest, name, json.loads(said))
            self._pins[server][tool] = pin

    def of(self, server: str) -> Mapping[str, Pin]:
        """Give the pins of a server, by tool."""
        return self._pins[server]

    async def pin(
        self,
        server: str,
        agreed: Iterable[Pending],
        kind: type[McpEvent],
        context: Context | None = None,
    ) -> None:
        """Agree to what was shown; it is on disk then, and in the trail.

        Args:
            server: The server's name.
            agreed: What was shown.
            kind: What is told of it.
            context: Who agrees; the daemon itself at the first sight.
        """
        pins = self._made(server, agreed)
        if not pins:
            return
        host, who = self._host, context or Context(OPERATOR)
        now = host.clock.time()
        tools = [pin.tool for pin in pins]
        with telling(host.events, kind, server, now, tools, **who.caused) as keep:
            rows = [_row(pin, now, who.owner) for pin in pins]
            write = partial(_put, rows=rows)
            await host.store.write(write, *([keep] if keep else []))
        self._pins[server] |= {pin.tool: pin for pin in pins}

    def _made(self, server: str, agreed: Iterable[Pending]) -> list[Pin]:
        known = self._pins[server]
        taken = {pin.name for each in self._pins.values() for pin in each.values()}
        pins = []
        # Who is called exactly as agents call it comes before who only resembles it.
        for each in sorted(agreed, key=lambda e: (e.tool != e.tool.lower(), e.tool)):
            name = known[each.tool].name if each.tool in known else ""
            if not name and each.tool != LAUNCH:
                name = name_for(server, each.tool, taken)
                taken.add(name)
            pins.append(Pin(server, each.tool, each.digest, name, each.definition))
        return pins


def _row(pin: Pin, at: float, owner: str) -> dict[str, Any]:
    return {
        "server": pin.server,
        "tool": pin.tool,
        "digest": pin.digest,
        "name": pin.name,
        "definition": json.dumps(pin.definition),
        "pinned_at": at,
        "owner": owner,
        "labels": json.dumps(sorted(UNTRUSTED)),
    }


def _put(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    from sqlalchemy import bindparam, delete, insert

    from .tables import mcp_pins

    former = delete(mcp_pins).where(
        mcp_pins.c.server == bindparam("of_server"),
        mcp_pins.c.tool == bindparam("of_tool"),
    )
    places = [{"of_server": row["server"], "of_tool": row["tool"]} for row in rows]
    connection.execute(former, places)
    connection.execute(insert(mcp_pins), list(rows))
