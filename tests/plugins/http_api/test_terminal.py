"""The commands of ``agenthost`` for what this surface serves, at a daemon that runs."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import agenthost_cli
import pytest
from agenthost.testing.daemons import RunningDaemon
from agenthost_http_api import register_command

Captured = pytest.CaptureFixture[str]
Run = Callable[..., Awaitable[str]]


@pytest.fixture
def run(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> Run:
    """Run a command on the daemon's home, in a thread; give what it printed."""
    home = daemon.daemon.home
    facts = {"pid": 1, "listen_addr": daemon.daemon.address}
    Path(home / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)

    async def one(*arguments: str, code: int = 0, said: str = "") -> str:
        monkeypatch.setattr(sys, "argv", ["agenthost", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(said))
        ended = await asyncio.to_thread(agenthost_cli.main)
        told = capsys.readouterr()
        assert ended == code, told
        return told.out if code == 0 else told.err

    return one


def test_register_command_offers_what_the_routes_serve() -> None:
    names = [spec.command.name for spec in register_command()]
    assert names == ["agent", "session", "memory", "providers", "usage"]


async def test_an_agent_lives_and_ends_in_the_terminal(
    daemon: RunningDaemon, run: Run, tmp_path: Path
) -> None:
    assert (await run("agent", "new", "--name", "ada")).startswith("made ada  ")
    manifest = tmp_path / "bob.toml"
    manifest.write_text('name = "bob"\ndescription = "a\\u001b[2Jb"\n')
    made = json.loads(await run("agent", "new", str(manifest), "--json"))
    assert "made eve" in await run("agent", "new", "-", said='name = "eve"')
    head, *rows = (await run("agent", "list")).splitlines()
    assert head.split() == ["NAME", "STATE", "PROVIDER", "MODEL", "CREATED", "ID"]
    assert [row.split()[0] for row in rows] == ["ada", "bob", "eve"]
    shown = await run("agent", "show", made["agent_id"])
    assert "a\N{REPLACEMENT CHARACTER}[2Jb" in shown
    assert "\x1b" not in shown
    await run("agent", "kill", "bob", code=130)
    assert await run("agent", "kill", "bob", "--yes") == "killed bob\n"
    assert "there are: ada, eve" in await run("agent", "show", "bob", code=1)
    assert "already" in await run("agent", "new", "--name", "ada", code=1)
    assert "either" in await run("agent", "new", code=2)
    assert "made coder  " in await run("agent", "new", "--template", "coder")
    copy = await run("agent", "new", "--template", "coder", "--name", "mine")
    assert copy.startswith("made mine  ")
    assert "template" in await run("agent", "new", "--template", "none", code=1)
    both = "agent", "new", str(manifest), "--template", "coder"
    assert "either MANIFEST or --template" in await run(*both, code=2)
    assert "cannot be read" in await run("agent", "new", "/nowhere", code=2)
    assert "nothing to send" in await run("agent", "new", "-", code=2)


async def test_a_conversation_is_listed_shown_cleared_and_deleted(
    daemon: RunningDaemon, run: Run
) -> None:
    await daemon.agent("ada")
    daemon.model.says("four\x1b[2J")
    assert "four" in await run("message", "ada", "-", said="two and two?")
    listed = await run("session", "list", "--agent", "ada")
    assert listed.splitlines()[1].split()[0] == "ada"
    session = listed.split()[-1]
    shown = await run("session", "show", session)
    assert "#0 User: two and two?\n#1 Assistant: four[2J" in shown
    assert "below the threshold" in await run("session", "compact", "ada")
    assert (await run("session", "reset", "ada", "-y")).startswith("reset ")
    assert "Error" in await run("session", "show", session, code=1)
    fresh = (await run("session", "list")).split()[-1]
    assert await run("session", "delete", fresh, "-y") == f"deleted {fresh}\n"


async def test_memory_is_kept_read_and_forgotten(
    daemon: RunningDaemon, run: Run
) -> None:
    await daemon.agent("ada")
    await run("memory", "set", "ada", "a/b ?c", '{"n": 1}')
    await run("memory", "set", "ada", "text", "-", said="as it is")
    assert await run("memory", "get", "ada", "a/b ?c") == '{"n": 1}\n'
    assert await run("memory", "get", "ada", "text") == "as it is\n"
    assert (await run("memory", "list", "ada")).splitlines()[0] == "KEY     VALUE"
    assert await run("memory", "delete", "ada", "text", "-y") == "deleted text\n"
    assert "text" in await run("memory", "get", "ada", "text", code=1)


async def test_usage_and_providers_are_tables(daemon: RunningDaemon, run: Run) -> None:
    agent = await daemon.agent("ada")
    daemon.model.says("hi")
    await agent.ask("hello")
    assert (await run("usage")).splitlines()[1].split()[:3] == ["day", "1", "1"]
    assert "USD" in await run("usage", "--by-model")
    assert json.loads(await run("usage", "--json"))["request_count"] == 1
    assert (await run("providers", "list")).startswith("NAME")
    await run("providers", "set-key", "openai", "--stdin", said="sk-1234567890\n")
    assert "configured" in await run("providers", "list")
    assert "sk-123" not in await run("providers", "list", "--json")
    assert "removed" in await run("providers", "remove-key", "openai", "-y")


async def test_a_chat_command_is_given_over_rest(daemon: RunningDaemon) -> None:
    agent = await daemon.agent("ada")
    path = f"/api/agents/{agent.id}/command"
    told = await daemon.http.post(path, json={"command": "/help"})
    assert "/compact" in told.json()["response"]
    refused = await daemon.http.post(path, json={"command": "/nothing"})
    assert refused.status_code == 400
    assert "known:" in refused.json()["error"]
    assert (await daemon.http.post(path, json={"command": "hi"})).status_code == 400
