"""Roots: a server hears of the folders that the operator wrote, and of no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agenthost import ToolOutput
from agenthost.testing.daemons import Daemons
from agenthost_mcp.client.asking import answers
from agenthost_mcp.client.settings import McpServer
from pydantic import ValidationError

from .servers import Fake, start

MCP = 'mcp_servers = ["*"]'
TOLD = {
    "roots": [
        {"uri": "file:///srv/my%20notes", "name": "my notes"},
        {"uri": "file:///", "name": "/"},
    ]
}
ABLE = "io.modelcontextprotocol/clientCapabilities"


async def asked(daemons: Daemons, fake: Fake, **keys: Any) -> ToolOutput:
    daemon = await start(daemons, fake, **keys)
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    daemon.model.calls("mcp_s_where")
    await agent.ask("go")
    (output,) = daemon.model.requests[-1].messages[-1].parts
    assert isinstance(output, ToolOutput)
    return output


def offered(fake: Fake, modern: bool) -> dict[str, Any]:
    """What the server was told that it may ask for."""
    method = "tools/call" if modern else "initialize"
    first = next(m for m in fake.heard() if m.get("method") == method)["params"]
    return dict(first["_meta"][ABLE] if modern else first["capabilities"])


@pytest.mark.setting("mcp_servers[].roots")
@pytest.mark.parametrize("modern", [True, False])
async def test_a_server_hears_of_the_folders_that_were_written(
    daemons: Daemons, tmp_path: Path, modern: bool
) -> None:
    fake = Fake(tmp_path, "s", "where", modern=modern)
    output = await asked(daemons, fake, roots=["/srv/my notes", "/"])
    assert not output.is_error
    assert json.loads(output.text) == TOLD
    news: dict[str, Any] = {} if modern else {"listChanged": True}
    assert offered(fake, modern) == {"roots": news}


@pytest.mark.parametrize("modern", [True, False])
async def test_without_the_key_a_server_cannot_ask(
    daemons: Daemons, tmp_path: Path, modern: bool
) -> None:
    fake = Fake(tmp_path, "s", "where", modern=modern)
    output = await asked(daemons, fake)
    assert "not offered" in output.text
    assert "file:" not in output.text
    assert offered(fake, modern) == {}


def server(**keys: Any) -> McpServer:
    transport = {"type": "stdio", "command": "x"}
    return McpServer.model_validate({"name": "s", "transport": transport, **keys})


@pytest.mark.parametrize("path", ["notes", "~/notes", "", "file:///srv", "/a\0b"])
def test_a_root_is_the_whole_path_of_a_folder(path: str) -> None:
    with pytest.raises(ValidationError, match="whole path of a folder"):
        server(roots=[path])


async def test_roots_do_not_let_a_server_ask_a_person() -> None:
    person = {"method": "elicitation/create", "params": {"message": "Who?"}}
    both = {"r": {"method": "roots/list"}, "p": person}
    nobody: Any = None
    assert await answers(server(roots=["/srv"]), "t", nobody, both) is None
    assert await answers(server(roots=["/srv"]), "t", nobody, "nothing") is None
