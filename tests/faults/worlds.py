"""Where the daemon of a conversation lives: in this process, or in one to be killed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol
from unittest.mock import patch

import httpx
from agenthost.testing.daemons import running_daemon
from agenthost.testing.processes import DaemonProcess

from .waiting import PATIENCE

CHOICE = {
    "AGENTHOST_DEFAULT_MODEL__PROVIDER": "oracle",
    "AGENTHOST_DEFAULT_MODEL__MODEL": "oracle-1",
}
SHUTDOWN_PATIENCE = 0.05


class World(Protocol):
    """A daemon on a home that outlives it."""

    kills: bool
    http: httpx.AsyncClient

    async def start(self) -> None:
        """Start it on its home."""
        ...

    async def end(self) -> None:
        """End it as this world does: stopped in order, or killed."""
        ...


class Inside:
    """In this process, stopped in order: quick, and its parts can be looked at."""

    kills = False

    def __init__(self, home: Path, config: str) -> None:
        self._home = home
        self._config = config
        self._stack = AsyncExitStack()
        self.http = client("")

    async def start(self) -> None:
        """Start it on its home."""
        await self.http.aclose()
        running = running_daemon(
            self._home, config=self._config, environ=CHOICE, plugins=(), clock=None
        )
        host = await self._stack.enter_async_context(running)
        self.http = client(host.url)

    async def end(self) -> None:
        """Stop it in order, with little patience for turns that stand still."""
        with patch("agenthost.daemon.TURN_PATIENCE", SHUTDOWN_PATIENCE):
            await self._stack.aclose()


class Outside:
    """In a process of its own, ended by kill -9."""

    kills = True

    def __init__(self, home: Path, config: str) -> None:
        home.mkdir(parents=True)
        (home / "config.toml").write_text(config, encoding="utf-8")
        self._home = home
        self.process: DaemonProcess | None = None
        self.http = client("")

    async def start(self) -> None:
        """Start it on its home, off the loop that the model lives on."""
        await self.http.aclose()
        self.process = await asyncio.to_thread(DaemonProcess, self._home, CHOICE)
        self.http = client(str(self.process.http.base_url))

    async def end(self) -> None:
        """Kill it."""
        if self.process is not None:
            with self.process as process:
                process.kill()


def client(base_url: str) -> httpx.AsyncClient:
    """Make a client without a bound on its connections."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=4)
    return httpx.AsyncClient(
        base_url=base_url,
        timeout=6 * PATIENCE,
        limits=limits,
        trust_env=False,
        verify=False,
    )
