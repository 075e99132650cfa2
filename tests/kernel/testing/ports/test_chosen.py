"""What ``[backends]`` names serves its port; a name that nobody offers is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import ModuleType

import pytest
from agenthost import ConfigError, JobsBackend, JobState, VaultBackend
from agenthost.testing import Daemons, MemoryJobs, MemoryVault

from tests.kernel.plugins.entries import module


@pytest.fixture
def plugin() -> ModuleType:
    offers = [
        VaultBackend("memory", lambda *_: MemoryVault()),
        JobsBackend("memory", MemoryJobs),
    ]
    return module(register_backend=lambda: offers)


async def test_the_chosen_backends_serve_a_daemon(
    daemons: Daemons, plugin: ModuleType, tmp_path: Path
) -> None:
    chosen = '[backends]\nvault = "memory"\njobs = "memory"\n'
    home = tmp_path / "home"
    running = await daemons.start(home=home, config=chosen, plugins=[plugin])
    await running.daemon.vault.change({"openai": "sk-canary"})
    job = await running.daemon.jobs.submit("greet", "once", None)
    assert not list(home.rglob("vault*"))
    assert isinstance(running.daemon.jobs, MemoryJobs)
    assert (await running.daemon.jobs.get(job)).state is JobState.PENDING


async def test_without_a_choice_the_first_serves(
    daemons: Daemons, plugin: ModuleType
) -> None:
    running = await daemons.start(plugins=[plugin])
    assert not isinstance(running.daemon.vault, MemoryVault)
    assert not isinstance(running.daemon.jobs, MemoryJobs)


@pytest.mark.parametrize("port", ["vault", "jobs"])
async def test_a_name_that_nobody_offers_stops_the_start_and_names_the_near_one(
    daemons: Daemons, plugin: ModuleType, port: str
) -> None:
    wrong = f'[backends]\n{port} = "memroy"\n'
    with pytest.raises(ConfigError, match=f"port {port} 'memroy'.*'?memory'?"):
        async with asyncio.timeout(60):
            await daemons.start(config=wrong, plugins=[plugin])
