"""What the plugin reads of an agent's manifest."""

from __future__ import annotations

from fnmatch import fnmatchcase

from agenthost import Manifest, ManifestTable
from agenthost_toml.types import Names, Table
from pydantic import Field


class Servers(Table):
    """Which MCP servers an agent may use."""

    mcp_servers: Names = Field(
        (),
        description="MCP servers whose tools it may get, by name or `*`; it needs them "
        "in `capabilities.tools` too.",
    )


SERVERS = ManifestTable("", Servers)


def granted(manifest: Manifest, server: str) -> bool:
    """Tell whether a manifest names a server, or a pattern that it fits."""
    return any(fnmatchcase(server, each) for each in SERVERS.of(manifest).mcp_servers)
