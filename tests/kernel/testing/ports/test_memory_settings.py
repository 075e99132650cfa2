"""The settings by their models keep the promises of the port, and serve a daemon."""

from __future__ import annotations

import pytest
from agenthost import ConfigSection, PluginError, SettingsBackend
from agenthost.testing import (
    Daemons,
    MemorySettings,
    OpenSettings,
    SettingsContract,
    offering,
)
from pydantic import BaseModel

from tests.kernel.plugins.entries import module


class Acme(BaseModel):
    """A section."""

    endpoint: str = "https://acme.example"


class Unheard(BaseModel):
    """No section."""


class TestMemorySettings(SettingsContract):
    @pytest.fixture
    def opened(self) -> OpenSettings:
        return MemorySettings.open


def test_what_a_test_hands_in_is_said() -> None:
    settings = MemorySettings(Acme(endpoint="http://127.0.0.1:9"))
    assert settings(Acme).endpoint == "http://127.0.0.1:9"
    with pytest.raises(PluginError):
        settings(Unheard)


async def test_it_serves_a_daemon(daemons: Daemons) -> None:
    plugin = module(
        register_config=lambda: [ConfigSection("acme", Acme)],
        register_backend=lambda: [SettingsBackend("memory", MemorySettings.open)],
    )
    config = '[backends]\nsettings = "memory"\n[acme]\nendpoint = "http://[::1]"\n'
    running = await daemons.start(config=config, plugins=[plugin])
    settings = running.daemon.settings
    assert isinstance(settings, MemorySettings)
    assert settings(Acme).endpoint == "http://[::1]"
    assert (await running.http.get("/api/health")).status_code == 200


@pytest.mark.parametrize("taken", ["plugins", "plugins.acme", "storage.url.acme"])
async def test_what_the_kernel_reads_is_no_section(
    daemons: Daemons, taken: str
) -> None:
    plugin = module(
        register_config=lambda: [ConfigSection(taken, Acme)],
    )
    offers = SettingsBackend("memory", MemorySettings.open)
    running = await daemons.start(
        config='[backends]\nsettings = "memory"\n',
        plugins=[plugin, offering(offers)],
    )
    failed = [s for s in running.daemon.plugins.states() if s.status == "failed"]
    assert [state.key for state in failed] == ["plugin:made_on_the_spot"]
    assert f"[{taken}]" in str(failed[0].reason)
