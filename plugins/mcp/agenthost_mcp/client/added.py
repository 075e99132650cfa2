"""Servers that were added while the daemon ran: rows beside the configuration."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from agenthost import UNTRUSTED, Context, Host, telling
from pydantic import ValidationError

from .events import McpServerAdded, McpServerRemoved
from .settings import McpServer

if TYPE_CHECKING:
    from sqlalchemy import Connection

log = logging.getLogger(__name__)

ALL = "SELECT name, definition FROM mcp_servers ORDER BY added_at, name"


async def added_before(host: Host) -> list[McpServer]:
    """Read them; one that this release does not understand is left alone."""
    found = []
    for row in await host.store.read(ALL):
        try:
            server = McpServer.model_validate_json(row["definition"])
        except ValidationError as error:
            name, count = row["name"], error.error_count()
            log.warning("mcp server %s cannot be read: %d problems", name, count)
            continue
        # A row is no configuration: whoever has it written must get no command run.
        if server.transport.url is not None:
            found.append(server)
    return found


async def keep(host: Host, server: McpServer, context: Context) -> None:
    """Keep one; it is on disk then, and in the trail."""
    now, url = host.clock.time(), server.transport.url or ""
    row = {
        "name": server.name,
        "definition": server.model_dump_json(exclude_defaults=True),
        "added_at": now,
        "owner": context.owner,
        "labels": json.dumps(sorted(UNTRUSTED)),
    }
    events, caused = host.events, context.caused
    with telling(events, McpServerAdded, server.name, now, url, **caused) as told:
        await host.store.write(partial(_put, row=row), *([told] if told else []))


async def forget(host: Host, server: McpServer, context: Context) -> None:
    """Forget one; what was agreed to of it stays, should it come back."""
    now, url = host.clock.time(), server.transport.url or ""
    events, caused = host.events, context.caused
    with telling(events, McpServerRemoved, server.name, now, url, **caused) as told:
        write = partial(_delete, name=server.name)
        await host.store.write(write, *([told] if told else []))


def _put(connection: Connection, row: dict[str, Any]) -> None:
    from sqlalchemy import insert

    from .tables import mcp_servers

    connection.execute(insert(mcp_servers).values(row))


def _delete(connection: Connection, name: str) -> None:
    from sqlalchemy import delete

    from .tables import mcp_servers

    connection.execute(delete(mcp_servers).where(mcp_servers.c.name == name))
