"""What a key of the configuration changes, where no other test shows it."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from agenthost import ProviderFault, Vault, VaultBackend
from agenthost.testing import DaemonProcess, Daemons
from agenthost_storage.vault import FileVault

from ...kernel.plugins.entries import module
from ..models.bench import Bench
from ..models.test_budget import dear
from ..models.upstream import Fails, Upstream

HOUSE = """
[providers.house]
base_url = "https://models.example/v1/"
api_key_env = "HOUSE_KEY"
dialect = "openai-chat"
quirks = { system_role = "developer" }
models = ["tiny"]
"""


@pytest.mark.setting("listen_addr")
async def test_the_api_listens_where_it_is_told(daemons: Daemons) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    running = await daemons.start(environ={"AGENTHOST_LISTEN_ADDR": address})
    assert running.daemon.address == address
    assert (await running.http.get("/api/health")).status_code == 200


@pytest.mark.setting("data_dir")
async def test_the_database_is_in_the_data_folder(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    await daemons.start(home=home, config="data_dir = 'elsewhere'\n")
    assert (home / "elsewhere" / "agenthost.db").exists()
    assert not (home / "data").exists()


@pytest.mark.setting("log_level")
@pytest.mark.parametrize(("level", "told"), [("info", True), ("warning", False)])
def test_the_log_tells_what_its_level_lets_through(
    tmp_path: Path, level: str, *, told: bool
) -> None:
    with DaemonProcess(tmp_path / "home", {"AGENTHOST_LOG_LEVEL": level}) as daemon:
        assert daemon.terminate() == 0
    assert ("shutting down" in daemon.log) is told


class OtherVault(FileVault):
    """A vault of another plugin."""


@pytest.mark.setting("backends")
@pytest.mark.parametrize(
    ("config", "other"), [("", False), ("[backends]\nvault = 'other'\n", True)]
)
async def test_the_chosen_backend_serves_its_port(
    daemons: Daemons, config: str, *, other: bool
) -> None:
    def opened(home: Path, environ: Mapping[str, str]) -> Vault:
        return OtherVault(home / "other", lambda: b"k" * 32)

    offer = VaultBackend("other", opened)
    plugin = module(register_backend=lambda: [offer])
    running = await daemons.start(plugins=[plugin], config=config)
    assert isinstance(running.daemon.vault, OtherVault) is other


@pytest.mark.setting("turns.max_iterations")
async def test_a_turn_that_calls_and_calls_is_ended(daemons: Daemons) -> None:
    running = await daemons.start(config="[turns]\nmax_iterations = 2\n")
    agent = await running.agent()
    for _ in range(3):
        running.model.calls("system_time")
    answer = await agent.send("what time is it?")
    assert answer.status_code == 500
    assert "turns.max_iterations" in answer.json()["error"]
    assert len(running.model.requests) == 2


@pytest.mark.setting("budget.alert_threshold")
@pytest.mark.parametrize(("threshold", "calls"), [(0.2, 1), (0.9, 4)])
async def test_the_alert_comes_at_its_share_of_the_limit(
    threshold: float, calls: int
) -> None:
    bench = Bench(
        [dear()], {"budget": {"max_hourly_usd": 0.5, "alert_threshold": threshold}}
    )
    asked = 0
    while not bench.events:
        await bench.ask("a", bench.payer(), max_tokens=10)
        asked += 1
    assert asked == calls


@pytest.mark.setting("compaction.threshold_ratio")
@pytest.mark.parametrize(("ratio", "condensed"), [(0.001, True), (1.0, False)])
async def test_a_conversation_is_condensed_at_its_share_of_the_window(
    daemons: Daemons, ratio: float, *, condensed: bool
) -> None:
    config = f"[compaction]\nkeep_recent = 2\nthreshold_ratio = {ratio}\n"
    running = await daemons.start(config=config)
    agent = await running.agent()
    await agent.ask("one " * 500)
    await agent.ask("two")
    await agent.ask("three")
    texts = [
        message.text for each in running.model.requests for message in each.messages
    ]
    asked = any(text.startswith("Summarize this conversation") for text in texts)
    assert asked is condensed


@pytest.mark.setting("fallback_providers[].model")
async def test_what_stands_in_uses_the_model_that_is_named() -> None:
    a, b = Upstream("a", usual=Fails(ProviderFault.BILLING)), Upstream("b")
    spare = {"provider": "b", "model": "b-other"}
    bench = Bench([a, b], {"fallback_providers": [spare]})
    answered = await bench.passing(bench.ask("a", bench.payer()))
    assert (answered.spent.provider, answered.spent.model) == ("b", "b-other")


@pytest.mark.setting(
    "providers.<name>.base_url",
    "providers.<name>.api_key_env",
    "providers.<name>.dialect",
    "providers.<name>.quirks",
    "providers.<name>.models",
)
async def test_a_provider_is_declared_by_its_dialect(daemons: Daemons) -> None:
    running = await daemons.start(config=HOUSE, environ={"HOUSE_KEY": "sk-house"})
    models = running.daemon.models
    spec = models.providers["house"]
    assert spec.facts.base_url == "https://models.example/v1"
    assert [key.reveal() for key in models.keys_of("house")] == ["sk-house"]
    assert [row.id for row in spec.facts.models] == ["tiny"]
    dialect: Any = spec.dialect
    assert dialect.name == "openai-chat"
    assert dialect.quirks.of("tiny").system_role == "developer"


async def test_a_probe_vouches_for_no_key_at_another_address(
    daemons: Daemons,
) -> None:
    moved = "[providers.groq]\nbase_url = 'https://proxy.example'\n"
    for config, proves in (("", True), (moved, False)):
        running = await daemons.start(config=config)
        probe = running.daemon.models.providers["groq"].facts.probe
        assert probe is not None
        assert probe.proves_key is proves


ROW = {
    "id": "mine",
    "aliases": ("short",),
    "upstream_id": "vendor/mine",
    "display_name": "My model",
    "tier": "smart",
    "context_window": 1_000,
    "max_output": 100,
    "input_cost_per_1m": 1.5,
    "output_cost_per_1m": 2.5,
    "cached_input_cost_per_1m": 0.5,
    "supports_tools": False,
    "supports_vision": True,
    "supports_streaming": False,
    "supports_thinking": True,
}


@pytest.mark.setting(
    "providers.<name>.models[].id",
    "providers.<name>.models[].aliases",
    "providers.<name>.models[].upstream_id",
    "providers.<name>.models[].display_name",
    "providers.<name>.models[].tier",
    "providers.<name>.models[].context_window",
    "providers.<name>.models[].max_output",
    "providers.<name>.models[].input_cost_per_1m",
    "providers.<name>.models[].output_cost_per_1m",
    "providers.<name>.models[].cached_input_cost_per_1m",
    "providers.<name>.models[].supports_tools",
    "providers.<name>.models[].supports_vision",
    "providers.<name>.models[].supports_streaming",
    "providers.<name>.models[].supports_thinking",
)
def test_a_model_is_what_is_written_of_it() -> None:
    bench = Bench([Upstream("a")], {"providers": {"a": {"models": [ROW]}}})
    found = bench.models.find("short")
    assert found is not None
    assert {**asdict(found.model), **ROW} == asdict(found.model)
    assert found.names == ("a", "mine")


@pytest.mark.setting("providers.<name>.cache_hour")
async def test_marked_prompts_are_kept_an_hour_where_asked(daemons: Daemons) -> None:
    config = "".join(
        f"[providers.{slug}]\ncache_hour = true\n"
        for slug in ("anthropic", "bedrock", "groq")
    )
    running = await daemons.start(config=config)
    providers = running.daemon.models.providers
    rows = {
        slug: {row.upstream_id: row for row in spec.facts.models}
        for slug, spec in providers.items()
    }
    for claude in rows["anthropic"].values():
        assert claude.caches == ("marks", "hour")
        assert claude.cache_write_cost_per_1m == 2 * claude.input_cost_per_1m
        if long := claude.long_context:
            assert long.cache_write_cost_per_1m == 2 * long.input_cost_per_1m
    assert "hour" in rows["bedrock"]["anthropic.claude-opus-5-5"].caches
    assert "hour" not in rows["bedrock"]["amazon.nova-pro-v1:0"].caches
    assert not any("hour" in row.caches for row in rows["groq"].values())
    assert not any("hour" in row.caches for row in rows["openrouter"].values())
