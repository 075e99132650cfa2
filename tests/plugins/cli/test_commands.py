"""The command line against a scripted daemon on the loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import agenthost_cli
import click
import pytest
from agenthost import CommandSpec
from agenthost_cli import commands, detached, extensions, foreground, running

AGENT = {
    "id": "0b6b2a4e-0000-4000-8000-000000000001",
    "name": "ada",
    "state": "Running",
    "created_at": "2026-01-01T00:00:00.000Z",
    "model_provider": "offline",
    "model_name": "offline",
}
STATUS = {
    "status": "running",
    "agent_count": 1,
    "data_dir": "/data",
    "default_provider": "offline",
    "default_model": "offline",
    "uptime_seconds": 7,
    "agents": [AGENT],
}


class ScriptedDaemon(ThreadingHTTPServer):
    """Answers what it was told to, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, Any]] = {
            "GET /api/status": (200, STATUS),
            "GET /api/agents": (200, [AGENT]),
            "POST /api/shutdown": (200, {"status": "shutting_down"}),
        }
        self.heard: list[tuple[str, str | None, Any]] = []


class Handler(BaseHTTPRequestHandler):
    """One request of the scripted daemon."""

    server: ScriptedDaemon

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        asked = f"{self.command} {self.path}"
        key = self.headers.get("authorization")
        self.server.heard.append((asked, key, json.loads(body) if body else None))
        status, answer = self.server.answers.get(asked, (404, {"error": "no route"}))
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - theirs
        """Say nothing."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTHOST_HOME", str(tmp_path))
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)
    return tmp_path


@pytest.fixture
def daemon(folder: Path) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        tell(folder, f"127.0.0.1:{server.server_port}", pid=ended_process())
        yield server
        server.shutdown()


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", ""]) as process:
        pass
    return process.pid


def tell(folder: Path, address: str, pid: int = 1) -> None:
    facts = {"pid": pid, "listen_addr": address, "started_at": "", "version": "0"}
    (folder / "daemon.json").write_text(json.dumps(facts), encoding="utf-8")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["agenthost", *arguments])
    return agenthost_cli.main()


Captured = pytest.CaptureFixture[str]


def test_status_tells_people_and_programs(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, "status") == 0
    told = capsys.readouterr().out
    assert "running, up 7 s" in told
    assert "ada  Running  offline/offline" in told
    assert run(monkeypatch, "status", "--json") == 0
    assert json.loads(capsys.readouterr().out) == STATUS
    assert [asked for asked, _, _ in daemon.heard] == ["GET /api/status"] * 2


@pytest.mark.parametrize("named", ["ada", AGENT["id"]])
def test_a_message_goes_to_an_agent_by_name_or_id(
    daemon: ScriptedDaemon,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    named: str,
) -> None:
    path = f"POST /api/agents/{AGENT['id']}/message/stream"
    daemon.answers[path] = (
        200,
        stream(("chunk", "content", "Ol"), ("chunk", "content", "á")),
    )
    assert run(monkeypatch, "message", named, "hello") == 0
    assert capsys.readouterr().out == "Olá\n"
    assert daemon.heard[-1] == (path, None, {"message": "hello"})


def stream(*events: tuple[str, str, str]) -> bytes:
    """Write events of one field each, and the comment of a silence between them."""
    frames = [
        f"event: {name}\ndata: {json.dumps({field: text})}\n\n"
        for name, field, text in events
    ]
    return ": still here\n\n".join(frames).encode()


def test_an_answer_that_breaks_off_is_an_error_behind_what_was_said(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    path = f"POST /api/agents/{AGENT['id']}/message/stream"
    events = stream(("chunk", "content", "half"), ("error", "error", "no key"))
    daemon.answers[path] = (200, events)
    assert run(monkeypatch, "message", "ada", "hello") == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("half\n", "Error: no key\n")


@pytest.mark.parametrize(
    ("finish", "words"),
    [("length", "length limit"), ("content_filter", "rules"), ("stop", ""), (None, "")],
)
def test_an_answer_that_is_not_whole_is_marked(
    daemon: ScriptedDaemon,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    finish: str | None,
    words: str,
) -> None:
    path = f"POST /api/agents/{AGENT['id']}/message/stream"
    done = {"done": True, **({"finish": finish} if finish else {})}
    end = f"event: done\ndata: {json.dumps(done)}\n\n".encode()
    daemon.answers[path] = (200, stream(("chunk", "content", "half")) + end)
    assert run(monkeypatch, "message", "ada", "hello") == 0
    told = capsys.readouterr()
    assert told.out == "half\n"
    assert words in told.err
    assert bool(told.err) is bool(words)


def test_a_message_to_nobody_names_who_is_there(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, "message", "bob", "hello") == 1
    assert "no agent is named 'bob'; there are: ada" in capsys.readouterr().err
    assert len(daemon.heard) == 1


def test_what_the_daemon_refuses_is_shown(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    path = f"POST /api/agents/{AGENT['id']}/message/stream"
    daemon.answers[path] = (409, {"error": "the agent is suspended"})
    assert run(monkeypatch, "message", "ada", "hello") == 1
    assert capsys.readouterr().err == "Error: the agent is suspended\n"


@pytest.mark.parametrize("answer", [b"", b"<html>", b"\xff"])
def test_an_answer_that_is_no_json_is_an_error(
    daemon: ScriptedDaemon,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    answer: bytes,
) -> None:
    daemon.answers["GET /api/status"] = (502, answer)
    assert run(monkeypatch, "status") == 1
    assert "answered 502 without JSON" in capsys.readouterr().err


def test_stop_asks_and_waits_for_the_process(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, "stop") == 0
    assert capsys.readouterr().out == "stopped\n"
    assert daemon.heard[0][0] == "POST /api/shutdown"


def test_stop_says_how_many_turns_it_waits_for(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    answer = {"status": "shutting_down", "running_turns": 2}
    daemon.answers["POST /api/shutdown"] = (200, answer)
    assert run(monkeypatch, "stop") == 0
    assert capsys.readouterr().out == "waiting for 2 running turns\nstopped\n"


def test_plugins_are_listed_as_the_running_daemon_has_them(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    row = {
        "key": "plugin:cli",
        "distribution": "agenthost",
        "version": "0.1.0",
        "status": "failed",
        "reason": "no battery",
    }
    daemon.answers["GET /api/health/detail"] = (200, {"plugins": [row]})
    assert run(monkeypatch, "plugins", "list") == 0
    assert "failed    agenthost 0.1.0  no battery" in capsys.readouterr().out


def test_without_a_daemon_plugins_are_listed_as_they_would_load(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, "plugins", "list", "--json") == 0
    rows = {row["key"]: row["status"] for row in json.loads(capsys.readouterr().out)}
    assert rows["plugin:cli"] == "enabled"


def test_a_detached_start_believes_only_a_daemon_that_answers(
    daemon: ScriptedDaemon, folder: Path
) -> None:
    pid = running.running_daemon(folder).pid
    assert not detached.serves(folder, pid)
    daemon.answers["GET /api/health"] = (200, {"status": "degraded"})
    assert detached.serves(folder, pid)
    assert not detached.serves(folder, pid + 1)


def test_the_log_is_its_owners_alone_and_makes_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "LONGEST_LOG", 4)
    log = folder / "daemon.log"
    log.write_text("old ones")
    log.chmod(0o644)
    for text in (b"new", b"er"):
        with detached.opened_log(folder) as stream:
            stream.write(text)
    assert log.read_text() == "newer"
    assert log.stat().st_mode & 0o777 == 0o600
    assert (folder / "daemon.log.1").read_text() == "old ones"


def test_a_home_that_cannot_be_made_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("AGENTHOST_HOME", "/proc/nope")
    assert run(monkeypatch, "start", "--detach") == 1
    said = capsys.readouterr().err
    assert "/proc/nope cannot be written" in said
    assert "Traceback" not in said


def test_a_start_without_a_home_is_a_sentence_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTHOST_HOME", "/proc")
    answer = subprocess.run(
        [sys.executable, "-m", "agenthost_cli", "start"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    (said,) = answer.stderr.splitlines()
    assert said.startswith("agenthost did not start: /proc/daemon.lock cannot be")


def test_the_key_comes_from_the_configuration_or_the_environment(
    daemon: ScriptedDaemon, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "config.toml").write_text('api_key = "from-file"\n', encoding="utf-8")
    run(monkeypatch, "status")
    monkeypatch.setenv("AGENTHOST_API_KEY", "from-environment")
    run(monkeypatch, "status")
    keys = [key for _, key, _ in daemon.heard]
    assert keys == ["Bearer from-file", "Bearer from-environment"]


def test_a_missing_key_names_the_remedy(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    daemon.answers["GET /api/status"] = (401, {"error": "unauthenticated"})
    assert run(monkeypatch, "status") == 1
    assert "set AGENTHOST_API_KEY" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("status",), ("stop",), ("message", "a", "b")])
def test_without_a_daemon_every_command_says_how_to_start_one(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, *command) == 1
    assert "agenthost start" in capsys.readouterr().err


def test_a_file_left_behind_by_a_killed_daemon_is_not_believed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        tell(folder, f"127.0.0.1:{server.server_port}")
    assert run(monkeypatch, "status") == 1
    assert "no daemon runs on" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": 1, "listen_addr": "x"}'])
def test_a_broken_daemon_file_is_an_error_not_a_crash(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    text: str,
) -> None:
    (folder / "daemon.json").write_text(text, encoding="utf-8")
    assert run(monkeypatch, "status") == 1
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("127.0.0.1:4200", "127.0.0.1"),
        ("0.0.0.0:4200", "127.0.0.1"),
        ("[::]:4200", "::1"),
        ("[fd00::1]:4200", "fd00::1"),
    ],
)
def test_an_address_is_one_that_can_be_asked(
    folder: Path, address: str, host: str
) -> None:
    tell(folder, address)
    assert running.running_daemon(folder) == running.RunningDaemon(1, host, 4200)


def test_a_wrong_use_ends_with_2_and_an_interrupt_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def interrupted() -> Path:
        raise KeyboardInterrupt

    assert run(monkeypatch, "message", "ada") == 2
    assert "Missing argument 'TEXT'" in capsys.readouterr().err
    monkeypatch.setattr(commands, "home_folder", interrupted)
    assert run(monkeypatch, "status") == 130
    assert capsys.readouterr().err == "\n"


def test_an_interrupt_while_a_start_is_imported_ends_with_130_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "agenthost_cli.foreground":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "agenthost_cli.foreground")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert run(monkeypatch, "start") == 130
    assert capsys.readouterr().err == "\n"


@pytest.mark.parametrize("code", [0, 1, 130])
def test_start_runs_in_the_foreground_and_ends_with_its_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    homes: list[Path] = []

    def start(home: Path) -> int:
        homes.append(home)
        return code

    monkeypatch.setattr(foreground, "run_daemon", start)
    assert run(monkeypatch, "start") == code
    assert homes == [folder]


def test_a_detached_daemon_that_is_refused_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (folder / "config.toml").write_text("listen_addr = 7\n", encoding="utf-8")
    assert run(monkeypatch, "start", "--detach") == 1
    assert "listen_addr" in capsys.readouterr().err


@click.command("greet")
@click.argument("name")
def greet(name: str) -> None:
    """Greet somebody."""
    click.echo(f"hello {name}")


class OfferingPlugins:
    """Loaded plugins of which one brings a command."""

    async def collect(self, hook: str) -> Iterable[tuple[str, CommandSpec]]:
        assert hook == "register_command"
        return [("plugin:greeter", CommandSpec(greet))]


def test_register_command_brings_commands_of_plugins(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(extensions, "load_plugins", lambda _: OfferingPlugins())
    assert run(monkeypatch, "greet", "ada") == 0
    assert capsys.readouterr().out == "hello ada\n"
    assert run(monkeypatch, "plugins", "commands") == 0
    assert "Greet somebody." in capsys.readouterr().out
    assert run(monkeypatch, "gret", "ada") == 2
    assert "No such command 'gret'" in capsys.readouterr().err


def test_commands_of_plugins_find_the_home(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (folder / "config.toml").write_text("[turns]\nmax_iterations = 7\n")
    assert run(monkeypatch, "config", "get", "turns.max_iterations") == 0
    assert capsys.readouterr().out == "7\n"


def test_commands_of_plugins_are_there_though_the_configuration_is_wrong(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (folder / "config.toml").write_text("log_level = 'loud'\n")
    assert run(monkeypatch, "config", "check") == 1
    assert "config.toml line 1: log_level" in capsys.readouterr().err
    assert run(monkeypatch, "config", "set", "log_level", "info") == 0
    assert run(monkeypatch, "config", "check") == 0


def test_help_imports_neither_the_kernel_nor_what_is_heavy() -> None:
    script = (
        "import sys; sys.argv = ['agenthost', '--help']; import agenthost_cli\n"
        "agenthost_cli.main()\n"
        "heavy = {'agenthost', 'pydantic', 'asyncio', 'http.client', 'pluggy'}\n"
        "sys.exit(repr(sorted(heavy & set(sys.modules))))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert answer.stderr.strip() == "[]"
    assert "Usage: agenthost" in answer.stdout
