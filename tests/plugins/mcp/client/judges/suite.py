"""The official suite before clients: one process of node for all that it judges.

It starts a program for each scenario, which is a relay: clients run in the test.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from ..servers import PATIENCE

HERE = Path(__file__).parent
PACKAGES = HERE.parents[4] / ".cache/npm/node_modules"
NODE = PACKAGES / "node/bin/node"
SUITE = PACKAGES / "@modelcontextprotocol/conformance/dist/index.js"
ONCE = httpx.Limits(max_keepalive_connections=0)
"""A server of node ends what was idle for five seconds, perhaps under a request."""


@dataclass(frozen=True)
class Told:
    """What the suite tells the client of a scenario."""

    scenario: str
    url: str
    context: dict[str, Any] = field(default_factory=dict)


Client = Callable[[Told], Awaitable[None]]


async def judged(client: Client, *asked: str) -> str:
    """Have the suite judge a client, and give what it says of it.

    Args:
        client: Does what a scenario wants; where it raises, its program has failed.
        asked: The arguments that say which scenarios.
    """
    async with relayed(client) as command:
        process = await asyncio.create_subprocess_exec(
            *(str(NODE), str(SUITE), "client", "--command", command, *asked),
            *("--timeout", str(int(PATIENCE * 1000))),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(2 * PATIENCE):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return said.decode()


@asynccontextmanager
async def relayed(client: Client) -> AsyncIterator[str]:
    """Give the command that has a client do what a scenario wants."""

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        told = Told(**json.loads(await reader.readline()))
        try:
            await client(told)
        except Exception as error:  # noqa: BLE001 - a client may fail as it wants
            sys.stderr.write(f"{told.scenario}: {error!r}\n")
            writer.write(b"1")
        else:
            writer.write(b"0")
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"{sys.executable} -I -S {HERE / 'relay.py'} {port}"
