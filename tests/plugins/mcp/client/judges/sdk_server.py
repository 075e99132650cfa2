"""A server on the official Python SDK: its arguments are the transport and a port."""

from __future__ import annotations

import sys
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("judge")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def renew(ctx: Context[Any, Any]) -> str:
    """Offer another tool from now on."""

    def later() -> str:
        """Be there later."""
        return "here"

    server.add_tool(later)
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "renewed"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
