"""What the vault keeps of a login: tokens, and whom they may be shown to."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace

from agenthost import Vault
from agenthost_values.value_class import value_class

from ..settings import McpServer


@value_class
class Client:
    """Who the daemon is to an authorization server, and how it proves that there."""

    id: str
    secret: str = ""
    method: str = "none"


@value_class
class Grant:
    """Tokens of one server, bound to it and to the issuer that has given them.

    ``url`` is the server's address as it was configured, ``redirect`` where the browser
    was sent back to; ``ends`` is 0 where it was not said.
    """

    url: str
    resource: str
    issuer: str
    token_endpoint: str
    redirect: str
    client: str
    secret: str
    method: str
    access: str
    refresh: str
    scope: str
    ends: float

    @property
    def bearer(self) -> Client:
        """Who asks for new tokens."""
        return Client(self.client, self.secret, self.method)

    def emptied(self) -> Grant:
        """The same, after its tokens turned out to be worth nothing."""
        return replace(self, access="", refresh="", ends=0.0)


def name_of(server: McpServer) -> str:
    """What the vault calls it."""
    return f"mcp/{server.name}"


def kept(vault: Vault, server: McpServer) -> Grant | None:
    """Read the grant of a server; None where it is of another address or issuer."""
    held = vault.get(name_of(server))
    if held is None:
        return None
    try:
        said = json.loads(held.reveal())
        grant = Grant(**{field.name: said[field.name] for field in fields(Grant)})
    except (ValueError, TypeError, KeyError):
        return None
    wanted = server.oauth
    if grant.url != server.transport.url:
        return None
    if wanted is None:
        return grant
    same = wanted.issuer in {None, grant.issuer}
    return grant if same and wanted.client_id in {"", grant.client} else None


async def keep(vault: Vault, server: McpServer, grant: Grant | None) -> None:
    """Keep a grant, or forget it.

    Raises:
        AgentHostError: The vault takes nothing.
    """
    told = None if grant is None else json.dumps(asdict(grant))
    await vault.change({name_of(server): told})
