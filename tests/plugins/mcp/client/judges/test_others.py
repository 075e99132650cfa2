"""A daemon before servers of others, unchanged.

``make judges`` installs them in .cache/npm and .venv.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

import pytest
from agenthost import ToolOutput
from agenthost.testing.daemons import Daemons, RunningDaemon

from ..servers import PATIENCE, owner_of, tools_of, until
from .suite import HERE, NODE, PACKAGES

EVERYTHING = PACKAGES / "@modelcontextprotocol/server-everything/dist/index.js"
MCP = 'mcp_servers = ["*"]'
SDK = {"mcp_j_add", "mcp_j_renew", "mcp_j_capital", "mcp_j_compare"}

pytestmark = pytest.mark.conformance
needs_node = pytest.mark.skipif(
    not (NODE.exists() and EVERYTHING.exists()), reason="needs `make judges`"
)
needs_sdk = pytest.mark.skipif(find_spec("mcp") is None, reason="needs mcp")


async def called(daemon: RunningDaemon, tool: str, **arguments: Any) -> ToolOutput:
    agent = await daemon.agent(tool[:40], tools=["mcp_*"], extra=MCP)
    daemon.model.calls(tool, **arguments)
    await agent.ask("go")
    (said,) = daemon.model.requests[-1].messages[-1].parts
    assert isinstance(said, ToolOutput)
    return said


def transport(kind: str, **keys: Any) -> str:
    told = ", ".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
    return f'[[mcp_servers]]\nname = "j"\ntransport = {{ type = "{kind}", {told} }}\n'


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@asynccontextmanager
async def listening(*command: object, port: int) -> AsyncIterator[None]:
    """Run a server until the block ends; it listens when the block begins."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    break
        yield
    finally:
        process.kill()
        await process.wait()


async def judged_by_everything(daemon: RunningDaemon, protocol: str) -> None:
    await until(lambda: len(tools_of(daemon)) > 5)
    assert owner_of(daemon, "j").version == protocol
    said = await called(daemon, "mcp_j_echo", message="over there")
    assert "over there" in said.text
    said = await called(daemon, "mcp_j_get_sum", a=2, b=3)
    assert "5" in said.text
    said = await called(daemon, "mcp_j_get_tiny_image")
    assert "[image: image/png" in said.text
    said = await called(daemon, "mcp_j_get_structured_content", location="Chicago")
    assert isinstance(said.structured, dict)
    long = {"duration": 1, "steps": 4}
    said = await called(daemon, "mcp_j_trigger_long_running_operation", **long)
    assert not said.is_error, said.text


@needs_node
async def test_server_everything_over_stdio(daemons: Daemons) -> None:
    config = transport("stdio", command=str(NODE), args=[str(EVERYTHING), "stdio"])
    daemon = await daemons.start(config=config, environ={"PATH": os.environ["PATH"]})
    await judged_by_everything(daemon, "2025-11-25")


@needs_node
@pytest.mark.parametrize(
    ("kind", "served", "path", "protocol"),
    [
        ("http", "streamableHttp", "/mcp", "2025-11-25"),
        ("sse", "sse", "/sse", "2025-11-25"),
    ],
)
async def test_server_everything_over_http(
    daemons: Daemons, kind: str, served: str, path: str, protocol: str
) -> None:
    port = free_port()
    async with listening(NODE, EVERYTHING, served, port=port):
        url = f"http://127.0.0.1:{port}{path}"
        daemon = await daemons.start(config=transport(kind, url=url))
        await judged_by_everything(daemon, protocol)
        # A person would see that a server is away; and that it is back.
    await until(lambda: owner_of(daemon, "j").state == "disconnected")
    # The toolbox asks for the tools off the loop.
    await until(lambda: tools_of(daemon) == set())


@needs_sdk
async def test_the_python_sdk_over_stdio(daemons: Daemons) -> None:
    script = str(HERE / "sdk_server.py")
    config = transport("stdio", command=sys.executable, args=[script, "stdio"])
    daemon = await daemons.start(config=config)
    await until(lambda: tools_of(daemon) == SDK)
    assert (await called(daemon, "mcp_j_add", a=2, b=3)).structured == {"result": 5}
    await called(daemon, "mcp_j_renew")
    await until(lambda: owner_of(daemon, "j").pending)


@needs_sdk
async def test_the_python_sdk_over_modern_http(daemons: Daemons) -> None:
    port = free_port()
    script = HERE / "sdk_server.py"
    async with listening(sys.executable, script, "streamable-http", port, port=port):
        url = f"http://127.0.0.1:{port}/mcp"
        config = f"{transport('http', url=url)}sampling = true\n"
        daemon = await daemons.start(config=config)
        await until(lambda: tools_of(daemon) == SDK)
        assert owner_of(daemon, "j").version == "2026-07-28"
        agent = await daemon.agent("asker", tools=["mcp_*"], extra=MCP)
        daemon.model.calls("mcp_j_capital", country="France")
        daemon.model.says("Paris")
        await agent.ask("go")
        (said,) = daemon.model.requests[-1].messages[-1].parts
        assert isinstance(said, ToolOutput)
        assert said.structured == {"result": "France: Paris (endTurn)"}
        daemon.model.calls("mcp_j_compare", city="Oslo")
        daemon.model.calls("weather", city="Oslo")
        await agent.ask("go")
        (said,) = daemon.model.requests[-1].messages[-1].parts
        assert isinstance(said, ToolOutput)
        called_for = "Oslo: weather {'city': 'Oslo'} (toolUse)"
        assert said.structured == {"result": called_for}
        assert (await called(daemon, "mcp_j_add", a=2, b=3)).structured == {"result": 5}
        await called(daemon, "mcp_j_renew")
        await until(lambda: owner_of(daemon, "j").pending)
