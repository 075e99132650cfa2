"""What the configuration says of servers is done, also when it was read anew."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from agenthost import AgentHostError, Host

from .settings import McpServer, McpServers

if TYPE_CHECKING:
    from .source import McpServers as Source

log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0


async def follow(host: Host, source: Source, done: McpServers) -> None:
    """Have the servers be as configured, until this is cancelled.

    Args:
        host: The daemon.
        source: The servers.
        done: What of the configuration they follow already.
    """
    while True:
        # By no clock that a test may hurry: it would do nothing else.
        await asyncio.sleep(LOOK_SECONDS)
        said = host.settings(McpServers)
        if said is done:
            continue
        try:
            await source.apply(said.root)
            done = said
        except AgentHostError as error:
            log.warning("mcp servers: not as configured yet: %s", error.message)
        except Exception:
            log.exception("mcp servers: not as configured yet")


def same_but_roots(one: McpServer, other: McpServer) -> bool:
    """Tell whether a connection to one serves the other, once it hears of the roots."""
    # That there are roots is said when a connection begins.
    alike = bool(one.roots) == bool(other.roots)
    return alike and _said(one) == _said(other)


def _said(server: McpServer) -> tuple[object, ...]:
    """All that is said of a server but its roots; secrets have no equality."""
    secret = server.oauth.client_secret if server.oauth else None
    return (
        server.model_dump(mode="json", exclude={"roots"}),
        [each.reveal() for each in server.headers],
        secret.reveal() if secret else "",
    )
