"""What the storage plugin offers, and how a daemon ends up without it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import agenthost_storage
import pytest
from agenthost import Backend, ConfigError, hookimpl
from agenthost.testing import Daemons
from agenthost_storage import open_store

from .sqlite.rows import SCHEMA


def test_register_backend_offers_the_database_the_files_and_the_vault() -> None:
    offered = [(s.port, s.name) for s in agenthost_storage.register_backend()]
    assert offered == [
        ("store", "sqlite"),
        ("files", "local"),
        ("vault", "file"),
    ]


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    script = (
        "import sys, agenthost_storage, agenthost_jobs; "
        "heavy = {'sqlalchemy', 'aiosqlite', 'alembic', 'cryptography'}; "
        "sys.exit(bool(heavy & sys.modules.keys()))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


async def test_a_url_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a #%?b" / "c.db"
    path.parent.mkdir()
    store = await open_store(f"sqlite:///{path}", [SCHEMA])
    await store.close()
    assert path.exists()


@pytest.mark.parametrize(
    "url", ["sqlite:", "sqlite://", "sqlite:///", "sqlite:///here.db", "sqlite:/x"]
)
async def test_a_url_without_an_absolute_path_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^storage\.url: .*absolute path"):
        await open_store(url, [SCHEMA])


async def test_the_storage_url_chooses_the_file(
    daemons: Daemons, tmp_path: Path
) -> None:
    path = tmp_path / "chosen.db"
    await daemons.start(config=f'[storage]\nurl = "sqlite:///{path}"\n')
    assert path.exists()


async def test_a_relative_home_keeps_its_database(
    daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await daemons.start(home=Path("relative"))
    assert (tmp_path / "relative" / "data" / "agenthost.db").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:canary@h/d", "no plugin serves the port store 'mysql'"),
        ("canary", "it must begin with a scheme"),
    ],
)
async def test_an_unknown_scheme_is_named_and_nothing_else_of_the_url(
    daemons: Daemons, url: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        await daemons.start(config=f'[storage]\nurl = "{url}"\n')
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(("plugin", "port"), [("storage", "store"), ("jobs", "jobs")])
async def test_a_disabled_plugin_is_missed_by_the_name_of_its_port(
    daemons: Daemons, plugin: str, port: str
) -> None:
    with pytest.raises(ConfigError, match=f"no plugin serves the port {port}.*enable"):
        await daemons.start(config=f'[plugins]\ndisable = ["{plugin}"]\n')


async def test_a_plugin_that_fails_is_missed_by_the_name_of_its_port(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    @hookimpl
    def register_backend() -> Iterable[Backend]:
        raise OSError("broken")

    monkeypatch.setattr(agenthost_storage, "register_backend", register_backend)
    with pytest.raises(ConfigError, match="no plugin serves the port store 'sqlite'"):
        await daemons.start()


@pytest.mark.parametrize("name", ["minimal", "api-only"])
async def test_every_set_keeps_what_nothing_works_without(
    daemons: Daemons, name: str
) -> None:
    running = await daemons.start(config=f'[plugins]\nset = "{name}"\n')
    agent = await running.agent("ada")
    workspace = running.daemon.files.workspace(agent.id)
    workspace.write("note", os.urandom(3))
    states = {s.name: s.active for s in running.daemon.registry.security.states()}
    assert states["path_traversal_prevention"]
    assert await running.daemon.jobs.list() == []
