"""``agenthost config``: shown with its origin, changed without harm, checked."""

from __future__ import annotations

import fcntl
import json
import os
import tomllib
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from agenthost.plugins.discovery import installed_entries
from agenthost.testing.daemons import provided
from agenthost_settings.commands import config
from click.testing import CliRunner, Result

from .test_checking import acme

TEXT = """# my daemon
log_level = "debug"   # while I look

[web.fetch]
# not much
max_chars = 77
allowed_hosts = [
  "wiki.example",  # ours
]
"""


ACME = """[plugins]
enable = ["acme"]
[acme]  # theirs
token = "canary"
old_token = "canary"
rooms = ["hall"]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("AGENTHOST_")]:
        monkeypatch.delenv(name)
    write(tmp_path, TEXT)
    return tmp_path


def write(home: Path, text: str) -> None:
    (home / "config.toml").touch(0o600)
    (home / "config.toml").write_text(text, encoding="utf-8")


def run(home: Path, *arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(
        config, arguments, obj=SimpleNamespace(home=home), input=given
    )


def text_of(home: Path) -> str:
    return (home / "config.toml").read_text(encoding="utf-8")


def shown(home: Path, *arguments: str) -> dict[str, tuple[object, str]]:
    result = run(home, "show", "--json", *arguments)
    assert result.exit_code == 0, result.output
    return {
        row["key"]: (row["value"], row["place"]) for row in json.loads(result.output)
    }


def test_show_says_where_each_value_comes_from(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTHOST_BUDGET__MAX_DAILY_USD", "2.5")
    monkeypatch.setenv("AGENTHOST_SERVER", '{"allowed_hosts": ["a"]}')
    rows = shown(home)
    assert rows["log_level"] == ("debug", "config.toml line 2")
    assert rows["web.fetch.max_chars"] == (77, "config.toml line 6")
    assert rows["budget.max_daily_usd"] == (2.5, "AGENTHOST_BUDGET__MAX_DAILY_USD")
    assert rows["server.allowed_hosts"] == (["a"], "AGENTHOST_SERVER")
    assert rows["turns.max_iterations"] == (50, "default")
    assert rows["storage.url"] == (None, "default")


def test_show_is_for_people_and_can_be_narrowed(home: Path) -> None:
    lines = run(home, "show", "web.fetch").output.splitlines()
    assert len(lines) == 4
    assert lines[1].split("  ")[0] == "web.fetch.max_chars = 77"
    assert lines[1].endswith("# config.toml line 6")
    assert run(home, "show", "storage").output.startswith("# storage.url is not set")


def test_secrets_are_masked_wherever_they_stand(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        home,
        'api_key = "canary"\n[storage]\nurl = "sqlite:canary"\n'
        '[skills.telegram]\ntoken = "canary"\n[[a2a]]\nenv = ["canary"]\n',
    )
    monkeypatch.setenv("AGENTHOST_API_KEY", "canary")
    outputs = [
        run(home, *arguments).output
        for arguments in (
            ("show",),
            ("show", "--json"),
            ("get", "api_key"),
            ("get", "storage.url"),
            ("check",),
            ("set", "api_key", "canary"),
            ("set", "api_key", '["canary'),
        )
    ]
    assert all(outputs)
    assert "canary" not in "".join(outputs)
    assert shown(home)["skills.telegram.token"][0] == "***"


@pytest.fixture
def acme_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where a plugin of somebody else is installed and enabled."""
    entries = [*installed_entries(), *provided([acme()])]
    monkeypatch.setattr("agenthost.plugins.loader.installed_entries", lambda: entries)
    write(home, ACME)
    return home


def test_secrets_of_a_third_party_are_masked(acme_home: Path) -> None:
    rows = shown(acme_home, "acme")
    assert rows["acme.token"] == ("***", "config.toml line 4")
    assert rows["acme.rooms"] == (["hall"], "config.toml line 6")
    assert rows["acme.seconds"] == (1.5, "default")
    told = [
        run(acme_home, *arguments).output
        for arguments in (
            ("show",),
            ("show", "--json"),
            ("get", "acme.token"),
            ("get", "acme"),
            ("check",),
            ("set", "acme.token", "canary"),
            ("set", "acme.old_token", "canary\n2"),
        )
    ]
    assert "canary" not in "".join(told)


def test_a_section_of_a_third_party_is_set_and_checked_like_our_own(
    acme_home: Path,
) -> None:
    assert run(acme_home, "set", "acme.rooms", "hall, cellar").exit_code == 0
    assert '"cellar"' in text_of(acme_home)
    assert "# theirs" in text_of(acme_home)
    refused = run(acme_home, "set", "acme.seconds", "soon")
    assert refused.exit_code == 1
    assert "acme.seconds: must be" in refused.output
    assert "did you mean 'rooms'?" in run(acme_home, "get", "acme.roms").output


def test_get_prints_the_value_alone(home: Path) -> None:
    assert run(home, "get", "log_level").output == "debug\n"
    assert run(home, "get", "web.fetch.max_chars").output == "77\n"
    assert run(home, "get", "storage.url").output == "\n"
    assert len(run(home, "get", "turns").output.splitlines()) == 3


def test_an_unknown_key_is_refused_with_a_hint(home: Path) -> None:
    for arguments in (("get", "log_levle"), ("set", "log_levle", "info")):
        result = run(home, *arguments)
        assert result.exit_code == 1
        assert "did you mean 'log_level'?" in result.output
    assert text_of(home) == TEXT


@pytest.mark.parametrize(
    "arguments", [("set",), ("set", "log_level"), ("get",), ("x",)]
)
def test_a_wrong_use_exits_with_2(home: Path, arguments: tuple[str, ...]) -> None:
    assert run(home, *arguments).exit_code == 2


def test_set_keeps_comments_and_mode(home: Path) -> None:
    (home / "config.toml").chmod(0o640)
    assert run(home, "set", "web.fetch.max_chars", "99").exit_code == 0
    assert run(home, "set", "listen_addr", "127.0.0.1:4300").exit_code == 0
    assert run(home, "set", "budget.max_daily_usd", "2.5").exit_code == 0
    assert (
        run(home, "set", "server.allowed_hosts", "a.example, b.example").exit_code == 0
    )
    text = text_of(home)
    for kept in ("# my daemon", "# while I look", "# not much", "# ours"):
        assert kept in text
    assert tomllib.loads(text) == {
        "log_level": "debug",
        "listen_addr": "127.0.0.1:4300",
        "web": {"fetch": {"max_chars": 99, "allowed_hosts": ["wiki.example"]}},
        "budget": {"max_daily_usd": 2.5},
        "server": {"allowed_hosts": ["a.example", "b.example"]},
    }
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o640


def test_set_makes_a_file_that_nobody_else_reads(home: Path) -> None:
    (home / "config.toml").unlink()
    assert run(home, "set", "api_key", "-", given="a long key\n").exit_code == 0
    assert tomllib.loads(text_of(home)) == {"api_key": "a long key"}
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in home.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("web.fetch.max_chars", "many", "web.fetch.max_chars: must be a whole number"),
        ("log_level", "loud", "must be one of debug"),
        ("listen_addr", "0.0.0.0:1", "set api_key"),
        ("default_model.provider", "opnai", "did you mean 'openai'?"),
        ("providers.mine.dialect", "klingon", "unknown dialect 'klingon'"),
        ("plugins.set", "minmal", "did you mean 'minimal'?"),
        ("plugins.disable", "models", "no plugin serves the port models"),
        ("backends.jobs", "nope", "no plugin serves the port jobs 'nope'"),
        ("storage.url", "mysql://x", "no plugin serves the port store 'mysql'"),
        ("turns", "7", "turns: must be a table"),
    ],
)
def test_set_refuses_what_would_not_start(
    home: Path, key: str, value: str, said: str
) -> None:
    result = run(home, "set", key, value)
    assert result.exit_code == 1
    assert "config.toml stays as it is" in result.output
    assert said in result.output
    assert text_of(home) == TEXT


def test_set_refuses_a_section_that_nobody_reads(home: Path) -> None:
    result = run(home, "set", "skills.x.token", "5")
    assert (result.exit_code, text_of(home)) == (1, TEXT)
    assert "no plugin serves [skills] yet" in result.output


def test_set_mends_a_value_that_keeps_the_daemon_from_starting(home: Path) -> None:
    write(home, TEXT.replace('"debug"', '"loud"'))
    assert run(home, "check").exit_code == 1
    assert run(home, "set", "log_level", "info").exit_code == 0
    assert run(home, "check").exit_code == 0


def test_set_tells_of_a_variable_that_wins_and_judges_the_file_all_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTHOST_LOG_LEVEL", "error")
    assert run(home, "set", "log_level", "loud").exit_code == 1
    result = run(home, "set", "log_level", "info")
    assert result.exit_code == 0
    assert "AGENTHOST_LOG_LEVEL is set here, and wins over the file" in result.output


def test_set_follows_the_other_name_of_a_key(home: Path) -> None:
    write(home, 'api_listen = "127.0.0.1:1"\n')
    assert run(home, "set", "listen_addr", "127.0.0.1:2").exit_code == 0
    assert text_of(home) == 'api_listen = "127.0.0.1:2"\n'


def test_set_keeps_the_ends_of_lines_and_a_link(home: Path) -> None:
    real = home / "elsewhere.toml"
    (home / "config.toml").rename(real)
    real.write_bytes(TEXT.replace("\n", "\r\n").encode())
    (home / "config.toml").symlink_to(real)
    assert run(home, "set", "log_level", "info").exit_code == 0
    assert (home / "config.toml").is_symlink()
    assert b'"info"   # while I look\r\n' in real.read_bytes()
    assert b"\n" not in real.read_bytes().replace(b"\r\n", b"")


def test_set_gets_over_what_a_killed_one_left_behind(home: Path) -> None:
    (home / ".config.toml.new").write_text("half a fi", encoding="utf-8")
    assert run(home, "set", "log_level", "info").exit_code == 0
    assert [file.name for file in home.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    "text", ["x = [", "x = 1\nx = 2", "\0", "[web.fetch]\n[web.fetch]\n"]
)
def test_set_does_not_touch_a_file_that_is_no_toml(home: Path, text: str) -> None:
    write(home, text)
    result = run(home, "set", "log_level", "info")
    assert (result.exit_code, text_of(home)) == (1, text)
    assert "config.toml line" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("web.fetch.max_chars", "web.fetch.max_chars = 1  # dotted\n"),
        ("web.fetch.max_chars", "[web]\nfetch = { max_chars = 1 }  # inline\n"),
        (
            "budget.max_daily_usd",
            "[budget]\n\n[[fallback_providers]]\nprovider='ollama'\n",
        ),
        ("fallback_providers", "[[fallback_providers]]\nprovider = 'ollama'\n"),
        ("web.fetch.max_chars", "[web.fetch]\ntimeout_secs = 1\n[turns]\n[web]\n"),
    ],
)
def test_set_changes_that_key_alone_however_it_is_written(
    home: Path, key: str, text: str
) -> None:
    write(home, text)
    value = '[{"provider": "openai"}]' if key == "fallback_providers" else "3"
    result = run(home, "set", key, value)
    assert result.exit_code == 0, result.output
    *tables, last = key.split(".")
    before, after = tomllib.loads(text), tomllib.loads(text_of(home))
    for table in tables:
        before, after = before.setdefault(table, {}), after[table]
    assert after == {**before, last: json.loads(value)}


def test_nobody_else_changes_the_file_meanwhile(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_out = []

    def replace(file: Path, text: str) -> None:
        other = os.open(file.parent, os.O_RDONLY)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            kept_out.append(text)
        finally:
            os.close(other)

    monkeypatch.setattr("agenthost_toml.writing.replace", replace)
    assert run(home, "set", "log_level", "info").exit_code == 0
    assert [text == TEXT.replace('"debug"', '"info"') for text in kept_out] == [True]


def test_two_that_set_at_once_both_stand(home: Path) -> None:
    both = [
        Thread(target=run, args=(home, "set", *words))
        for words in (("log_level", "info"), ("web.fetch.max_chars", "78"))
    ]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert '"info"' in text_of(home)
    assert "78" in text_of(home)


@pytest.mark.parametrize("value", ["null", "NaN", "-Infinity", "\udcff"])
@pytest.mark.parametrize("key", ["web.fetch.timeout_secs", "turns"])
def test_set_refuses_what_no_toml_can_say(home: Path, key: str, value: str) -> None:
    result = run(home, "set", key, value)
    assert (result.exit_code, text_of(home)) == (1, TEXT)
    assert "nothing that can be written" in result.output


def test_show_of_an_unknown_key_is_refused(home: Path) -> None:
    result = run(home, "show", "web.fetc")
    assert result.exit_code == 1
    assert "did you mean 'fetch'?" in result.output


def test_check_says_what_a_start_would_say(home: Path) -> None:
    write(home, "zzz = 1\n[plugins]\nenable = ['nobody']\n[skills.x]\ntoken = 'x'\n")
    result = run(home, "check")
    assert result.exit_code == 0
    assert "plugins.enable: no plugin is named 'nobody'" in result.output
    assert "zzz: unknown key, ignored" in result.output
    assert "no plugin serves [skills] yet" in result.output
    write(home, "[budget]\nmax_daily_usd = -1\n")
    result = run(home, "check")
    assert result.exit_code == 1
    assert "config.toml line 2: budget.max_daily_usd" in result.output


def test_check_tells_of_a_default_model_without_a_key(home: Path) -> None:
    write(home, "[default_model]\nprovider = 'openai'\n")
    assert "default_model: openai:" in run(home, "check").output


def test_check_leaves_no_trace(home: Path) -> None:
    assert run(home, "check").exit_code == 0
    assert [file.name for file in home.iterdir()] == ["config.toml"]
