"""Servers for the tests of the client, and daemons that have them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from agenthost import ToolSource
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_mcp.client.owner import Owner
from agenthost_mcp.client.source import McpServers

SCRIPT = Path(__file__).with_name("fake_server.py")
NOBODY: Any = None
PATIENCE = 120.0
"""No run that passes waits so long for anything, on however busy a machine."""


class Fake:
    """A program that serves tools, and the file that says which."""

    def __init__(self, folder: Path, name: str, *tools: str, **more: Any) -> None:
        self.name, self.names = name, tools
        self.told = folder / f"{name}.json"
        self._more = more
        self.offers(*tools)

    def offers(self, *tools: str | dict[str, Any]) -> None:
        """Have it list other tools from now on."""
        said = [
            {"name": t, "description": f"Does {t}."} if isinstance(t, str) else t
            for t in tools
        ]
        self.told.write_text(json.dumps({"tools": said, **self._more}))

    def heard(self) -> list[dict[str, Any]]:
        """What it was told, message by message."""
        log = self.told.with_suffix(".log")
        return [json.loads(line) for line in log.read_text().splitlines()]

    def config(self, **more: Any) -> str:
        """Its table of ``[[mcp_servers]]``."""
        args = ["-S", str(SCRIPT), str(self.told)]
        python = f'command = "{sys.executable}", args = {json.dumps(args)}'
        transport = f'{{ type = "stdio", {python} }}'
        keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
        return f'[[mcp_servers]]\nname = "{self.name}"\ntransport = {transport}\n{keys}'


def source_of(daemon: RunningDaemon) -> McpServers:
    offered = daemon.daemon.registry.offered(ToolSource)
    return next(s for _, s in offered if isinstance(s, McpServers))


def owner_of(daemon: RunningDaemon, name: str) -> Owner:
    return source_of(daemon).owner(name)


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds that another task brings about."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


def tools_of(daemon: RunningDaemon) -> set[str]:
    """The tools of servers that are there for agents."""
    return {name for name in daemon.daemon.toolbox.tools if name.startswith("mcp_")}


async def start(daemons: Daemons, *servers: Fake | str, **more: Any) -> RunningDaemon:
    """Start a daemon with servers, and wait until those that answer are there."""
    config = "\n".join(s if isinstance(s, str) else s.config(**more) for s in servers)
    daemon = await daemons.start(config=config)
    names = [s.name for s in servers if isinstance(s, Fake)]
    await until(lambda: all(owner_of(daemon, n).state == "connected" for n in names))
    wanted = sum(len(owner_of(daemon, name).offered) for name in names)
    await until(lambda: len(tools_of(daemon)) >= wanted)
    return daemon


async def shown(daemon: RunningDaemon, name: str) -> dict[str, Any]:
    answer = await daemon.http.get(f"/api/mcp/servers/{name}")
    assert answer.status_code == 200, answer.text
    return cast("dict[str, Any]", answer.json())
