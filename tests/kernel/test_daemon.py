"""The daemon starts without what fails, and says what it cannot start with."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost import (
    ALLOW,
    AgentSpawned,
    ConfigError,
    Daemon,
    Guard,
    Host,
    PluginError,
    SchemaSpec,
    SecuritySystem,
    ServiceSpec,
)
from agenthost.home_lock import lock_home
from agenthost.plugins.discovery import installed_entries
from agenthost.testing import Daemons
from sqlalchemy import Column, Integer, MetaData, Table

from .plugins.entries import AGENTHOST, OTHER, Distribution, entry, module

KEY = "plugin:made_on_the_spot"


async def nothing(_: Host) -> None:
    """Do nothing."""


def service(start: Any = nothing, stop: Any = nothing) -> Any:
    return module(register_service=lambda: [ServiceSpec("watcher", start, stop)])


def schema(table: str, *steps: Any) -> Any:
    metadata = MetaData()
    Table(table, metadata, Column("id", Integer, primary_key=True))
    return lambda: SchemaSpec("greetings", metadata, steps)


def fails(_: Any) -> None:
    raise ValueError("no such column")


def daemon_of(home: Path, plugin: Any, dist: Distribution = OTHER) -> Daemon:
    entries = [*installed_entries(), entry("plugin:added", lambda: plugin, dist)]
    environ = {
        "AGENTHOST_LISTEN_ADDR": "127.0.0.1:0",
        "AGENTHOST_PLUGINS__ENABLE": "plugin:added",
    }
    return Daemon(home, environ=environ, entry_points=entries)


async def test_a_service_whose_start_never_ends_fails_its_plugin_alone(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    def patience(seconds: float) -> ServiceSpec:
        async def start(_: Host) -> None:
            monkeypatch.setattr("agenthost.daemon.START_SECONDS", seconds)

        return ServiceSpec(f"patience {seconds}", start, nothing)

    async def start(_: Host) -> None:
        await asyncio.Event().wait()

    services = [patience(0.01), ServiceSpec("watcher", start, nothing), patience(30)]
    running = await daemons.start(plugins=[module(register_service=lambda: services)])
    (state,) = (s for s in running.daemon.plugins.states() if s.key == KEY)
    assert state.reason == (
        f"service watcher: service watcher of {KEY} took longer than 0.01 s"
    )


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
async def test_a_service_that_would_end_the_process_fails_its_plugin_alone(
    daemons: Daemons, error: BaseException
) -> None:
    async def start(_: Host) -> None:
        raise error

    async def stop(_: Host) -> None:
        raise AssertionError("it never started")

    running = await daemons.start(plugins=[service(start, stop)])
    assert not running.daemon.plugins.healthy(KEY)
    assert (await running.http.get("/api/health")).status_code == 200


async def test_a_service_is_warmed_up_once_the_daemon_serves(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenthost.daemon.WARM_UP_AFTER", 0.0)
    warmed: list[str] = []

    def warm_up() -> None:
        warmed.append(threading.current_thread().name)

    def breaks() -> None:
        raise ZeroDivisionError

    services = [
        ServiceSpec("broken", nothing, nothing, breaks),
        ServiceSpec("warm", nothing, nothing, warm_up),
    ]
    running = await daemons.start(plugins=[module(register_service=lambda: services)])
    async with asyncio.timeout(30):
        while running.daemon.plugins.healthy(KEY):
            await running.http.get("/api/health")
    assert warmed
    assert warmed[0] != threading.main_thread().name
    assert (await running.http.get("/api/health")).status_code == 200


async def test_a_service_that_would_end_the_process_as_it_stops_keeps_nothing_open(
    tmp_path: Path,
) -> None:
    async def stop(_: Host) -> None:
        raise SystemExit(3)

    daemon = daemon_of(tmp_path, service(stop=stop))
    await daemon.start()
    await daemon.stop()
    lock_home(tmp_path).close()


async def test_time_in_services_hooks_and_events_is_charged_to_their_plugin(
    tmp_path: Path,
) -> None:
    heard = []

    def hear(event: AgentSpawned) -> None:
        heard.append(event)

    plugin = service()
    plugin.on_event = module(on_event=hear).on_event
    daemon = daemon_of(tmp_path, plugin)
    await daemon.start()
    accounts = daemon.plugins.charges.accounts
    began = accounts["plugin:added"].calls
    assert began >= 3, "import, hook and start"
    daemon.events.publish(AgentSpawned("x", 0.0, "x"))
    await daemon.stop()
    assert accounts["plugin:added"].calls == began + 2, "an event and the stop"
    assert accounts["plugin:added"].longest <= accounts["plugin:added"].seconds


async def test_a_schema_of_others_that_fails_leaves_its_plugin_out(
    tmp_path: Path,
) -> None:
    first = daemon_of(tmp_path, module(register_schema=schema("greetings")))
    await first.start()
    await first.stop()
    failing = module(register_schema=schema("greetings", fails))
    second = daemon_of(tmp_path, failing)
    await second.start()
    await second.stop()
    (state,) = (s for s in second.plugins.states() if s.key == "plugin:added")
    assert state.reason is not None
    assert "'greetings': step 1 (fails) failed: no such column" in state.reason
    ours = daemon_of(tmp_path, failing, AGENTHOST)
    with pytest.raises(PluginError, match=r"step 1 \(fails\) failed"):
        await ours.start()


async def test_what_a_plugin_guarded_stays_closed_when_its_schema_fails(
    tmp_path: Path,
) -> None:
    # All plugins are asked anew without it, and then nobody hears what it guards.
    def guards() -> SecuritySystem:
        return SecuritySystem("careful", {Guard.PATH: lambda _: ALLOW}, lambda: None)

    first = daemon_of(tmp_path, module(register_schema=schema("greetings")))
    await first.start()
    await first.stop()
    failing = module(register_schema=schema("greetings", fails), security_system=guards)
    second = daemon_of(tmp_path, failing)
    await second.start()
    assert "path" in second.guards.closed
    await second.stop()


async def test_a_table_of_ours_that_others_claim_leaves_their_plugin_out(
    tmp_path: Path,
) -> None:
    daemon = daemon_of(tmp_path, module(register_schema=schema("agents")))
    await daemon.start()
    await daemon.stop()
    (state,) = (s for s in daemon.plugins.states() if s.key == "plugin:added")
    assert "name tables after the plugin" in (state.reason or "")


@pytest.mark.parametrize("home", ["/proc", "/proc/nope", "/dev/null/home"])
async def test_a_home_that_cannot_be_made_is_a_sentence(home: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be written .* AGENTHOST_HOME"):
        await Daemon(Path(home), environ={}).start()


async def test_a_data_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, environ={"AGENTHOST_DATA_DIR": "/proc/nope"})
    with pytest.raises(ConfigError, match="/proc/nope cannot be written"):
        await daemon.start()
    lock_home(tmp_path).close()


def choosing(provider: str, model: str = "") -> dict[str, str]:
    return {
        "AGENTHOST_LISTEN_ADDR": "127.0.0.1:0",
        "AGENTHOST_DEFAULT_MODEL__PROVIDER": provider,
        "AGENTHOST_DEFAULT_MODEL__MODEL": model,
    }


async def test_a_misspelt_default_provider_refuses_the_start(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, environ=choosing("opnai"))
    with pytest.raises(ConfigError, match=r"default_model.*did you mean 'openai'"):
        await daemon.start()
    assert daemon.address == ""


async def test_a_default_provider_whose_plugin_is_off_refuses_the_start(
    tmp_path: Path,
) -> None:
    environ = {**choosing("openai"), "AGENTHOST_PLUGINS__DISABLE": "provider:openai"}
    with pytest.raises(ConfigError, match="unknown provider 'openai'"):
        await Daemon(tmp_path, environ=environ).start()


async def test_a_default_provider_that_is_left_out_is_a_warning(tmp_path: Path) -> None:
    left_out = {"provider:openai": "the daemon stood still in it"}
    daemon = Daemon(tmp_path, environ=choosing("openai"), left_out=left_out)
    await daemon.start()
    async with httpx.AsyncClient(base_url=f"http://{daemon.address}") as http:
        status = (await http.get("/api/status")).json()
    await daemon.stop()
    assert status["default_provider"] == "openai"
    assert any("unknown provider 'openai'" in said for said in daemon.warnings)


@pytest.mark.parametrize(
    ("model", "warnings"),
    [
        ("gpt-5.5-pro", [("openai", "API key")]),
        ("gpt-nope", [("openai", "API key"), ("gpt-nope",)]),
    ],
)
async def test_a_default_model_that_cannot_answer_is_a_warning(
    tmp_path: Path, model: str, warnings: list[tuple[str, ...]]
) -> None:
    daemon = Daemon(tmp_path, environ=choosing("openai", model))
    await daemon.start()
    await daemon.stop()
    for words in warnings:
        told = [said for said in daemon.warnings if all(word in said for word in words)]
        assert told, words
    assert len(daemon.warnings) == len(warnings)
