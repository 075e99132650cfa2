"""The kernel's own keys: defaults, environment, and many ways to break them."""

from __future__ import annotations

from pathlib import Path

import pytest
from agenthost.config import LoadedConfig, check_exposure, load_config
from agenthost.config_model import Config
from agenthost.errors import ConfigError

# text of config.toml, line that must be named, key or place that must be named
BROKEN: list[tuple[str, int, str]] = [
    ("listen_addr =", 1, "listen_addr"),
    ("listen_addr = 127.0.0.1:4200", 1, "column 20"),
    ('listen_addr = "127.0.0.1:4200', 1, "column"),
    ("\n[budget\n", 2, "column"),
    ("a b = 1", 1, "column"),
    ("# x\n\nlog_level", 3, "column"),
    ('api_key = "a"\napi_key = "b"', 2, "api_key"),
    ("[turns]\n[turns]\n", 2, "column"),
    ("\n\nx = [1, 2", 3, "column"),
    ("x = 1979-99-01", 1, "x"),
    ("x = " + "[" * 5_000 + "]" * 5_000, 1, "deeper"),
    ("x" + ".x" * 5_000 + " = 1", 1, "deeper"),
    ('s = "\\q"', 1, "column"),
    ('listen_addr = "4200"', 1, "listen_addr"),
    ('\nlisten_addr = ":4200"', 2, "listen_addr"),
    ('listen_addr = "127.0.0.1"', 1, "listen_addr"),
    ('listen_addr = "127.0.0.1:"', 1, "listen_addr"),
    ('listen_addr = "127.0.0.1:http"', 1, "listen_addr"),
    ('listen_addr = "127.0.0.1:65536"', 1, "listen_addr"),
    ('listen_addr = "127.0.0.1:0000099999"', 1, "listen_addr"),
    ('listen_addr = "127.0.0.1:-1"', 1, "listen_addr"),
    ('listen_addr = "127.0.0.256:80"', 1, "listen_addr"),
    ('listen_addr = "::1:4200"', 1, "listen_addr"),
    ('listen_addr = "[::1:4200"', 1, "listen_addr"),
    ('listen_addr = "[fe80::zz]:1"', 1, "listen_addr"),
    ('listen_addr = "http://localhost:1"', 1, "listen_addr"),
    ('listen_addr = "bad host:1"', 1, "listen_addr"),
    ("listen_addr = 4200", 1, "listen_addr"),
    ("api_listen = 4200", 1, "api_listen"),
    ('listen_addr = "127.0.0.1:1"\napi_listen = "127.0.0.1:2"', 2, "api_listen"),
    ('listen_addr = "0.0.0.0:4200"', 1, "api_key"),
    ('\nlisten_addr = "[::]:4200"', 2, "api_key"),
    ('listen_addr = "192.168.1.5:4200"\napi_key = "  "', 1, "api_key"),
    ('listen_addr = "my.host:4200"', 1, "api_key"),
    ('api_listen = "0.0.0.0:1"\napi_keys = "abc"', 1, "api_key"),
    ('listen_addr = "0.0.0.0:1"\n[server]\napi_key = "abc"', 1, "api_key"),
    (
        'listen_addr = "0.0.0.0:1"\nallow_unauthenticated_network = "true"',
        2,
        "allow_unauthenticated_network",
    ),
    ("api_key = 12345", 1, "api_key"),
    ("api_key = false", 1, "api_key"),
    ('api_key = ["secret"]', 1, "api_key"),
    ('[api_key]\nvalue = "x"', 1, "api_key"),
    ('api_key = "a\\nb"', 1, "api_key"),
    ("data_dir = 3", 1, "data_dir"),
    ('log_level = "loud"', 1, "log_level"),
    ('node = ""', 1, "node"),
    ('node = "a b"', 1, "node"),
    ('node = "a\\n"', 1, "node"),
    (f'node = "{"a" * 65}"', 1, "node"),
    ('[default_model]\nprovider = ["groq"]', 2, "default_model.provider"),
    ('default_model = "groq"', 1, "default_model"),
    ('[plugins]\n\nset = "minimum"', 3, "plugins.set"),
    ('[plugins]\nenable = "tool:x"', 2, "plugins.enable"),
    ("[plugins]\ndisable = [1]", 2, "plugins.disable[0]"),
    ('[storage]\nurl = ["x"]', 2, "storage.url"),
    ("[backends]\njobs = 1", 2, "backends.jobs"),
]


def load(home: Path, text: str, **environ: str) -> LoadedConfig:
    (home / "config.toml").write_text(text, encoding="utf-8")
    return load_config(home, environ)


@pytest.mark.parametrize(("text", "line", "key"), BROKEN)
def test_a_broken_configuration_names_line_and_key(
    tmp_path: Path, text: str, line: int, key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert f"config.toml line {line}" in caught.value.message
    assert key in caught.value.message
    assert str(tmp_path) not in caught.value.message


def test_no_file_means_defaults(tmp_path: Path) -> None:
    loaded = load_config(tmp_path, {})
    config = loaded.config
    assert (config.host, config.port) == ("127.0.0.1", 4200)
    assert config.api_key is None
    assert config.data_dir == tmp_path / "data"
    assert config.plugins.set == "default"
    assert config.backends == {}


def test_a_folder_in_place_of_the_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match=r"config\.toml cannot be read"):
        load_config(tmp_path, {})


def test_a_file_that_is_no_utf8_is_said_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'log_level = "info"\nx = "\xff"\n')
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        load_config(tmp_path, {})


def test_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    text = '\ufefflog_level = "DEBUG"\r\n[plugins]\r\nset = "minimal"\r\n'
    (tmp_path / "config.toml").write_bytes(text.encode())
    config = load_config(tmp_path, {}).config
    assert (config.log_level, config.plugins.set) == ("debug", "minimal")


def test_the_key_is_trimmed_and_never_shown(tmp_path: Path) -> None:
    config = load(tmp_path, 'api_key = "  canary-key  "').config
    assert config.api_key is not None
    assert config.api_key.reveal() == "canary-key"
    assert "canary" not in repr(config)
    assert "canary" not in str(config)


def test_what_is_said_does_not_show_itself(tmp_path: Path) -> None:
    text = "[acme]\ntoken = 'canary'"
    assert "canary" not in repr(load(tmp_path, text, AGENTHOST_ACME__KEY="canary"))


def test_the_storage_url_is_not_shown(tmp_path: Path) -> None:
    config = load(tmp_path, '[storage]\nurl = "postgresql://u:canary@h/d"').config
    assert config.storage.url is not None
    assert "canary" not in f"{config!r}{config}{config.model_dump()}"


def test_sections_of_plugins_are_not_judged_yet(tmp_path: Path) -> None:
    assert load(tmp_path, "budget = 3\n[web.fetch]\nmax_chars = 'x'").config.host


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        '[default_model]\nprovider = "groq"\nmodel = "m"',
        AGENTHOST_DEFAULT_MODEL__PROVIDER="openai",
        AGENTHOST_PLUGINS__ENABLE='["tool:x"]',
        AGENTHOST_PLUGINS__DISABLE="a, b",
        AGENTHOST_API_LISTEN="[::1]:99",
        AGENTHOST_API_KEY=" key ",
        AGENTHOST_HOME="/elsewhere",
    ).config
    default = config.default_model
    assert (default.provider, default.model) == ("openai", "m")
    assert config.plugins.enable == ("tool:x",)
    assert config.plugins.disable == ("a", "b")
    assert (config.host, config.port) == ("::1", 99)
    assert config.api_key is not None


def test_a_wrong_value_of_a_secret_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, 'api_key = ["canary-key"]')
    assert "canary" not in caught.value.message


def test_an_empty_variable_does_not_take_the_key_away(tmp_path: Path) -> None:
    config = load(tmp_path, 'api_key = "k"', AGENTHOST_API_KEY="").config
    assert config.api_key is not None


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="AGENTHOST_PLUGINS__SET"):
        load(tmp_path, "", AGENTHOST_PLUGINS__SET="many")


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:1", "[::1]:2"])
def test_loopback_needs_no_key(tmp_path: Path, address: str) -> None:
    assert load(tmp_path, f'listen_addr = "{address}"').config.listens_on_loopback


@pytest.mark.setting("allow_unauthenticated_network")
@pytest.mark.parametrize(
    "more", ['api_key = "k"', "allow_unauthenticated_network = true"]
)
def test_the_network_is_open_only_on_purpose(tmp_path: Path, more: str) -> None:
    config = load(tmp_path, f'listen_addr = "0.0.0.0:4200"\n{more}').config
    assert not config.listens_on_loopback
    check_exposure(config)


def test_exposure_is_checked_without_a_file(tmp_path: Path) -> None:
    config = Config(listen_addr="0.0.0.0:1", data_dir=tmp_path)
    with pytest.raises(ConfigError, match="can be reached from the network"):
        check_exposure(config)
