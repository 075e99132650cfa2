"""Configuration: defaults, environment, warnings, and sixty ways to break it."""

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
    ('[default_model]\nprovider = ["groq"]', 2, "default_model.provider"),
    ('default_model = "groq"', 1, "default_model"),
    ('[[fallback_providers]]\nmodel = "m"', 1, "fallback_providers[0].provider"),
    ('[fallback_providers]\nprovider = "x"', 1, "fallback_providers"),
    (
        '[[fallback_providers]]\nprovider = "a"\n[[fallback_providers]]\nprovider = 2',
        4,
        "fallback_providers[1].provider",
    ),
    ('[providers.groq]\nbase_url = "groq.com"', 2, "providers.groq.base_url"),
    ('[providers.groq]\nbase_url = "http://"', 2, "providers.groq.base_url"),
    ('[providers]\ngroq = "key"', 2, "providers.groq"),
    ("[providers.groq]\nmodels = [3]", 2, "providers.groq.models[0]"),
    (
        '[providers.groq]\nmodels = [{ id = "x", tier = "big" }]',
        2,
        "providers.groq.models[0].tier",
    ),
    ('[plugins]\n\nset = "minimum"', 3, "plugins.set"),
    ('[plugins]\nenable = "tool:x"', 2, "plugins.enable"),
    ("[plugins]\ndisable = [1]", 2, "plugins.disable[0]"),
    ("[rate_limit]\nenabled = 1", 2, "rate_limit.enabled"),
    ('[rate_limit]\nburst = "500"', 2, "rate_limit.burst"),
    ("[rate_limit]\nunits_per_minute = 0", 2, "rate_limit.units_per_minute"),
    ("rate_limit.burst = 1.5", 1, "rate_limit.burst"),
    ("[channels]\ntelegram = true", 2, "channels.telegram"),
    ('mcp_servers = ["x"]', 1, "mcp_servers[0]"),
    ("[budget]\nmax_daily_usd = -1", 2, "budget.max_daily_usd"),
    ("[budget]\nmax_daily_usd = nan", 2, "budget.max_daily_usd"),
    ("[budget]\nalert_threshold = 80", 2, "budget.alert_threshold"),
    ("[web.fetch]\ntimeout_secs = 0", 2, "web.fetch.timeout_secs"),
    ('[web]\nfetch = "all"', 2, "web.fetch"),
    ("[compaction]\nkeep_recent = 80", 1, "compaction"),
    ("[turns]\nmax_iterations = 1_000_000", 2, "turns.max_iterations"),
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


def test_there_are_sixty_broken_configurations() -> None:
    assert len(BROKEN) >= 60


def test_no_file_means_defaults(tmp_path: Path) -> None:
    loaded = load_config(tmp_path, {})
    config = loaded.config
    assert loaded.warnings == ()
    assert (config.host, config.port) == ("127.0.0.1", 4200)
    assert config.api_key is None
    assert config.data_dir == tmp_path / "data"
    assert config.plugins.set == "default"
    assert config.rate_limit.units_per_minute == 500
    assert config.web.fetch.max_response_bytes == 10 * 1024 * 1024
    assert (config.compaction.threshold_messages, config.turns.max_concurrent) == (
        80,
        256,
    )


def test_a_folder_in_place_of_the_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match=r"config\.toml cannot be read"):
        load_config(tmp_path, {})


def test_a_file_that_is_no_utf8_is_said_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'log_level = "info"\nx = "\xff"\n')
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        load_config(tmp_path, {})


def test_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    text = '\ufefflog_level = "DEBUG"\r\n[turns]\r\nmax_iterations = 3\r\n'
    (tmp_path / "config.toml").write_bytes(text.encode())
    config = load_config(tmp_path, {}).config
    assert (config.log_level, config.turns.max_iterations) == ("debug", 3)


def test_the_key_is_trimmed_and_never_shown(tmp_path: Path) -> None:
    config = load(tmp_path, 'api_key = "  canary-key  "').config
    assert config.api_key is not None
    assert config.api_key.reveal() == "canary-key"
    assert "canary" not in repr(config)
    assert "canary" not in str(config)


def test_a_wrong_value_of_a_secret_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, 'api_key = ["canary-key"]')
    assert "canary" not in caught.value.message


def test_free_tables_and_the_storage_url_are_not_shown(tmp_path: Path) -> None:
    text = (
        '[storage]\nurl = "postgresql://u:canary@h/d"\n'
        '[channels.telegram]\ntoken = "canary"\n'
        '[[mcp_servers]]\nenv = ["canary"]\n'
    )
    config = load(tmp_path, text).config
    assert config.channels["telegram"]["token"] == "canary"
    assert "canary" not in repr(config)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nlog_levle = 'info'", "line 2: log_levle"),
        ("[rate_limt]\nburst = 1", "did you mean 'rate_limit'"),
        ("[web.fetch]\nmax_char = 1", "line 2: web.fetch.max_char: unknown key"),
        ("[providers.x]\nbase_ulr = 'a'", "did you mean 'base_url'"),
        ("[[fallback_providers]]\nprovider = 'a'\nmodle = 'b'", "line 3"),
        ("[providers.x]\nmodels = [{ id = 'a', teir = 'b' }]", "'tier'"),
        ("[budget]\napi_key = 'k'", "belongs above the first [table]"),
        ("zzz = 1", "line 1: zzz: unknown key, ignored"),
    ],
)
def test_an_unknown_key_is_a_warning_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    (warning,) = load(tmp_path, text).warnings
    assert said in warning


def test_free_tables_have_no_unknown_keys(tmp_path: Path) -> None:
    text = "[channels.x]\na = { b = 1 }\n[providers.y.quirks]\nz = 1"
    assert not [said for said in load(tmp_path, text).warnings if "unknown" in said]


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("\n[rate_limit]\nburst = 3", "line 2: no plugin serves [rate_limit] yet"),
        ("[channels.telegram]\ntoken = 'x'", "[channels]"),
        ("[[mcp_servers]]\nname = 'x'", "[mcp_servers]"),
        ("[openai]\nerror_objects = true", "[openai]"),
    ],
)
def test_a_section_that_nothing_reads_is_a_warning(
    tmp_path: Path, text: str, section: str
) -> None:
    (tmp_path / "config.toml").touch(0o600)
    (warning,) = load(tmp_path, text).warnings
    assert section in warning
    assert "it has no effect" in warning


def test_a_section_that_is_switched_off_needs_no_warning(tmp_path: Path) -> None:
    assert load(tmp_path, "[rate_limit]\nenabled = false").warnings == ()
    assert load(tmp_path, "", AGENTHOST_RATE_LIMIT__ENABLED="off").warnings == ()


def test_a_key_in_a_file_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.touch(0o600)
    assert load(tmp_path, "api_key = 'k'").warnings == ()
    file.chmod(0o640)
    (warning,) = load(tmp_path, "api_key = 'k'").warnings
    assert "api_key may hold a secret; chmod 600" in warning
    assert load(tmp_path, "log_level = 'debug'").warnings == ()


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        '[default_model]\nprovider = "groq"\nmodel = "m"\n[rate_limit]\nburst = 1',
        AGENTHOST_DEFAULT_MODEL__PROVIDER="openai",
        AGENTHOST_RATE_LIMIT__BURST="7",
        AGENTHOST_RATE_LIMIT__ENABLED="off",
        AGENTHOST_BUDGET__MAX_DAILY_USD="2.5",
        AGENTHOST_SERVER__ALLOWED_HOSTS="a.example, b.example",
        AGENTHOST_PLUGINS__ENABLE='["tool:x"]',
        AGENTHOST_PROVIDERS__GROQ__BASE_URL="https://groq.example",
        AGENTHOST_CHANNELS__TELEGRAM__TOKEN_ENV="T",
        AGENTHOST_FALLBACK_PROVIDERS='[{"provider": "z"}]',
        AGENTHOST_API_LISTEN="[::1]:99",
        AGENTHOST_API_KEY=" key ",
        AGENTHOST_HOME="/elsewhere",
    ).config
    assert (config.default_model.provider, config.default_model.model) == (
        "openai",
        "m",
    )
    assert (config.rate_limit.burst, config.rate_limit.enabled) == (7, False)
    assert config.budget.max_daily_usd == 2.5
    assert config.server.allowed_hosts == ("a.example", "b.example")
    assert config.plugins.enable == ("tool:x",)
    assert config.providers["groq"].base_url == "https://groq.example"
    assert config.channels == {"telegram": {"token_env": "T"}}
    assert config.fallback_providers[0].provider == "z"
    assert (config.host, config.port) == ("::1", 99)
    assert config.api_key is not None


def test_an_empty_variable_does_not_take_the_key_away(tmp_path: Path) -> None:
    config = load(tmp_path, 'api_key = "k"', AGENTHOST_API_KEY="").config
    assert config.api_key is not None


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="AGENTHOST_RATE_LIMIT__BURST"):
        load(tmp_path, "", AGENTHOST_RATE_LIMIT__BURST="many")


def test_an_unknown_variable_is_a_warning(tmp_path: Path) -> None:
    (warning,) = load(tmp_path, "", AGENTHOST_LISTEN_ADR="x").warnings
    assert warning.startswith("AGENTHOST_LISTEN_ADR")
    assert "'listen_addr'" in warning


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:1", "[::1]:2"])
def test_loopback_needs_no_key(tmp_path: Path, address: str) -> None:
    assert load(tmp_path, f'listen_addr = "{address}"').config.listens_on_loopback


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


def test_models_are_ids_or_tables(tmp_path: Path) -> None:
    text = '[providers.x]\nmodels = ["a", { id = "b", context_window = 9 }]'
    models = load(tmp_path, text).config.providers["x"].models
    assert [m.id for m in models] == ["a", "b"]
    assert models[1].context_window == 9
