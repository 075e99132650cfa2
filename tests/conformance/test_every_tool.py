"""A model uses every tool there is in one conversation, over each face."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agenthost import OPERATOR, Context, ToolOutput
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningAgent, RunningDaemon

from tests.plugins.egress.wire import Wire, always, answer
from tests.plugins.http_api.test_socket import chat
from tests.plugins.tools.office_files import docx

pytestmark = pytest.mark.conformance

CONFIG = """
[shell]
mode = "allowlist"
[web.fetch]
allowed_hosts = ["127.0.0.1"]
[web.search]
searxng_url = "{url}"
allowed_hosts = ["127.0.0.1"]
"""
SHOWN_ELSEWHERE = {"ask_user", "channel_send"}
"""One waits for a person, the other needs a chat service."""
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 1, 1)
Call = tuple[str, dict[str, Any]]


def calls(url: str) -> list[Call]:
    return [
        ("file_write", {"path": "note", "content": "bees hum"}),
        ("file_read", {"path": "note"}),
        ("file_list", {}),
        ("web_fetch", {"url": url}),
        ("web_search", {"query": "bees"}),
        ("shell_exec", {"command": "echo hello"}),
        ("kv_set", {"key": "color", "value": "blue"}),
        ("kv_get", {"key": "color"}),
        ("memory_search", {"query": "blue"}),
        ("agent_list", {}),
        ("agent_find", {"query": "helper"}),
        ("agent_call", {"agent_id": "helper", "message": "hello"}),
        ("agent_spawn", {"manifest_toml": 'name = "child"\n'}),
        ("agent_kill", {"agent_id": "child"}),
        ("event_publish", {"type": "bees.seen"}),
        ("schedule_create", {"name": "s", "when": "every 1h", "prompt": "Look."}),
        ("schedule_list", {}),
        ("task_post", {"title": "dig", "description": "a hole"}),
        ("task_list", {}),
        ("task_claim", {}),
        ("image_analyze", {"path": "a.png"}),
        ("document_read", {"path": "a.docx"}),
        ("system_time", {}),
        ("calculate", {"expression": "6*7"}),
    ]


def later(schedule: str, task: str) -> list[Call]:
    """What needs the names that the first turn was given."""
    return [
        ("schedule_delete", {"id": schedule}),
        ("task_complete", {"task_id": task, "result": "dug"}),
    ]


async def by_rest(agent: RunningAgent, text: str) -> None:
    await agent.ask(text)


async def by_stream(agent: RunningAgent, text: str) -> None:
    assert (await agent.events(text))[-1][0] == "done"


async def by_socket(agent: RunningAgent, text: str) -> None:
    async with chat(agent) as client:
        await client.say(text)
        await client.until("response")


def outputs(daemon: RunningDaemon) -> list[ToolOutput]:
    said = (part for m in daemon.model.requests[-1].messages for part in m.parts)
    return [part for part in said if isinstance(part, ToolOutput)]


@pytest.mark.parametrize("face", [by_rest, by_stream, by_socket])
async def test_every_tool_is_used_journalled_and_audited_once(
    daemons: Daemons, face: Callable[[RunningAgent, str], Awaitable[None]]
) -> None:
    found = b'{"results": [{"title": "Bees", "url": "https://bees.example"}]}'
    async with Wire(always(answer(found))) as wire:
        daemon = await daemons.start(config=CONFIG.format(url=wire.url))
        first = calls(wire.url)
        used = [name for name, _ in (*first, *later("", ""))]
        tools = daemon.daemon.toolbox.tools.values()
        offered = {tool.definition.name: tool.effect for tool in tools}
        assert set(offered) - SHOWN_ELSEWHERE == set(used)
        await daemon.agent("helper", tools=[])
        agent = await daemon.agent(tools=["*"])
        rights = {"capabilities": {"shell": ("echo",), "agent_spawn": True}}
        known = daemon.daemon.agents.get(agent.id)
        await daemon.daemon.agents.change(Context(OPERATOR), known, rights)
        daemon.daemon.files.workspace(agent.id).write("a.png", PNG)
        daemon.daemon.files.workspace(agent.id).write("a.docx", docx("bees"))
        # The helper answers in between: its answer stands where it is called.
        before, call, after = _parted(first, "agent_call")
        daemon.model.calls_all(*before)
        daemon.model.calls_all(call)
        daemon.model.says("hello from the helper")
        daemon.model.calls_all(*after)
        await face(agent, "Use all that you have.")
        store = daemon.daemon.store
        (task,) = await store.read("SELECT id FROM tasks")
        (schedule,) = await store.read("SELECT id FROM schedules")
        daemon.model.calls_all(*later(schedule["id"], task["id"]))
        await face(agent, "Now the rest.")
    said = outputs(daemon)
    assert [(each.name, each.text) for each in said if each.is_error] == []
    assert [each.name for each in said] == used
    journal = await store.read("SELECT tool, state FROM tool_calls")
    assert Counter(row["tool"] for row in journal) == Counter(used)
    effects = [row for row in journal if offered[row["tool"]] != "read"]
    assert {row["state"] for row in effects} == {"committed"}
    trail = await store.read("SELECT event_type, details FROM audit_entries")
    ended = [row for row in trail if row["event_type"] == "tool_ended"]
    assert Counter(json.loads(row["details"])["tool"] for row in ended) == Counter(used)


def _parted(all_: list[Call], name: str) -> tuple[list[Call], Call, list[Call]]:
    (at,) = (i for i, each in enumerate(all_) if each[0] == name)
    return all_[:at], all_[at], all_[at + 1 :]
