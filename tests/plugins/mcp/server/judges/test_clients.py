"""Official clients, unchanged: the Python SDK's, and the Inspector's command line.

``make judges`` installs both.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from agenthost.testing.daemons import Daemons
from agenthost.testing.processes import DaemonProcess

from ...authority import Authority
from ...fixture import Plugin

pytest.importorskip("mcp.client", reason="needs the extra judges")

PACKAGES = Path(__file__).parents[5] / ".cache/npm/node_modules"
INSPECTOR = PACKAGES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
NODE = PACKAGES / "node/bin/node"
MODES = [("auto", "2026-07-28"), ("legacy", "2025-11-25")]

pytestmark = pytest.mark.conformance


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(("mode", "version"), MODES)
async def test_the_python_client_lists_calls_and_reads(
    daemons: Daemons, mode: Any, version: str
) -> None:
    from mcp.client import Client

    daemon = await daemons.start(plugins=[Plugin()])
    await daemon.agent("ada")
    async with Client(f"{daemon.url}/mcp", mode=mode) as client:
        assert client.protocol_version == version
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"calculate", "test_simple_text"} <= tools
        sum_of = await client.call_tool("calculate", {"expression": "6*7"})
        assert [block.text for block in sum_of.content] == ["42"]  # type: ignore[union-attr]  # reason: it is text
        wrong = await client.call_tool("test_error_handling", {})
        assert wrong.is_error
        listed = {str(each.uri) for each in (await client.list_resources()).resources}
        assert {"agent://ada", "test://static-text"} <= listed
        read = await client.read_resource("agent://ada")
        assert '"name": "ada"' in read.contents[0].text  # type: ignore[union-attr]  # reason: it is text
        prompts = {each.name for each in (await client.list_prompts()).prompts}
        assert "test_simple_prompt" in prompts
        filled = await client.get_prompt("test_simple_prompt")
        assert "simple prompt" in filled.messages[0].content.text  # type: ignore[union-attr]  # reason: it is text


class Kept:
    """Where the Python client keeps what it was given."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


@pytest.mark.parametrize(("mode", "version"), MODES)
async def test_the_python_client_logs_in_by_itself(
    daemons: Daemons, authority: Authority, mode: Any, version: str
) -> None:
    import httpx2
    from mcp.client import Client
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.auth import OAuthClientMetadata

    url = f"http://127.0.0.1:{free_port()}/mcp"
    authority.resources = {url}
    opened: list[str] = []

    async def browse(place: str) -> None:
        async with httpx.AsyncClient(trust_env=False) as browser:
            answer = await browser.get(place)
        opened.append(answer.headers["location"])

    async def come_back() -> AuthorizationCodeResult:
        query = dict(parse_qsl(urlsplit(opened[-1]).query))
        return AuthorizationCodeResult(**query)

    await daemons.start(
        config=f'[mcp]\nissuer = "{authority.issuer}"\nresource = "{url}"\n',
        environ={
            "AGENTHOST_LISTEN_ADDR": url.split("/")[2],
            "AGENTHOST_API_KEY": "a-key-of-this-test-0123456",
        },
    )
    redirect: Any = ["http://127.0.0.1:9/callback"]
    about = OAuthClientMetadata(redirect_uris=redirect, client_name="judge")
    auth = OAuthClientProvider(url, about, Kept(), browse, come_back)
    async with httpx2.AsyncClient(auth=auth, trust_env=False, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode) as client:
            assert client.protocol_version == version
            sum_of = await client.call_tool("calculate", {"expression": "6*7"})
            assert [block.text for block in sum_of.content] == ["42"]  # type: ignore[union-attr]  # reason: it is text
    (form,) = authority.forms
    assert form["resource"] == url
    assert len(opened) == 1


@pytest.mark.parametrize(("mode", "version"), MODES)
async def test_the_python_client_speaks_over_a_pipe(
    tmp_path: Path, mode: Any, version: str
) -> None:
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    home = tmp_path / "home"
    home.mkdir()
    with DaemonProcess(home):
        start = StdioServerParameters(
            command=str(Path(sys.executable).with_name("agenthost")),
            args=["mcp"],
            env={"AGENTHOST_HOME": str(home)},
        )
        async with Client(stdio_client(start), mode=mode) as client:
            assert client.protocol_version == version
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert "calculate" in tools
            call = client.call_tool
            sums = [call("calculate", {"expression": f"{n}+1"}) for n in range(8)]
            found = await asyncio.gather(*sums)
            said = [each.content[0].text for each in found]  # type: ignore[union-attr]  # reason: it is text
            assert said == [str(n + 1) for n in range(8)]


@pytest.mark.skipif(not INSPECTOR.exists(), reason="needs `make judges`")
async def test_the_inspector_lists_and_calls(daemons: Daemons) -> None:
    daemon = await daemons.start()
    call = ("--tool-name", "calculate", "--tool-arg", "expression=6*7")
    listed = await inspected(daemon.url, "tools/list")
    assert "calculate" in {tool["name"] for tool in listed["tools"]}
    called = await inspected(daemon.url, "tools/call", *call)
    assert called["content"] == [{"type": "text", "text": "42"}]


async def inspected(url: str, method: str, *more: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(INSPECTOR), "--cli", f"{url}/mcp",
        "--transport", "http", "--method", method, *more,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(120):
            said, wrong = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, wrong.decode()
    return json.loads(said)
