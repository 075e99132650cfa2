"""Our client, as a program: what the conformance suite drives.

Its last argument is the address of the suite's server. It does what a daemon does at
its start, and calls each tool once; ``MCP_CONFORMANCE_CONTEXT`` may say otherwise.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import httpx
from agenthost_mcp.client.connecting import agree, listed
from agenthost_mcp.client.http import Http
from agenthost_mcp.client.inbox import Inbox, Pulse
from agenthost_mcp.client.owner import readable
from agenthost_mcp.client.wire import RpcError, carried, repeated


def arguments_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Make arguments that fit a plain schema."""
    made = {"string": "a", "number": 5, "integer": 5, "boolean": True}
    properties = schema.get("properties", {})
    return {name: made.get(said.get("type"), "a") for name, said in properties.items()}


def calls(tools: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """What to call: what the suite says, or each tool once."""
    told = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    if wanted := told.get("toolCalls"):
        return [(each["name"], each.get("arguments", {})) for each in wanted]
    return [(each["name"], arguments_of(each["inputSchema"])) for each in tools]


async def main(url: str) -> None:
    """Connect, list, call, leave."""
    async with httpx.AsyncClient(timeout=10) as client:
        connection = Http(url, (), client, Inbox(lambda: None))
        hearing = asyncio.create_task(connection.run())
        try:
            await agree(connection, {})
            said = (readable(each) for each in await listed(connection))
            tools = {each["name"]: each for each in said if each}
            for name, arguments in calls(list(tools.values())):
                if name not in tools:
                    continue
                extra = repeated(carried(tools[name]["inputSchema"]), arguments)
                asked = {"name": name, "arguments": arguments}
                try:
                    await connection.ask("tools/call", asked, Pulse(10), extra)
                except RpcError as error:
                    sys.stderr.write(f"{name}: {error}\n")
        finally:
            hearing.cancel()
            await connection.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
