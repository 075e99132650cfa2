"""``agenthost plugins``: shown, switched on and off in ``config.toml``."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

import agenthost_cli
import pytest
from agenthost import PluginState, find_plugins
from agenthost.testing.daemons import Distribution, Provided
from agenthost_cli import config_file, switching

from .test_commands import ScriptedDaemon, daemon, folder

__all__ = ["daemon", "folder"]

Captured = pytest.CaptureFixture[str]
CONFIG = """# kept
listen_addr = "127.0.0.1:0"  # also kept

[plugins]
set = "default"
enable = [
  "acme",  # ours
  "plugin:web_ui",
]
disable = ["channel:*"]  # none

[storage]
# nothing
"""
ACME = PluginState(
    "plugin:acme", "acme", "1", Provided(None, "acme", dist=Distribution("acme", "1"))
)
TWINS = tuple(
    PluginState(f"{kind}:twin", "acme", "1", Provided(None, "twin"))
    for kind in ("tool", "channel")
)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two distributions of others beside what is installed."""
    found = (*find_plugins(), ACME, *TWINS)
    monkeypatch.setattr(switching, "find_plugins", lambda: found)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["agenthost", "plugins", *arguments])
    return agenthost_cli.main()


def write(folder: Path, text: str, mode: int = 0o640) -> Path:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8", newline="")
    file.chmod(mode)
    return file


def lists(file: Path) -> dict[str, Any]:
    plugins = tomllib.loads(file.read_text(encoding="utf-8"))["plugins"]
    return {name: plugins.get(name, []) for name in ("enable", "disable")}


def test_disabling_keeps_comments_mode_and_the_rest(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    file = write(folder, CONFIG)
    assert run(monkeypatch, "disable", "web_ui") == 0
    assert capsys.readouterr().out == (
        "plugin:web_ui is disabled in config.toml; restart the daemon to apply\n"
    )
    changed = CONFIG.replace('  "plugin:web_ui",\n', "").replace(
        '["channel:*"]', '["channel:*", "plugin:web_ui"]'
    )
    assert file.read_text(encoding="utf-8") == changed
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in folder.iterdir()] == ["config.toml"]


def test_enabling_takes_back_what_disabling_wrote(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, "disable", "plugin:web_ui") == 0
    file = folder / "config.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert lists(file) == {"enable": [], "disable": ["plugin:web_ui"]}
    assert run(monkeypatch, "enable", "web_ui") == 0
    assert lists(file) == {"enable": [], "disable": []}


def test_a_plugin_of_others_is_named_to_be_enabled(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, "enable", "acme") == 0
    assert lists(folder / "config.toml")["enable"] == ["plugin:acme"]
    assert run(monkeypatch, "enable", "acme") == 0
    assert capsys.readouterr().out.endswith("plugin:acme is enabled already\n")
    assert run(monkeypatch, "disable", "acme") == 0
    assert lists(folder / "config.toml") == {"enable": [], "disable": []}


def test_a_slug_that_two_share_must_be_said_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    file = write(folder, '[plugins]\nenable = ["twin"]\n')
    assert run(monkeypatch, "disable", "twin") == 1
    assert "'twin' may be tool:twin or channel:twin" in capsys.readouterr().err
    assert run(monkeypatch, "disable", "tool:twin") == 0
    # The other one stays on.
    assert lists(file) == {"enable": ["twin"], "disable": ["tool:twin"]}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("web_iu", "no plugin is named 'web_iu'; did you mean 'web_ui'?"),
        ("plugin:web_iu", "did you mean 'plugin:web_ui'?"),
        ("*", "no plugin is named '*'"),
        ("x" * 5_000, "no plugin is named"),
        ("", "no plugin is named ''"),
    ],
)
def test_a_name_that_nobody_has_changes_nothing(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    name: str,
    said: str,
) -> None:
    file = write(folder, CONFIG)
    for verb in ("enable", "disable", "info"):
        assert run(monkeypatch, verb, name) == 1
        assert said in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == CONFIG


def test_what_nothing_starts_without_is_not_disabled(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, "disable", "storage") == 1
    assert (
        "no other plugin that is on serves files and vault" in capsys.readouterr().err
    )
    assert not (folder / "config.toml").exists()


@pytest.mark.parametrize(
    ("text", "verb", "environ", "said"),
    [
        (
            '[plugins]\ndisable = ["web_*"]\n',
            "enable",
            {},
            "a pattern of plugins.disable",
        ),
        ("", "disable", {"AGENTHOST_PLUGINS__DISABLE": "x"}, "AGENTHOST_PLUGINS__DIS"),
    ],
)
def test_what_the_file_cannot_decide_is_said_and_not_written(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    text: str,
    verb: str,
    *,
    environ: dict[str, str],
    said: str,
) -> None:
    file = write(folder, text)
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    assert run(monkeypatch, verb, "web_ui") == 1
    assert said in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "text",
    [
        "plugins = 3\n",
        "[plugins]\nenable = 'x'\n",
        "listen_addr = 3\n",
        "a = [\n",
        "\0",
        '[plugins]\ndisable = "web_ui"\n',
    ],
)
def test_a_file_that_is_wrong_stays_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, text: str
) -> None:
    file = write(folder, text)
    assert run(monkeypatch, "disable", "web_ui") == 1
    assert capsys.readouterr().err.startswith("Error: ")
    assert file.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "text",
    [
        'plugins = { set = "default" }\n',
        'plugins.set = "default"\n',
        '\ufeffset_by = "me"\r\n[plugins]\r\nset = "default"\r\n',
        'log_level = "info"',
    ],
)
def test_other_ways_to_write_it_are_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    file = write(folder, text)
    assert run(monkeypatch, "disable", "web_ui") == 0
    assert lists(file)["disable"] == ["plugin:web_ui"]
    assert (b"\r\n" in file.read_bytes()) is ("\r\n" in text)


def test_a_link_is_followed_and_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any
) -> None:
    real = tmp_path_factory.mktemp("elsewhere") / "real.toml"
    real.write_text("# mine\n", encoding="utf-8")
    (folder / "config.toml").symlink_to(real)
    assert run(monkeypatch, "disable", "web_ui") == 0
    assert (folder / "config.toml").is_symlink()
    assert real.read_text(encoding="utf-8").startswith("# mine\n")
    assert lists(real)["disable"] == ["plugin:web_ui"]


def test_a_full_disk_leaves_the_file_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    file = write(folder, CONFIG)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run(monkeypatch, "disable", "web_ui") == 1
    assert "cannot be written: No space left" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == CONFIG
    assert [path.name for path in folder.iterdir()] == ["config.toml"]


def test_changes_at_once_wait_for_each_other(folder: Path) -> None:
    write(folder, "")
    threads = [
        threading.Thread(
            target=switching.switch, args=(folder, key), kwargs={"on": True}
        )
        for key in ("plugin:acme", "tool:twin", "channel:twin")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    enabled = lists(folder / "config.toml")["enable"]
    assert sorted(enabled) == ["channel:twin", "plugin:acme", "tool:twin"]


def test_a_leftover_of_a_killed_change_is_no_obstacle(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / f".{config_file.FILE}.new").write_text("half", encoding="utf-8")
    assert run(monkeypatch, "disable", "web_ui") == 0
    assert [path.name for path in folder.iterdir()] == ["config.toml"]


HIDDEN = {"anyOf": [{"writeOnly": True}, {"type": "null"}], "default": "**"}
ROW = {
    "key": "plugin:acme",
    "distribution": "acme",
    "version": "1",
    "status": "failed",
    "reason": "no battery",
    "first_party": False,
    "offers": {"tool": ["dig", "delve"], "listener": []},
    "manifest_tables": ["digging"],
}
SCHEMA = {
    "key": "plugin:acme",
    "config": [
        {
            "name": "acme",
            "schema": {
                "properties": {
                    "rooms": {"description": "Where.", "default": None},
                    "key": HIDDEN,
                }
            },
        }
    ],
    "manifest": [
        {
            "name": "digging",
            "schema": {
                "properties": {
                    "metres": {"default": 3, "description": "How deep."},
                    "token": {
                        "writeOnly": True,
                        "default": "**",
                        "description": "Key.",
                    },
                }
            },
        }
    ],
}


def test_a_plugin_is_shown_as_the_running_daemon_has_it(
    daemon: ScriptedDaemon, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    daemon.answers["GET /api/plugins"] = (200, {"plugins": [ROW], "total": 1})
    daemon.answers["GET /api/plugins/plugin:acme/schema"] = (200, SCHEMA)
    assert run(monkeypatch, "info", "acme") == 0
    assert capsys.readouterr().out.splitlines() == [
        "plugin:acme is failed: no battery",
        "from acme 1, another's",
        "tool: dig, delve",
        "listener",
        "config [acme]",
        "  rooms  Where.",
        "  key (secret)",
        "manifest [digging]",
        "  metres [3]  How deep.",
        "  token (secret)  Key.",
    ]
    assert run(monkeypatch, "info", "plugin:acme", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {**ROW, **SCHEMA}


def test_without_a_daemon_a_plugin_is_shown_as_it_would_load(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert run(monkeypatch, "info", "http_api") == 0
    assert "plugin:http_api is enabled" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("tools", "Roll Dice"),
        ("tool",),
        ("tool", "../a"),
        ("tool", ""),
        ("tool", "9"),
        ("tool", "Roll Dice", "--author", "a\x7f"),
        ("tool", "Roll Dice", "--author", "a\udcff"),
    ],
)
def test_a_plugin_that_cannot_be_made_is_a_wrong_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "new", *arguments) == 2
    assert not list(tmp_path.iterdir())


def test_a_new_plugin_stands_in_a_folder_of_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "new", "tool", "Roll Dice") == 0
    assert "agenthost-tool-roll-dice is made" in capsys.readouterr().out
    made = tmp_path / "agenthost-tool-roll-dice"
    assert (made / "agenthost_tool_roll_dice.py").is_file()
    assert run(monkeypatch, "new", "tool", "Roll Dice") == 2


def test_a_folder_that_cannot_be_written_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    into = str(tmp_path / "file" / "below")
    assert run(monkeypatch, "new", "tool", "Roll Dice", "--into", into) == 1
    assert "cannot be written" in capsys.readouterr().err
