"""Copies of a home: whole or refused, also written while its daemon works."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sqlite3
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import agenthost_cli
import pytest
from agenthost import AgentHostError, ConfigError, Conflict, InvalidInput
from agenthost.testing import Daemons
from agenthost_storage import register_command
from agenthost_storage.archive.layout import home_at
from agenthost_storage.archive.reading import (
    check_backup,
    check_home,
    restore_backup,
)
from agenthost_storage.archive.writing import write_backup


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a database, keys, a workspace, and what must stay behind."""
    folder = tmp_path / "home"
    workspace = folder / "data" / "workspaces" / "ada"
    workspace.mkdir(parents=True)
    (workspace / "run.sh").write_text("echo hi\n")
    (workspace / "run.sh").chmod(0o700)
    (workspace / "out").symlink_to("/etc/passwd")
    os.mkfifo(workspace / "pipe")
    (folder / "config.toml").write_text('log_level = "debug"\n')
    (folder / "vault.enc").write_text("sealed")
    (folder / "vault.key").write_text("k")
    (folder / "daemon.json").write_text("{}")
    (folder / "data" / "agenthost.db.bak-1").write_text("old")
    (folder / "data" / "audit.heads").write_text("heads")
    with closing(sqlite3.connect(folder / "data" / "agenthost.db")) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE schema_versions (name TEXT, version INTEGER)")
        database.commit()
    return folder


@pytest.fixture
def archive(home: Path) -> Path:
    target = home.parent / "copy.tar.gz"
    write_backup(home, target, keys=True)
    return target


def test_register_command_offers_copies_and_checks() -> None:
    names = [spec.command.name for spec in register_command()]
    assert names == ["backup", "restore", "check"]


def test_a_copy_has_all_that_lasts_and_nothing_of_a_run(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    # The heads of the trail come before the database that has the trail.
    assert names[:2] == ["data/audit.heads", "data/agenthost.db"]
    assert set(names[2:]) == {
        "home/config.toml",
        "home/vault.enc",
        "home/vault.key",
        "data/workspaces/ada/run.sh",
        "contents.json",
    }
    assert archive.stat().st_mode & 0o777 == 0o600


def test_a_restored_home_is_the_same_and_its_owners_alone(
    home: Path, archive: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    restore_backup(archive, new, ())
    assert (new / "config.toml").read_text() == 'log_level = "debug"\n'
    script = new / "data/workspaces/ada/run.sh"
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("echo hi\n", 0o700)
    assert (new / "vault.key").stat().st_mode & 0o777 == 0o600
    assert new.stat().st_mode & 0o777 == 0o700
    assert check_home(home_at(new).database) == []
    with pytest.raises(Conflict, match="holds something"):
        restore_backup(archive, new, ())


def test_keys_stay_behind_when_that_is_said(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "keyless.tar.gz"
    contents = write_backup(home, target, keys=False)
    assert "home/vault.key" not in {each["path"] for each in contents["files"]}
    assert contents["keys"] is False
    with pytest.raises(Conflict, match="there already"):
        write_backup(home, target, keys=False)


def test_a_copy_never_takes_the_place_of_its_original(
    home: Path, archive: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "elsewhere"
    (home / "data").rename(outside)
    said = f'data_dir = "{outside}"\n[storage]\nurl = "sqlite:///{outside}/a.db"\n'
    (home / "config.toml").write_text(said)
    sqlite3.connect(outside / "a.db").close()
    (outside / "agenthost.db").rename(outside / "a.db")
    copy = tmp_path / "second.tar.gz"
    write_backup(home, copy, keys=True)
    with pytest.raises(ConfigError, match="--data"):
        restore_backup(copy, tmp_path / "new", ())
    assert not (tmp_path / "new").exists()
    restore_backup(copy, tmp_path / "new", (), tmp_path / "new-data")
    found = home_at(tmp_path / "new")
    assert found.database == tmp_path / "new-data" / "agenthost.db"
    assert check_home(found.database) == []


Rewrite = Callable[[tarfile.TarInfo, bytes], list[tuple[tarfile.TarInfo, bytes]]]


def rewritten(archive: Path, change: Rewrite) -> Path:
    other = archive.with_name("other.tar.gz")
    with tarfile.open(archive) as source, tarfile.open(other, "w:gz") as target:
        for entry in source:
            file = source.extractfile(entry)
            for new, data in change(entry, file.read() if file else b""):
                new.size = len(data)
                target.addfile(new, io.BytesIO(data))
    return other


def named(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, link
    return entry


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (named("home/../../evil"), "outside of a home"),
        (named("/etc/evil"), "outside of a home"),
        (named("home/./a"), "outside of a home"),
        (named("evil"), "outside of a home"),
        (named("other/evil"), "outside of a home"),
        (named("home/link", tarfile.SYMTYPE, "/etc"), "no plain file"),
        (named("home/hard", tarfile.LNKTYPE, "home/config.toml"), "no plain file"),
        (named("home/pipe", tarfile.FIFOTYPE), "no plain file"),
        (named("home/config.toml"), "twice"),
        (named("home/more"), "is not as it was"),
    ],
)
def test_what_does_not_belong_into_a_copy_is_refused(
    archive: Path, tmp_path: Path, entry: tarfile.TarInfo, says: str
) -> None:
    def smuggle(
        old: tarfile.TarInfo, data: bytes
    ) -> list[tuple[tarfile.TarInfo, bytes]]:
        before = [(entry, b"")] if old.name == "contents.json" else []
        return [*before, (old, data)]

    with pytest.raises(InvalidInput, match=says):
        restore_backup(rewritten(archive, smuggle), tmp_path / "new", ())
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "copy.tar.gz",
        "home",
        "other.tar.gz",
    ]


def changed(name: str, change: Callable[[bytes], bytes]) -> Rewrite:
    return lambda old, data: [(old, change(data) if old.name == name else data)]


def as_json(**facts: object) -> Rewrite:
    return changed(
        "contents.json", lambda data: json.dumps({**json.loads(data), **facts}).encode()
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (changed("home/config.toml", lambda data: data + b"#"), "is not as it was"),
        (changed("contents.json", lambda _: b"[" * 100_000), "not that of a backup"),
        (as_json(format="tar"), "not that of a backup"),
        (as_json(version=2), "install the agenthost that wrote it"),
        (as_json(files=[{}]), "does not list"),
        (lambda old, data: [] if "json" in old.name else [(old, data)], "damaged"),
    ],
)
def test_a_damaged_foreign_or_newer_copy_is_refused(
    archive: Path, change: Rewrite, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        check_backup(rewritten(archive, change), ())


def test_every_cut_of_a_copy_is_seen(archive: Path) -> None:
    whole = archive.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) * 9 // 10):
        archive.write_bytes(whole[:length])
        with pytest.raises(InvalidInput, match="damaged"):
            check_backup(archive, ())


def test_a_damaged_database_is_told(home: Path) -> None:
    database = home / "data" / "agenthost.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    damage = bytearray(database.read_bytes())
    damage[4096:4200] = b"\xff" * 104
    database.write_bytes(damage)
    with pytest.raises(AgentHostError, match="cannot be read"):
        check_home(database)


async def test_a_copy_made_under_load_is_a_home_that_serves(
    daemons: Daemons,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = await daemons.start()
    agent = await first.agent("ada")
    first.model.says("yes")
    await agent.ask("before")
    path = f"/api/memory/agents/{agent.id}/kv"

    async def write(number: int) -> None:
        for each in range(25):
            told = await first.http.put(f"{path}/{number}-{each}", json={"value": each})
            assert told.status_code == 200

    async def command(*arguments: str) -> str:
        monkeypatch.setenv("AGENTHOST_HOME", str(first.daemon.home))
        monkeypatch.setattr(sys, "argv", ["agenthost", *arguments])
        assert await asyncio.to_thread(agenthost_cli.main) == 0, capsys.readouterr()
        return capsys.readouterr().out

    archive, goal = str(tmp_path / "busy.tar.gz"), tmp_path / "copy"
    copying = command("backup", archive)
    _, _, _, told = await asyncio.gather(*(write(n) for n in range(3)), copying)
    assert "files" in str(told)
    await command("check", archive)
    await command("restore", archive, "--to", str(goal))
    second = await daemons.start(home=goal)
    assert [each["name"] for each in (await second.http.get("/api/agents")).json()]
    kept = (await second.http.get(path)).json()["kv_pairs"]
    all_of_it = (await first.http.get(path)).json()["kv_pairs"]
    assert len(all_of_it) == 75
    assert [pair for pair in kept if pair not in all_of_it] == []
    session = (await second.http.get(f"/api/agents/{agent.id}/session")).json()
    assert [each["content"] for each in session["messages"]] == ["before", "yes"]
    verified = (await second.http.get("/api/audit/verify")).json()
    assert verified["status"] == "valid", verified
    assert (await second.http.get("/api/health/detail")).json()[
        "database"
    ] == "connected"
