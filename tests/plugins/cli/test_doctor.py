"""``doctor``, ``completion`` and ``open``: what operators get wrong, and small help."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import agenthost_cli
import click
import pytest

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("AGENTHOST_HOME", str(folder))
    monkeypatch.setenv("AGENTHOST_LISTEN_ADDR", "127.0.0.1:0")
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)
    return folder


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["agenthost", *arguments])
    return agenthost_cli.main()


def examined(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, *more: str
) -> tuple[int, dict[str, tuple[str, str]]]:
    code = run(monkeypatch, "doctor", "--json", *more)
    findings = json.loads(capsys.readouterr().out)
    return code, {each["check"]: (each["verdict"], each["told"]) for each in findings}


def test_a_good_home_is_told_in_a_table(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, "doctor") == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["CHECK", "VERDICT", "FOUND"]
    assert {row.split()[1] for row in rows} == {"ok"}


def test_what_others_can_read_is_mended_where_it_is_asked_for(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    file = home / "config.toml"
    file.write_text('api_key = "short"\n')
    file.chmod(0o644)
    code, found = examined(monkeypatch, capsys)
    assert (code, found["permissions"][0]) == (0, "warning")
    assert found["api_key"][0] == "warning"
    assert file.stat().st_mode & 0o777 == 0o644
    code, found = examined(monkeypatch, capsys, "--repair")
    assert (code, found["permissions"][0]) == (0, "repaired")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "short" not in str(found).replace("under 16", "")


def test_a_wrong_file_is_broken_and_ends_with_1(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (home / "config.toml").write_text("log_level = 7\n")
    code, found = examined(monkeypatch, capsys)
    assert (code, found["configuration"][0]) == (1, "broken")
    assert "log_level" in found["configuration"][1]


def test_a_clock_that_went_back_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    data = home / "data"
    data.mkdir()
    (data / "agenthost.db").write_bytes(b"")
    ahead = time.time() + 3 * 86_400
    os.utime(data / "agenthost.db", (ahead, ahead))
    code, found = examined(monkeypatch, capsys)
    assert (code, found["clock"][0]) == (1, "broken")


def test_the_note_of_a_daemon_that_is_gone_is_taken_back(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", ""]) as process:
        pass
    facts = {"pid": process.pid, "listen_addr": "127.0.0.1:1"}
    (home / "daemon.json").write_text(json.dumps(facts))
    (home / "daemon.json").chmod(0o600)
    _, found = examined(monkeypatch, capsys)
    assert found["daemon"][0] == "warning"
    _, found = examined(monkeypatch, capsys, "--repair")
    assert found["daemon"][0] == "repaired"
    assert not (home / "daemon.json").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, shell: str
) -> None:
    assert run(monkeypatch, "completion", shell) == 0
    told = capsys.readouterr().out
    assert "_AGENTHOST_COMPLETE" in told
    assert run(monkeypatch, "completion", "tcsh") == 2


def test_the_page_is_opened_or_its_address_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    facts = {"pid": 1, "listen_addr": "0.0.0.0:4200"}
    (home / "daemon.json").write_text(json.dumps(facts))
    opened: list[str] = []

    def launch(address: str) -> int:
        opened.append(address)
        return len(opened) - 1

    monkeypatch.setattr(click, "launch", launch)
    assert run(monkeypatch, "open", "--print") == 0
    address = capsys.readouterr().out.strip()
    assert address.startswith("http://127.0.0.1:4200")
    assert opened == []
    assert run(monkeypatch, "open") == 0
    assert opened == [address]
    assert run(monkeypatch, "open") == 1
    assert "no browser could be opened" in capsys.readouterr().err
