"""Tools called over ``/mcp``: what they may do, for whom, and what is told of them."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.routes import keeper, with_scopes

from ..fixture import Plugin
from .conftest import Speaker

KEY = "a-key-of-this-test-0123456"


async def made(speaker: Speaker, name: str, *scopes: str) -> Speaker:
    answer = await speaker.daemon.http.post(
        "/api/keys", json={"name": name, "scopes": scopes}, headers=speaker.headers
    )
    assert answer.status_code == 201, answer.text
    bearer = {"authorization": f"Bearer {answer.json()['key']}"}
    return Speaker(speaker.daemon, bearer)


async def called(speaker: Speaker, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await speaker.bare("tools/call", name=tool, arguments=arguments)
    result: dict[str, Any] = answer["result"]
    return result


async def locked(daemons: Daemons, config: str) -> Speaker:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n{config}')
    return Speaker(daemon, {"authorization": f"Bearer {KEY}"})


@pytest.mark.setting("mcp.tools")
async def test_only_reading_is_allowed_unless_more_is_said(
    daemons: Daemons,
) -> None:
    closed = Speaker(await daemons.start(), {})
    refused = await called(closed, "kv_set", key="a", value="1")
    assert refused["isError"] is True
    assert "no right" in refused["content"][0]["text"]
    (row,) = await audited(closed.daemon, "tool_denied")
    assert row["actor"] == "loopback:loopback"
    opened = Speaker(await daemons.start(config='[mcp]\ntools = ["kv_*"]\n'), {})
    names = {t["name"] for t in (await opened.bare("tools/list"))["result"]["tools"]}
    assert "kv_set" in names
    assert "file_write" not in names
    assert (await called(opened, "kv_set", key="a", value="1"))["isError"] is False
    kinds = [row["event_type"] for row in await audited(opened.daemon, "tool_")]
    assert sorted(kinds) == ["tool_called", "tool_ended"]


async def audited(daemon: RunningDaemon, kind: str) -> list[dict[str, Any]]:
    answer = await daemon.http.get("/api/audit/recent")
    rows: list[dict[str, Any]] = answer.json()["entries"]
    return [row for row in rows if row["event_type"].startswith(kind)]


@pytest.mark.setting("mcp.network")
@pytest.mark.conformance
async def test_what_tools_may_reach_is_said_for_all_clients(daemons: Daemons) -> None:
    config = '[mcp]\ntools = ["web_fetch"]\nnetwork = ["example.org"]\n'
    speaker = Speaker(await daemons.start(config=config), {})
    shut = await called(speaker, "web_fetch", url="http://example.com/")
    assert "no right" in shut["content"][0]["text"]
    there = await called(speaker, "web_fetch", url="http://example.org:1/")
    assert there["isError"] is True
    assert "no right" not in there["content"][0]["text"]


async def test_everyone_has_a_workspace_and_a_memory_of_their_own(
    daemons: Daemons,
) -> None:
    tools = '[mcp]\ntools = ["file_write", "kv_set"]\n'
    owner = await locked(daemons, tools)
    other = await made(owner, "other", "chat")
    wrote = await called(owner, "file_write", path="a.txt", content="mine")
    assert wrote["isError"] is False, wrote
    assert (await called(owner, "kv_set", key="k", value="v"))["isError"] is False
    read = await called(owner, "file_read", path="a.txt")
    assert "mine" in read["content"][0]["text"]
    assert (await called(other, "file_read", path="a.txt"))["isError"] is True
    out = await called(owner, "file_read", path="../../config.toml")
    assert out["isError"] is True
    assert (await called(owner, "kv_get", key="k"))["content"][0]["text"] == "v"
    assert (await called(other, "kv_get", key="k"))["isError"] is True


async def test_a_key_needs_the_right_to_use_it(daemons: Daemons) -> None:
    owner = await locked(daemons, "")
    reader, talker = await made(owner, "r", "read"), await made(owner, "c", "chat")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    refused = await reader.post(message)
    assert refused.status_code == 403
    assert refused.json()["error"]["data"]["code"] == "denied"
    assert (await talker.post(message)).status_code == 200
    stranger = await Speaker(owner.daemon, {}).post(message)
    assert stranger.status_code == 401


async def test_a_call_costs_thirty_units(daemons: Daemons) -> None:
    limit = "[rate_limit]\nunits_per_minute = 60\nburst = 60\n"
    speaker = Speaker(await daemons.start(config=limit), {})
    call = {"name": "calculate", "arguments": {"expression": "1+1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    codes = [(await speaker.post(message)).status_code for _ in range(3)]
    assert codes == [200, 200, 429]


async def test_agents_are_resources_and_prompts(daemon: RunningDaemon) -> None:
    speaker = Speaker(daemon, {})
    await daemon.agent("ada", extra='description = "Counts"')
    extra = '[model]\nsystem_prompt = "You are Bob."'
    await daemon.agent("bob", extra=extra)
    listed = (await speaker.bare("resources/list"))["result"]["resources"]
    agents = [row["uri"] for row in listed if row["uri"].startswith("agent:")]
    assert agents == ["agent://ada", "agent://bob"]
    shown = (await speaker.bare("resources/read", uri="agent://ada"))["result"]
    assert '"description": "Counts"' in shown["contents"][0]["text"]
    missing = (await speaker.bare("resources/read", uri="agent://zoe"))["error"]
    assert (missing["code"], missing["data"]) == (-32602, {"uri": "agent://zoe"})
    prompts = (await speaker.bare("prompts/list"))["result"]["prompts"]
    named = [each["name"] for each in prompts]
    assert [name for name in named if name.startswith("agent.")] == ["agent.bob"]
    given = {"name": "agent.bob", "arguments": {"task": "Add 1 and 1."}}
    filled = (await speaker.bare("prompts/get", **given))["result"]["messages"]
    assert filled[0]["content"]["text"] == "You are Bob.\n\nAdd 1 and 1."
    reference = {"type": "ref/resource", "uri": "agent://{name}"}
    asked = {"ref": reference, "argument": {"name": "name", "value": "a"}}
    completed = (await speaker.bare("completion/complete", **asked))["result"]
    assert completed["completion"]["values"] == ["ada"]


async def test_templates_are_resources_and_prompts(daemon: RunningDaemon) -> None:
    speaker = Speaker(daemon, {})
    folder = daemon.daemon.home / "agents" / "clerk"
    folder.mkdir(parents=True)
    told = (
        'name = "clerk"\ndescription = "Files"\n[model]\nsystem_prompt = "File it."\n'
    )
    (folder / "agent.toml").write_text(told)
    damaged = daemon.daemon.home / "agents" / "damaged"
    damaged.mkdir()
    (damaged / "agent.toml").write_text("name = ")
    listed = (await speaker.bare("resources/list"))["result"]["resources"]
    found = {row["uri"]: row for row in listed}
    assert {"template://clerk", "template://coder"} <= set(found)
    assert "template://damaged" not in found
    assert found["template://clerk"]["description"] == "Files"
    read = (await speaker.bare("resources/read", uri="template://clerk"))["result"]
    assert read["contents"][0]["text"] == told
    assert read["contents"][0]["mimeType"] == "application/toml"
    given = {"name": "template.clerk", "arguments": {"task": "Three letters."}}
    filled = (await speaker.bare("prompts/get", **given))["result"]["messages"]
    assert filled[0]["content"]["text"] == "File it.\n\nThree letters."
    reference = {"type": "ref/resource", "uri": "template://{name}"}
    asked = {"ref": reference, "argument": {"name": "name", "value": "cle"}}
    completed = (await speaker.bare("completion/complete", **asked))["result"]
    assert completed["completion"]["values"] == ["clerk"]
    (folder / "agent.toml").unlink()
    gone = await speaker.bare("resources/read", uri="template://clerk")
    assert gone["error"]["code"] == -32602


@pytest.mark.conformance
async def test_a_key_of_its_own_allowance_pays_for_its_calls(daemons: Daemons) -> None:
    owner = await locked(daemons, "")
    body = {"name": "thrifty", "scopes": ["chat"], "units_per_minute": 60}
    answer = await owner.daemon.http.post("/api/keys", json=body, headers=owner.headers)
    key = {"authorization": f"Bearer {answer.json()['key']}"}
    call = {"name": "calculate", "arguments": {"expression": "1+1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    thrifty = Speaker(owner.daemon, key)
    codes = [(await thrifty.post(message)).status_code for _ in range(3)]
    assert codes == [200, 200, 429]


@pytest.mark.conformance
async def test_who_may_not_read_agents_finds_none(daemons: Daemons) -> None:
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n', plugins=[keeper()])
    owner = {"authorization": f"Bearer {KEY}"}
    daemon.http.headers.update(owner)
    await daemon.agent("ada", extra='[model]\nsystem_prompt = "Secret."')
    del daemon.http.headers["authorization"]
    for scopes, found in ((["mcp:use"], False), (["mcp:use", "agents:read"], True)):
        speaker = Speaker(daemon, with_scopes(scopes))
        listed = (await speaker.bare("resources/list"))["result"]["resources"]
        prompts = (await speaker.bare("prompts/list"))["result"]["prompts"]
        assert bool(listed) is bool(prompts) is found
        read = await speaker.bare("resources/read", uri="agent://ada")
        assert ("result" in read) is found
        filled = await speaker.bare("prompts/get", name="agent.ada")
        assert ("Secret." in str(filled)) is found


async def test_names_of_agents_are_completed_for_who_may_read_them(
    daemons: Daemons,
) -> None:
    plugins = [keeper(), Plugin()]
    daemon = await daemons.start(config=f'api_key = "{KEY}"\n', plugins=plugins)
    owner = {"authorization": f"Bearer {KEY}"}
    daemon.http.headers.update(owner)
    await daemon.agent("ada")
    del daemon.http.headers["authorization"]
    # The prompt is there for everybody, and lets the reference pass.
    reference = {"name": "test_simple_prompt", "uri": "agent://{name}"}
    asked = {"ref": reference, "argument": {"name": "name", "value": "a"}}
    for scopes, names in ((["mcp:use"], []), (["mcp:use", "agents:read"], ["ada"])):
        speaker = Speaker(daemon, with_scopes(scopes))
        completed = (await speaker.bare("completion/complete", **asked))["result"]
        assert completed["completion"]["values"] == names
