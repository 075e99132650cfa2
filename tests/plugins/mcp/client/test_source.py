"""Tools of MCP servers: named by a table, called, taken away with a reason."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agenthost import ToolOutput
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon

from .servers import PATIENCE, Fake, owner_of, shown, source_of, start, tools_of, until

MCP = 'mcp_servers = ["*"]'
ENVIRON = {"PATH": "/usr/bin:/bin", "GIVEN": "yes", "SECRET": "no"}


def output(daemon: RunningDaemon) -> ToolOutput:
    """What the model read last of a tool."""
    (said,) = daemon.model.requests[-1].messages[-1].parts
    assert isinstance(said, ToolOutput)
    return said


async def asked(agent: RunningAgent, tool: str, **arguments: Any) -> ToolOutput:
    """Have an agent's model call a tool."""
    agent.host.model.calls(tool, **arguments)
    await agent.ask("go")
    return output(agent.host)


def shown_tools(daemon: RunningDaemon) -> set[str]:
    names = {each.name for each in daemon.model.requests[-1].tools}
    return {name for name in names if name.startswith("mcp_")}


@pytest.mark.manifest("mcp_servers")
@pytest.mark.setting(
    "mcp_servers[].name",
    "mcp_servers[].env",
    "mcp_servers[].transport.type",
    "mcp_servers[].transport.command",
    "mcp_servers[].transport.args",
)
async def test_the_tools_of_a_server_are_called_through_a_table(
    daemons: Daemons, tmp_path: Path
) -> None:
    names = ("everything", "fail", "refuse", "environment", "Get-Sum", "ask_back")
    fake = Fake(tmp_path, "my-server", *names, "renew", page=2)
    config = fake.config(env=["GIVEN"])
    daemon = await daemons.start(config=config, environ=ENVIRON)
    await until(lambda: len(tools_of(daemon)) == 7)
    assert "mcp_my_server_get_sum" in tools_of(daemon)
    agent = await daemon.agent("all", tools=["mcp_*"], extra=MCP)

    said = await asked(agent, "mcp_my_server_get_sum", a=1)
    assert json.loads(said.text) == {"a": 1}
    (call,) = (m for m in fake.heard() if m["method"] == "tools/call")
    assert call["params"]["name"] == "Get-Sum"

    said = await asked(agent, "mcp_my_server_everything")
    assert "words" in said.text
    assert "[resource file:///a.txt]\ninside" in said.text
    assert "'hologram'" in said.text
    assert said.structured == {"n": 1}
    for note in ("[image: image/png,", "[audio: audio/wav,", "[file: b.bin, "):
        assert note in said.text

    said = await asked(agent, "mcp_my_server_fail")
    assert (said.is_error, said.text) == (True, "went wrong")
    said = await asked(agent, "mcp_my_server_refuse")
    assert (said.is_error, said.text) == (True, "the server refuses: not today")

    seen = json.loads((await asked(agent, "mcp_my_server_environment")).text)
    assert seen["GIVEN"] == "yes"
    assert not seen.keys() & {"SECRET", "AGENTHOST_LISTEN_ADDR"}

    await asked(agent, "mcp_my_server_ask_back")
    # The refusal goes out beside the tool's answer.
    await until(lambda: any(m.get("id") == "q" for m in fake.heard()))
    (reply,) = (m for m in fake.heard() if m.get("id") == "q")
    assert reply["error"]["code"] == -32601

    # An agent gets the tools of no server that its manifest does not name.
    other = await daemon.agent("other", tools=["mcp_*"])
    said = await asked(other, "mcp_my_server_fail")
    assert shown_tools(daemon) == set()
    assert said.is_error
    assert "no right" in said.text
    third = await daemon.agent("third", tools=["*_fail"], extra='mcp_servers = ["my*"]')
    await third.ask("hello")
    assert shown_tools(daemon) == {"mcp_my_server_fail"}

    # What it lists no more is gone, with a reason; what it lists anew waits.
    fake.offers("renew", "new")
    await asked(agent, "mcp_my_server_renew")
    await until(lambda: tools_of(daemon) == {"mcp_my_server_renew"})
    said = await asked(agent, "mcp_my_server_fail")
    assert "no longer offers it" in said.text
    server = await shown(daemon, "my-server")
    assert [(p["tool"], p["change"]) for p in server["pending"]] == [("new", "new")]
    assert server["connected"] is True
    assert server["tools"][0]["name"] == "mcp_my_server_renew"
    listed = (await daemon.http.get("/api/mcp/servers")).json()
    assert listed == {"servers": [server], "total": 1}
    assert (await daemon.http.get("/api/config")).json()["mcp_servers"] == 1


async def test_a_server_that_dies_takes_its_tools_and_nothing_else(
    daemons: Daemons, tmp_path: Path
) -> None:
    fragile, sound = Fake(tmp_path, "fragile", "crash"), Fake(tmp_path, "sound", "echo")
    daemon = await start(daemons, fragile, sound)
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    owner = owner_of(daemon, "fragile")
    fragile.told.rename(tmp_path / "away.json")
    said = await asked(agent, "mcp_fragile_crash")
    assert said.is_error
    assert "may have run" in said.text
    await until(lambda: tools_of(daemon) == {"mcp_sound_echo"})
    said = await asked(agent, "mcp_fragile_crash")
    assert "the MCP server fragile is disconnected: the program ended" in said.text
    assert (await asked(agent, "mcp_sound_echo", a=2)).text == '{"a": 2}'
    (tmp_path / "away.json").rename(fragile.told)
    await daemon.http.post("/api/mcp/servers/fragile/reconnect")
    await until(lambda: owner.state == "connected")
    await until(lambda: "mcp_fragile_crash" in tools_of(daemon))


async def test_what_a_program_prints_is_logged_and_not_all_of_it(
    daemons: Daemons, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "agenthost_mcp.client.stdio")
    fake = Fake(tmp_path, "s", "chatter", "crash")
    daemon = await start(daemons, fake)
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    assert (await asked(agent, "mcp_s_chatter")).text == "said"
    # Its last word comes behind all others.
    assert "ended with code 3" in (await asked(agent, "mcp_s_crash")).text
    said = [r.message for r in caplog.records if "mcp server s: line" in r.message]
    assert 0 < len(said) <= 30


@pytest.mark.conformance
@pytest.mark.setting("mcp_servers[].timeout_secs", "mcp_servers[].max_call_secs")
async def test_progress_keeps_a_call_alive_and_silence_ends_it(
    daemons: Daemons, tmp_path: Path
) -> None:
    fake, other = Fake(tmp_path, "s", "slow", "hang"), Fake(tmp_path, "o", "slow")
    config = fake.config(timeout_secs=1) + other.config(max_call_secs=0.5)
    daemon = await daemons.start(config=config)
    await until(lambda: len(tools_of(daemon)) == 3)
    agent = await daemon.agent(tools=["mcp_*"], extra=MCP)
    assert not (await asked(agent, "mcp_s_slow")).is_error
    said = await asked(agent, "mcp_s_hang")
    assert said.is_error
    assert "no sign of life for 1 s" in said.text
    assert "no end after 0.5 s" in (await asked(agent, "mcp_o_slow")).text

    def told() -> list[dict[str, Any]]:
        return [m for m in fake.heard() if m["method"] == "notifications/cancelled"]

    await until(told)
    (call,) = (m for m in fake.heard() if m.get("params", {}).get("name") == "hang")
    assert told()[0]["params"]["requestId"] == call["id"]


async def test_a_start_waits_for_no_server(daemons: Daemons) -> None:
    config = (
        '[[mcp_servers]]\nname = "a"\n'
        'transport = { type = "stdio", command = "sleep", args = ["99"] }\n'
        '[[mcp_servers]]\nname = "b"\n'
        'transport = { type = "stdio", command = "not-a-program" }\n'
        '[[mcp_servers]]\nname = "c"\n'
        'transport = { type = "http", url = "http://127.0.0.1:9/mcp" }\n'
    )
    async with asyncio.timeout(PATIENCE):
        daemon = await daemons.start(config=config, environ=ENVIRON)
    await until(lambda: owner_of(daemon, "b").reason and owner_of(daemon, "c").reason)
    servers = (await daemon.http.get("/api/mcp/servers")).json()["servers"]
    told = {each["name"]: (each["state"], each["reason"]) for each in servers}
    assert told["a"] == ("connecting", "")
    assert told["b"] == (
        "disconnected",
        "there is no program 'not-a-program' in its PATH",
    )
    assert told["c"][0] == "disconnected"
    assert (await daemon.http.get("/api/mcp/servers/x")).status_code == 404
    assert list(source_of(daemon).snapshot()) == []
