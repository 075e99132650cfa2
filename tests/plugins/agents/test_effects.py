"""What the keys of a manifest do, seen from outside."""

from __future__ import annotations

import pytest
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost_chat.chat import ChatRequest, ToolOutput


async def made(daemon: RunningDaemon, manifest: str) -> RunningAgent:
    """Make an agent of a manifest that has a name already."""
    text = f'name = "ada"\n{manifest}'
    answer = await daemon.http.post("/api/agents", json={"manifest_toml": text})
    assert answer.status_code == 201, answer.text
    return daemon.known_agent("ada")


async def asked(daemon: RunningDaemon, manifest: str) -> ChatRequest:
    """What the model of an agent with this manifest is asked."""
    await (await made(daemon, manifest)).ask("hello")
    return daemon.model.requests[0]


@pytest.mark.manifest("description", "model.system_prompt")
async def test_its_description_and_its_instructions_are_told_to_the_model(
    daemon: RunningDaemon,
) -> None:
    manifest = 'description = "tends bees"\n[model]\nsystem_prompt = "Be brief."'
    system = (await asked(daemon, manifest)).system
    assert "tends bees" in system
    assert "Be brief." in system


@pytest.mark.manifest("model.max_tokens", "model.temperature")
async def test_how_it_answers_is_passed_to_the_provider(daemon: RunningDaemon) -> None:
    request = await asked(daemon, "[model]\ntemperature = 0.5\nmax_tokens = 77")
    assert (request.temperature, request.max_tokens) == (0.5, 77)


@pytest.mark.manifest("model.provider", "model.model")
async def test_its_model_is_the_one_it_names(daemon: RunningDaemon) -> None:
    agent = await made(
        daemon, '[model]\nprovider = "offline"\nmodel = "offline-assistant"'
    )
    known = daemon.daemon.agents.find(agent.id)
    assert daemon.daemon.agents.model_of(known) == ("offline", "offline-assistant")


@pytest.mark.conformance
@pytest.mark.manifest(
    "profile", "tool_allowlist", "tool_blocklist", "capabilities.tools"
)
@pytest.mark.parametrize(
    ("manifest", "tools"),
    [
        ("", []),
        ('profile = "minimal"', ["file_list", "file_read"]),
        ('profile = "minimal"\ntool_allowlist = ["*_list"]', ["file_list"]),
        ('profile = "minimal"\ntool_blocklist = ["*_list"]', ["file_read"]),
        ('[capabilities]\ntools = ["calc*"]', ["calculate"]),
    ],
)
async def test_its_model_is_shown_the_tools_it_may_call(
    daemon: RunningDaemon, manifest: str, tools: list[str]
) -> None:
    shown = (await asked(daemon, manifest)).tools
    assert [tool.name for tool in shown] == tools


@pytest.mark.manifest(
    "capabilities.network",
    "capabilities.memory_read",
    "capabilities.memory_write",
    "capabilities.agent_message",
)
@pytest.mark.parametrize(
    ("right", "patterns", "tool", "arguments"),
    [
        ("network", ["127.0.0.1"], "web_fetch", {"url": "http://127.0.0.1:9/"}),
        ("memory_read", ["self.*"], "kv_get", {"key": "k"}),
        ("memory_write", ["self.*"], "kv_set", {"key": "k", "value": 1}),
        ("agent_message", ["bo*"], "agent_call", {"agent_id": "bob", "message": "hi"}),
    ],
)
async def test_a_right_is_what_its_tools_may_touch(
    daemon: RunningDaemon,
    right: str,
    patterns: list[str],
    tool: str,
    arguments: dict[str, object],
) -> None:
    async def said(name: str, more: str) -> str:
        tools = f'name = "{name}"\n[capabilities]\ntools = ["{tool}"]\n{more}'
        body = {"manifest_toml": tools}
        await daemon.http.post("/api/agents", json=body)
        daemon.model.calls(tool, **arguments)
        await daemon.known_agent(name).ask("do it")
        output = daemon.model.requests[-1].messages[-1].parts[0]
        assert isinstance(output, ToolOutput)
        return output.text

    await daemon.agent("bob")
    assert "no right" in await said("ada", "")
    assert "no right" not in await said("eve", f"{right} = {patterns}")
