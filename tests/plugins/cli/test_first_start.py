"""What a start says and offers on a new home, in a terminal and without one."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import click
import pytest
from agenthost_cli.errors import CommandError
from agenthost_cli.first_start import asks, exposed, is_new, make_key, offer_key
from click.testing import CliRunner

SECONDS = 40.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("AGENTHOST_API_KEY", raising=False)
    return tmp_path / "home"


def key_in(home: Path) -> str:
    config = tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    return str(config["api_key"])


def test_without_a_terminal_nobody_is_asked(home: Path) -> None:
    assert is_new(home)
    assert not asks(home)
    assert not home.exists()


@pytest.mark.parametrize("there", ["data", "config.toml", "key"])
def test_a_person_is_asked_on_a_new_home_alone(
    home: Path,
    there: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    assert asks(home)
    home.mkdir()
    assert asks(home)
    if there == "key":
        monkeypatch.setenv("AGENTHOST_API_KEY", "given")
    elif there == "data":
        (home / there).mkdir()
    else:
        (home / there).touch()
    assert not asks(home)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("answer", ["\n", "y\n", "n\n"])
def test_a_key_is_made_for_who_wants_one(home: Path, answer: str) -> None:
    @click.command()
    def ask() -> None:
        offer_key(home)

    result = CliRunner().invoke(ask, input=answer)
    assert result.exit_code == 0
    assert (home / "config.toml").exists() is (answer != "n\n")
    if answer != "n\n":
        assert f"api_key = {key_in(home)}" in result.output
        assert len(key_in(home)) >= 40
        assert (home / "config.toml").stat().st_mode & 0o777 == 0o600
        assert home.stat().st_mode & 0o777 == 0o700


def test_a_key_is_made_when_it_is_asked_for_and_the_rest_stays(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    text = (
        '# mine\nlog_level = "debug"\napi_key = " "\n\n[server]\naccess_log = "text"\n'
    )
    (home / "config.toml").write_text(text)
    make_key(home)
    made = (home / "config.toml").read_text()
    key = key_in(home)
    assert made == text.replace('" "', f'"{key}"')
    make_key(home)
    assert key_in(home) == key
    assert "there is an api_key already" in capsys.readouterr().err


def test_a_key_stands_before_the_tables(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text('[server]\naccess_log = "text"\n')
    make_key(home)
    assert key_in(home)


def test_a_file_that_cannot_be_read_is_not_overwritten(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("api_key = [")
    with pytest.raises(CommandError):
        make_key(home)
    assert (home / "config.toml").read_text() == "api_key = ["


@pytest.mark.parametrize(
    ("mode", "warned"), [(0o700, 0), (0o750, 1), (0o701, 1), (0o755, 1)]
)
def test_a_home_that_others_may_look_into_is_warned_of(
    home: Path, mode: int, warned: int
) -> None:
    assert exposed(home) == []
    home.mkdir()
    home.chmod(mode)
    warnings = exposed(home)
    assert len(warnings) == warned
    assert all("chmod 700" in warning for warning in warnings)


@pytest.mark.conformance
def test_a_person_at_a_terminal_says_yes_and_the_daemon_wants_the_key(
    home: Path,
) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "AGENTHOST_HOME": str(home),
        "AGENTHOST_LISTEN_ADDR": "127.0.0.1:0",
    }
    main, other = pty.openpty()
    daemon = subprocess.Popen(
        [sys.executable, "-m", "agenthost"],
        env=environ,
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
    )
    os.close(other)
    said, deadline = b"", time.monotonic() + SECONDS
    try:
        while b"serves at" not in said:
            assert time.monotonic() < deadline, said
            said += os.read(main, 4096)
            if said.endswith(b"[Y/n]: "):
                os.write(main, b"y\n")
        found = re.search(rb"api_key = (\S+)", said)
        assert found is not None, said
        assert found[1].decode() == key_in(home)
        told = subprocess.run(
            [sys.executable, "-m", "agenthost_cli", "status"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        assert "agents: 0" in told.stdout
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(SECONDS)
        os.close(main)


@pytest.mark.conformance
def test_without_a_terminal_a_new_home_is_told_of_in_a_line_and_served(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTHOST_HOME", str(home))
    monkeypatch.setenv("AGENTHOST_LISTEN_ADDR", "127.0.0.1:0")
    for told in (1, 0):
        for words in (["start", "--detach"], ["stop"]):
            command = [sys.executable, "-m", "agenthost_cli", *words]
            subprocess.run(command, timeout=90, check=True, capture_output=True)
        lines = (home / "daemon.log").read_text().splitlines()
        assert sum("every page that a browser here has" in x for x in lines) == told
        (home / "daemon.log").unlink()
