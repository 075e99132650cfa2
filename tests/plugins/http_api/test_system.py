"""The daemon's own routes, memory and sessions."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from agenthost import AgentSpawned, Event, ToolSpec, TurnState
from agenthost.testing import ManualClock
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_records.tables import turns
from sqlalchemy import update

from tests.kernel.plugins.entries import module


async def test_health_is_public_and_says_nothing_else(daemons: Daemons) -> None:
    daemon = await daemons.start(environ={"AGENTHOST_API_KEY": "k"})
    answer = await daemon.http.get("/api/health")
    assert set(answer.json()) == {
        "status",
        "uptime_seconds",
        "panic_count",
        "restart_count",
    }
    refused = await daemon.http.get("/api/health/detail")
    assert refused.status_code == 401


async def test_health_detail_names_plugins_and_warnings(daemons: Daemons) -> None:
    daemon = await daemons.start(config="speling = 1\n")
    detail = (await daemon.http.get("/api/health/detail")).json()
    assert detail["database"] == "connected"
    assert "speling" in " ".join(detail["config_warnings"])
    states = {row["key"]: row["status"] for row in detail["plugins"]}
    assert states["plugin:http_api"] == "enabled"


async def health_of(running: RunningDaemon) -> str:
    return str((await running.http.get("/api/health")).json()["status"])


async def test_health_is_degraded_while_an_enabled_plugin_has_failed(
    daemons: Daemons,
) -> None:
    def fails() -> list[ToolSpec]:
        raise RuntimeError("no battery")

    running = await daemons.start(plugins=[module(register_tool=fails)])
    assert await health_of(running) == "degraded"


async def test_health_is_ok_without_credentials(daemons: Daemons) -> None:
    running = await daemons.start(environ={"AGENTHOST_DEFAULT_MODEL__PROVIDER": "groq"})
    assert running.daemon.warnings
    assert await health_of(running) == "ok"


async def test_health_is_degraded_for_a_minute_after_a_stall(daemons: Daemons) -> None:
    clock = ManualClock()
    running = await daemons.start(clock=clock)
    assert await health_of(running) == "ok"
    running.daemon.plugins.charges.last_stall = clock.time()
    assert await health_of(running) == "degraded"
    await clock.advance(61)
    assert await health_of(running) == "ok"


async def test_a_listener_that_was_given_up_degrades_health_and_is_named(
    daemons: Daemons,
) -> None:
    def on_event(event: Event) -> None:
        raise RuntimeError(event.subject)

    running = await daemons.start(plugins=[module(on_event=on_event)])
    for number in range(10):
        running.daemon.events.publish(AgentSpawned(str(number), 0.0, "x"))
    await running.daemon.events.stop()
    assert await health_of(running) == "degraded"
    detail = (await running.http.get("/api/health/detail")).json()
    (listener,) = detail["listeners"]
    assert listener["plugin"] == "plugin:made_on_the_spot"
    assert (listener["given_up"], listener["failures"]) == (True, 10)
    assert detail["plugin_time"]["plugin:made_on_the_spot"]["calls"] >= 10


async def test_turns_that_the_last_end_cut_are_counted(
    daemons: Daemons, tmp_path: Path
) -> None:
    first = await daemons.start(home=tmp_path / "home")
    agent = await first.agent()
    for text in ("one", "two"):
        await agent.ask(text)
    detail = (await first.http.get("/api/health/detail")).json()
    assert detail["interrupted_turns"] == 0
    cut = update(turns).values(state=TurnState.RUNNING.value)
    await first.daemon.store.write(lambda connection: connection.execute(cut))
    await first.daemon.stop()
    second = await daemons.start(home=tmp_path / "home")
    detail = (await second.http.get("/api/health/detail")).json()
    assert detail["interrupted_turns"] == 2


async def test_status_version_and_config(daemons: Daemons) -> None:
    daemon = await daemons.start(environ={"AGENTHOST_API_KEY": "hidden-key"})
    daemon.http.headers["authorization"] = "Bearer hidden-key"
    status = (await daemon.http.get("/api/status")).json()
    assert status["default_provider"] == "scripted"
    assert status["agents"] == []
    version = (await daemon.http.get("/api/version")).json()
    assert {
        "name",
        "version",
        "build_date",
        "git_sha",
        "rust_version",
        "platform",
        "arch",
    } <= set(version)
    config = await daemon.http.get("/api/config")
    assert config.json()["api_key_set"] is True
    assert "hidden-key" not in config.text


async def test_tools_are_names_with_definitions(daemon: RunningDaemon) -> None:
    body = (await daemon.http.get("/api/tools")).json()
    assert body["total"] == len(body["tools"])
    assert {"file_read", "kv_set", "agent_call", "calculate"} <= set(body["tools"])
    assert body["tools"] == sorted(body["tools"])
    assert body["definitions"][0]["input_schema"]["type"] == "object"


VALUES = [None, 0, "text", [1, {"a": None}], {"deep": {"er": [True]}}, 1.5]


@pytest.mark.parametrize(
    "key",
    ["plain", "with/slashes/in/it", "päth ?&#", "/first", "//", "two\nlines", "t/"],
)
async def test_memory_keeps_any_json_value(daemon: RunningDaemon, key: str) -> None:
    agent = await daemon.agent()
    path = f"/api/memory/agents/{agent.id}/kv/{quote(key, safe='/')}"
    for value in VALUES:
        stored = await daemon.http.put(path, json={"value": value})
        assert stored.json() == {"status": "stored", "key": key}
        assert (await daemon.http.get(path)).json() == {"key": key, "value": value}
        listed = await daemon.http.get(f"/api/memory/agents/{agent.id}/kv")
        assert listed.json() == {"kv_pairs": [{"key": key, "value": value}]}
        gone = await daemon.http.delete(path)
        assert gone.json() == {"status": "deleted", "key": key}
        missing = await daemon.http.get(path)
        assert missing.status_code == 404
        assert key in missing.json()["error"]


async def test_memory_is_each_agents_own_and_shared_is_shared(
    daemon: RunningDaemon,
) -> None:
    one, two = await daemon.agent("one"), await daemon.agent("two")
    base = "/api/memory/agents"
    await daemon.http.put(f"{base}/{one.id}/kv/k", json={"value": 1})
    assert (await daemon.http.get(f"{base}/{two.id}/kv/k")).status_code == 404
    await daemon.http.put(f"{base}/{one.id}/kv/shared.k", json={"value": 2})
    assert (await daemon.http.get(f"{base}/{two.id}/kv/shared.k")).json()["value"] == 2


async def test_memory_needs_a_value(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    answer = await daemon.http.put(f"/api/memory/agents/{agent.id}/kv/k", json={"v": 1})
    assert answer.status_code == 400
    assert "value" in answer.json()["error"]


async def test_a_deleted_session_is_replaced(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("hello")
    old = (await agent.session())["session_id"]
    answer = await daemon.http.delete(f"/api/sessions/{old}")
    assert answer.json() == {"status": "deleted", "session_id": old}
    fresh = await agent.session()
    assert fresh["session_id"] != old
    assert fresh["messages"] == []
    assert (await daemon.http.delete(f"/api/sessions/{old}")).status_code == 404


async def test_shutdown_ends_the_daemon(daemon: RunningDaemon) -> None:
    answer = await daemon.http.post("/api/shutdown")
    assert answer.json() == {"status": "shutting_down", "running_turns": 0}
    await daemon.daemon.stop_requested.wait()
