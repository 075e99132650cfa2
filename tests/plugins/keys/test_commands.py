"""``agenthost keys`` against a daemon that runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import agenthost_cli
import pytest
from agenthost.testing.daemons import RunningDaemon
from agenthost_keys import register_command

from .conftest import MASTER, bearer

Run = Callable[..., Awaitable[int]]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run(locked: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the daemon's home, in a thread."""
    home = locked.daemon.home
    facts = {"pid": 1, "listen_addr": locked.daemon.address}
    Path(home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)

    async def one(*arguments: str, group: str = "keys") -> int:
        monkeypatch.setattr(sys, "argv", ["agenthost", group, *arguments])
        return await asyncio.to_thread(agenthost_cli.main)

    return one


def test_register_command_offers_keys() -> None:
    assert [spec.command.name for spec in register_command()] == ["keys", "persons"]


async def test_a_key_is_all_that_create_prints(
    locked: RunningDaemon, run: Run, capsys: Captured
) -> None:
    assert await run("create", "ci", "--scope", "read", "--scope", "chat") == 0
    told = capsys.readouterr()
    key = told.out.removesuffix("\n")
    assert key.startswith("ah_")
    assert "\n" not in key
    assert "not shown again" in told.err
    answer = await locked.http.get("/api/agents", headers=bearer(key))
    assert answer.status_code == 200


async def test_create_says_all_that_the_api_takes(
    locked: RunningDaemon, run: Run, capsys: Captured
) -> None:
    await locked.http.post("/api/persons", json={"name": "Ada"})
    options = ["--scope", "operate", "--units", "90", "--person", "Ada", "--json"]
    assert await run("create", "ci", *options, "--days", "100000") == 2
    assert await run("create", "ci", *options, "--days", "3650") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"id", "name", "key"}
    assert await run("list", "--json") == 0
    [row] = json.loads(capsys.readouterr().out)["keys"]
    assert row["scopes"] == ["operate"]
    assert row["units_per_minute"] == 90
    assert row["expires_at"] > "2030"
    assert row["person"]


async def test_list_and_revoke_go_by_name_or_id(
    locked: RunningDaemon, run: Run, capsys: Captured
) -> None:
    assert await run("create", "ci", "--scope", "read") == 0
    key = capsys.readouterr().out.strip()
    assert await run("list") == 0
    told = capsys.readouterr().out
    head, row = told.splitlines()
    assert head.split() == ["NAME", "STATUS", "SCOPES", "EXPIRES", "USED", "ID"]
    assert row.split()[:5] == ["ci", "active", "read", "never", "never"]
    assert key[36:] not in told
    assert await run("revoke", told.split()[-1]) == 0
    assert (
        await locked.http.get("/api/agents", headers=bearer(key))
    ).status_code == 401
    assert await run("revoke", "ci") == 1
    assert "no key is named 'ci'; there are: none" in capsys.readouterr().err
    assert await run("create", "ci", "--scope", "read") == 0
    capsys.readouterr()
    assert await run("revoke", "ci", "--json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "revoked"


async def test_what_the_daemon_refuses_is_said_on_standard_error(
    run: Run, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await run("create", "a b", "--scope", "read") == 1
    told = capsys.readouterr()
    assert (told.out, "name:" in told.err) == ("", True)
    assert await run("create", "ci", "--scope", "root") == 2
    assert await run("create", "ci", "--scope", "read", "--person", "Eve") == 1
    assert "no person is named 'Eve'" in capsys.readouterr().err
    monkeypatch.setenv("AGENTHOST_API_KEY", MASTER + "!")
    assert await run("list") == 1
    assert "wants its key" in capsys.readouterr().err


async def test_people_are_kept_by_name_or_id(
    locked: RunningDaemon, run: Run, capsys: Captured
) -> None:
    async def told(*arguments: str) -> str:
        assert await run(*arguments, group="persons") == 0
        return capsys.readouterr().out

    assert (await told("add", "Ada")).startswith("added Ada  ")
    assert "bob" in await told("add", "bob", "--role", "guest", "--json")
    assert "owner" in await told("change", "Ada", "--role", "owner")
    listed = (await told("list")).splitlines()
    assert [line.split()[:2] for line in listed] == [["Ada", "owner"], ["bob", "guest"]]
    assert await told("link", "Ada", "matrix", "@ada:a.org/b") == (
        "matrix @ada:a.org/b is Ada\n"
    )
    shown = await told("show", listed[0].split()[-1])
    assert shown.endswith("\n  matrix @ada:a.org/b\n")
    found = await locked.daemon.persons.find("matrix", "@ada:a.org/b")
    assert found is not None
    assert found.name == "Ada"
    await told("unlink", "Ada", "matrix", "@ada:a.org/b")
    assert await locked.daemon.persons.find("matrix", "@ada:a.org/b") is None
    assert await run("change", "Ada", group="persons") == 2
    assert await run("link", "Eve", "matrix", "1", group="persons") == 1
    assert "no person is named 'Eve'" in capsys.readouterr().err
    assert await told("delete", "Ada") == "deleted Ada\n"
    assert "Ada" not in await told("list", "--json")
