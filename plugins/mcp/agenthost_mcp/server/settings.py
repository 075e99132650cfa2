"""What ``/mcp`` offers."""

from __future__ import annotations

from agenthost_toml.types import Names, Table
from pydantic import Field


class McpSection(Table):
    """``[mcp]``: what clients of `/mcp` may do."""

    tools: Names = Field(
        (),
        description="Patterns of tools that they may call besides those that only "
        "read.",
    )
    network: Names = Field(
        (), description="Hosts that the tools which they call may reach."
    )
