"""``agenthost plugins purge``: what a plugin has left that is disabled or gone."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import agenthost_cli
import pytest
from agenthost import (
    Config,
    Plugins,
    PluginState,
    SchemaSpec,
    find_plugins,
    hookimpl,
    lock_home,
)
from agenthost.testing import Daemons
from agenthost.testing.daemons import Distribution, Provided
from agenthost_cli import purging
from sqlalchemy import Column, Connection, MetaData, Table, Text, insert

Captured = pytest.CaptureFixture[str]
CONFIG = """# kept
listen_addr = "127.0.0.1:0"

[plugins]
enable = ["web_ui", "acme"]  # ours

[acme]
key = "value"

[turns]
max_iterations = 9
"""


def schema(name: str, *tables: str) -> SchemaSpec:
    metadata = MetaData()
    for table in tables:
        Table(table, metadata, Column("id", Text, primary_key=True))
    return SchemaSpec(name, metadata)


def plugin(name: str, *specs: SchemaSpec) -> ModuleType:
    made = ModuleType(name)

    def register_schema() -> Any:
        return specs

    vars(made)["register_schema"] = hookimpl(register_schema)
    return made


def installed(name: str) -> PluginState:
    entry = Provided(None, name, dist=Distribution("other", "1"))
    return PluginState(f"plugin:{name}", "other", "1", entry)


@pytest.fixture
async def home(daemons: Daemons, tmp_path: Path) -> Path:
    """A home on which two plugins ran that are gone: acme, and acme_two."""
    home = tmp_path / "home"
    plugins = [
        plugin("acme", schema("acme", "acme", "acme_notes"), schema("acme_more")),
        plugin("acme_two", schema("acme_two", "acme_two_notes")),
    ]
    daemon = await daemons.start(home=home, plugins=plugins)
    await daemon.agent("ada")

    def fill(connection: Connection) -> None:
        notes = plugins[0].register_schema()[0].metadata.tables["acme_notes"]
        connection.execute(insert(notes), [{"id": "1"}, {"id": "2"}])

    await daemon.daemon.store.write(fill)
    await daemon.daemon.stop()
    (home / "config.toml").write_text(CONFIG)
    return home


@pytest.fixture
def database(home: Path) -> Path:
    return home / "data" / "agenthost.db"


def asked(database: Path, *statements: str) -> list[str]:
    """Run statements; give the first column of what the last one answers."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for statement in statements:
            answer = connection.execute(statement).fetchall()
        return [row[0] for row in answer]


def run(monkeypatch: pytest.MonkeyPatch, home: Path, *arguments: str) -> int:
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    argv = ["agenthost", "plugins", "purge", *arguments]
    monkeypatch.setattr(sys, "argv", argv)
    return agenthost_cli.main()


def names(database: Path) -> set[str]:
    return set(asked(database, "SELECT name FROM sqlite_schema WHERE type = 'table'"))


def schemas(database: Path) -> set[str]:
    return set(asked(database, "SELECT name FROM schema_versions"))


def test_it_lists_and_with_yes_removes_what_is_left(
    home: Path,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    others = find_plugins()
    monkeypatch.setattr(
        purging, "find_plugins", lambda: (*others, installed("acme_two"))
    )
    before, told = names(database), ["table acme, 0 rows", "table acme_notes, 2 rows"]
    told += ["[acme] in config.toml", "its entry in plugins.enable in config.toml"]
    assert run(monkeypatch, home, "acme") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == told
    assert "plugins purge acme --yes" in shown.err
    assert names(database) == before
    assert (home / "config.toml").read_text() == CONFIG
    assert run(monkeypatch, home, "plugin:acme", "--yes") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [f"removed: {line}" for line in told]
    assert names(database) == before - {"acme", "acme_notes"}
    assert not schemas(database) & {"acme", "acme_more"}
    assert "acme_two" in schemas(database)
    left = (home / "config.toml").read_text()
    assert left.startswith("# kept\n")
    assert "[acme]" not in left
    assert '"web_ui"' in left
    assert "max_iterations = 9" in left
    assert run(monkeypatch, home, "acme", "--yes") == 0
    assert capsys.readouterr().out == "acme has left nothing\n"


@pytest.mark.parametrize(
    "key", ["jobs", "plugin:web_ui", "groq", "", "a-b", "acme*", "../x", "acme;", "%"]
)
def test_our_own_and_what_is_no_name_is_refused(
    home: Path,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    key: str,
) -> None:
    before = names(database)
    assert run(monkeypatch, home, key, "--yes") == 1
    err = capsys.readouterr().err
    assert "agenthost's own" in err or "no plugin's name" in err
    assert names(database) == before


@pytest.mark.parametrize(
    "slug", ["job", "step", "turns", "session", "schema", "store", "sqlite", "person"]
)
def test_tables_and_sections_of_others_are_never_taken(
    home: Path,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    slug: str,
) -> None:
    before, versions = names(database), schemas(database)
    run(monkeypatch, home, slug, "--yes")
    assert (names(database), schemas(database)) == (before, versions)
    assert (home / "config.toml").read_text() == CONFIG


def test_what_is_enabled_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    known = purging._Known.of(home)
    state = installed("acme")
    enabled = purging._Known(
        {**known.installed, state.key: state},
        known.enabled | {state.key},
        known.names,
        known.sections,
        known.url,
        known.backend,
    )
    monkeypatch.setattr(purging._Known, "of", lambda _: enabled)
    assert run(monkeypatch, home, "acme", "--yes") == 1
    assert "plugins disable plugin:acme" in capsys.readouterr().err
    monkeypatch.setattr(purging._Known, "of", lambda _: known)
    assert run(monkeypatch, home, "acme") == 0


def test_a_daemon_that_runs_is_not_worked_under(
    home: Path,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    before = names(database)
    with lock_home(home):
        assert run(monkeypatch, home, "acme", "--yes") == 1
    assert "another agenthost runs on this home" in capsys.readouterr().err
    assert names(database) == before


def test_what_another_refers_to_stays(
    home: Path,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    asked(database, "CREATE TABLE other (note TEXT REFERENCES acme_notes (id))")
    before = names(database)
    assert run(monkeypatch, home, "acme", "--yes") == 1
    assert "'other' of another plugin refers to" in capsys.readouterr().err
    assert names(database) == before


def test_a_table_of_words_goes_with_its_own_tables(
    home: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(database, "CREATE VIRTUAL TABLE acme_words USING fts5(said)")
    assert any(name.startswith("acme_words_") for name in names(database))
    assert run(monkeypatch, home, "acme", "--yes") == 0
    assert not [name for name in names(database) if name.startswith("acme_words")]


def test_a_broken_plugin_tells_nobody_whose_tables_are_whose(
    home: Path,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    real = Plugins.load

    async def load(self: Plugins, config: Config) -> Any:
        return await real(self, config, {"plugin:web_ui": "broken"})

    monkeypatch.setattr(Plugins, "load", load)
    assert run(monkeypatch, home, "acme", "--yes") == 1
    assert (
        "plugin:web_ui cannot be loaded (left out: broken)" in capsys.readouterr().err
    )
    assert "acme_notes" in names(database)


def test_a_database_that_somebody_holds_is_told(
    home: Path, database: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("agenthost_storage.sqlite.connect.BUSY_TIMEOUT", 0.0)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert run(monkeypatch, home, "acme", "--yes") == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_home_that_nobody_used_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, tmp_path / "nowhere", "acme") == 1
    assert "is no home of a daemon" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run(monkeypatch, tmp_path / "empty", "acme", "--yes") == 0
    assert not (tmp_path / "empty" / "data").exists()
