"""Servers over HTTP are spoken to as each of their revisions wants it."""

from __future__ import annotations

from functools import partial

import pytest
from agenthost.testing.daemons import Daemons

from .fake_http import META, FakeHttp
from .servers import owner_of, tools_of, until
from .test_source import asked

MCP = 'mcp_servers = ["*"]'
SECRET = "a-token-of-this-test"


def config(name: str, kind: str, url: str) -> str:
    return (
        f'[[mcp_servers]]\nname = "{name}"\nheaders = ["X-Token: {SECRET}"]\n'
        f'transport = {{ type = "{kind}", url = "{url}" }}\n'
    )


@pytest.mark.setting("mcp_servers[].headers", "mcp_servers[].transport.url")
async def test_each_revision_is_spoken_to_in_its_own_way(daemons: Daemons) -> None:
    modern, older, first = (FakeHttp(kind) for kind in ("modern", "older", "sse"))
    async with modern.running(), older.running(), first.running():
        text = config("modern", "http", modern.url) + config("older", "http", older.url)
        daemon = await daemons.start(config=text + config("first", "sse", first.url))
        await until(lambda: len(tools_of(daemon)) == 3)
        agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
        for name in ("modern", "older", "first"):
            said = await asked(agent, f"mcp_{name}_echo", city="Pörto")
            assert said.text == '{"city": "P\\u00f6rto"}'

        kinds = [each.heard[-1][2].get("method") for each in (modern, older, first)]
        assert kinds == ["tools/call"] * 3
        _, headers, message = modern.heard[-1]
        assert headers["mcp-name"] == "echo"
        assert headers["mcp-protocol-version"] == message["params"]["_meta"][META]
        assert headers["mcp-param-city"] == "=?base64?UMO2cnRv?="
        assert not any(m.get("method") == "initialize" for *_, m in modern.heard)
        _, headers, message = older.heard[-1]
        assert headers["mcp-session-id"] == "s1"
        assert headers["mcp-protocol-version"] == "2025-06-18"
        assert META not in message["params"]["_meta"]
        for each in (modern, older, first):
            assert all(h["x-token"] == SECRET for _, h, _ in each.heard)

        # News of each comes over the stream that it has.
        for each in (modern, older, first):
            each.tools = ["echo", "new"]
            each.tell("notifications/tools/list_changed")
        for name in ("modern", "older", "first"):
            owner = owner_of(daemon, name)
            await until(partial(getattr, owner, "pending"))

        answer = await daemon.http.get("/api/mcp/servers")
        assert SECRET not in answer.text
        await daemon.daemon.stop()
        assert [m for m, *_ in older.heard if m == "DELETE"] == ["DELETE"]
