"""Our client, which does what a daemon does at its start, and calls each tool once."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import httpx
from agenthost_mcp.client.connecting import agree, listed
from agenthost_mcp.client.http import Http
from agenthost_mcp.client.inbox import Inbox, Pulse
from agenthost_mcp.client.owner import readable
from agenthost_mcp.client.wire import RpcError, carried, repeated

from ..servers import PATIENCE
from .suite import ONCE, Told


def arguments_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Make arguments that fit a plain schema."""
    made = {"string": "a", "number": 5, "integer": 5, "boolean": True}
    properties = schema.get("properties", {})
    return {name: made.get(said.get("type"), "a") for name, said in properties.items()}


def calls(told: Told, tools: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """What to call: what the suite says, or each tool once."""
    if wanted := told.context.get("toolCalls"):
        return [(each["name"], each.get("arguments", {})) for each in wanted]
    return [(each["name"], arguments_of(each["inputSchema"])) for each in tools]


async def speak(told: Told) -> None:
    """Connect, list, call, leave."""
    async with httpx.AsyncClient(timeout=PATIENCE, limits=ONCE) as client:
        connection = Http(told.url, (), client, Inbox(lambda: None))
        hearing = asyncio.create_task(connection.run())
        try:
            await agree(connection, {})
            said = (readable(each) for each in await listed(connection))
            tools = {each["name"]: each for each in said if each}
            for name, arguments in calls(told, list(tools.values())):
                if name not in tools:
                    continue
                extra = repeated(carried(tools[name]["inputSchema"]), arguments)
                asked = {"name": name, "arguments": arguments}
                try:
                    await connection.ask("tools/call", asked, Pulse(PATIENCE), extra)
                except RpcError as error:
                    sys.stderr.write(f"{name}: {error}\n")
        finally:
            hearing.cancel()
            await connection.close()
