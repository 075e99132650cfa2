"""The whole configuration: sections of plugins, of third parties, of nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from agenthost import (
    ConfigError,
    ConfigSection,
    Daemon,
    PluginError,
    Secret,
    SecuritySystem,
)
from agenthost.plugins.discovery import installed_entries
from agenthost.testing import Daemons
from agenthost.testing.daemons import provided
from agenthost_front.settings import Server
from agenthost_models.settings import Budget, FallbackProviders, Providers
from agenthost_tools.web_fetch import WebFetchSection
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, field_validator

from ...kernel.plugins.entries import module
from ...kernel.test_config import BROKEN as BROKEN_KEYS
from .reading import read

# text of config.toml, line that must be named, key or place that must be named
BROKEN: list[tuple[str, int, str]] = [
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
    ("[budget]\nmax_daily_usd = -1", 2, "budget.max_daily_usd"),
    ("[budget]\nmax_daily_usd = nan", 2, "budget.max_daily_usd"),
    ("[budget]\nalert_threshold = 80", 2, "budget.alert_threshold"),
    ("[web.fetch]\ntimeout_secs = 0", 2, "web.fetch.timeout_secs"),
    ('[web]\nfetch = "all"', 2, "web.fetch"),
    ("[compaction]\nkeep_recent = 80", 1, "compaction"),
    ('[server]\nallowed_hosts = "x"', 2, "server.allowed_hosts"),
    ("[process]\nstall_limit_secs = 0", 2, "process.stall_limit_secs"),
    ("[turns]\nmax_iterations = 1_000_000", 2, "turns.max_iterations"),
    ("[turns]\nmax_seconds = -1", 2, "turns.max_seconds"),
    ("[turns]\nmax_concurrent = true", 2, "turns.max_concurrent"),
    ("turns = 7", 1, "turns"),
    ("\nweb = 3", 2, "web"),
    ("[acme]\nrooms = 4", 2, "acme.rooms"),
    ('[acme]\ntoken = "a\\nb"', 2, "acme.token"),
    ("[[acme.more]]\nname = 1", 2, "acme.more[0].name"),
]


class More(BaseModel):
    """One more."""

    name: str


class Acme(BaseModel):
    """What a third party reads."""

    token: Secret | None = None
    old_token: SecretStr | None = None
    rooms: tuple[str, ...] = ()
    more: tuple[More, ...] = ()
    seconds: float = 1.5


def acme(*sections: ConfigSection, name: str = "acme", **hooks: Any) -> ModuleType:
    """A plugin of somebody else, with ``[acme]`` or other sections."""
    offered = sections or (ConfigSection("acme", Acme),)
    plugin = module(register_config=lambda: offered, **hooks)
    plugin.__name__ = name
    return plugin


@pytest.mark.parametrize(("text", "line", "key"), BROKEN)
async def test_a_broken_section_names_line_and_key(
    tmp_path: Path, text: str, line: int, key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        await read(tmp_path, text, acme())
    assert f"config.toml line {line}" in caught.value.message
    assert key in caught.value.message
    assert str(tmp_path) not in caught.value.message


def test_there_are_sixty_broken_configurations() -> None:
    assert len({text for text, _, _ in BROKEN + BROKEN_KEYS}) >= 60


async def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = "[acme]\nrooms = 1\nseconds = 'x'\n[budget]\nmax_daily_usd = -1"
    with pytest.raises(ConfigError) as caught:
        await read(tmp_path, text, acme())
    lines = caught.value.message.splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "budget.max_daily_usd",
        "acme.rooms",
        "acme.seconds",
    ]


async def test_no_file_means_defaults(tmp_path: Path) -> None:
    settings = await read(tmp_path, None, acme())
    assert settings.warnings == ()
    assert settings(WebFetchSection).max_response_bytes == 10 * 1024 * 1024
    assert settings(Providers).root == {}
    assert settings(FallbackProviders).root == ()
    assert settings(Acme) == Acme()


async def test_a_key_that_must_be_given_is_missed_without_its_section(
    tmp_path: Path,
) -> None:
    plugin = acme(ConfigSection("acme", More))
    with pytest.raises(ConfigError, match=r"config.toml: acme\.name: is missing"):
        await read(tmp_path, None, plugin)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nlog_levle = 'info'", "line 2: log_levle"),
        ("[rate_limt]\nburst = 1", "did you mean 'rate_limit'"),
        ("[web.fetch]\nmax_char = 1", "line 2: web.fetch.max_char: unknown key"),
        ("[web.fetc]\nmax_chars = 1", "did you mean 'fetch'"),
        ("[providers.x]\nbase_url='http://x'\nmodls = []", "did you mean 'models'"),
        ("[[fallback_providers]]\nprovider = 'a'\nmodle = 'b'", "line 3"),
        (
            "[providers.x]\nbase_url='http://x'\nmodels = [{ id='a', teir='b' }]",
            "'tier'",
        ),
        ("[budget]\napi_key = 'k'", "belongs above the first [table]"),
        ("zzz = 1", "line 1: zzz: unknown key, ignored"),
        ("\n[acme]\nromos = []", "line 3: acme.romos: unknown key, ignored; did you"),
        ("[acem]\nrooms = []", "did you mean 'acme'"),
    ],
)
async def test_an_unknown_key_is_a_warning_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    (warning,) = (await read(tmp_path, text, acme())).warnings
    assert said in warning


async def test_free_tables_have_no_unknown_keys(tmp_path: Path) -> None:
    text = "[skills.x]\na = { b = 1 }\n[providers.y.quirks]\nz = 1"
    settings = await read(tmp_path, text)
    assert not [said for said in settings.warnings if "unknown" in said]


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("\n[skills.x]\ntoken = 'x'", "line 2: no plugin serves [skills] yet"),
        ("[[a2a]]\nname = 'x'", "[a2a]"),
    ],
)
async def test_a_section_that_nothing_reads_is_a_warning(
    tmp_path: Path, text: str, section: str
) -> None:
    (warning,) = (await read(tmp_path, text)).warnings
    assert section in warning
    assert "it has no effect" in warning


async def test_a_section_that_is_switched_off_needs_no_warning(tmp_path: Path) -> None:
    off = await read(tmp_path, "[skills]\nenabled = false")
    assert off.warnings == ()
    off = await read(tmp_path, "", AGENTHOST_SKILLS__ENABLED="off")
    assert [said for said in off.warnings if "SKILLS" in said] == []


async def test_a_section_whose_plugin_is_off_says_so(tmp_path: Path) -> None:
    text = "[plugins]\ndisable = ['web_fetch']\n[web.fetch]\nmax_chars = 'no matter'"
    (warning,) = (await read(tmp_path, text)).warnings
    assert warning == (
        "config.toml line 3: [web.fetch] has no effect: tool:web_fetch is off; set, "
        "enable and disable of [plugins] say what runs"
    )


async def test_a_section_of_an_installed_plugin_that_is_not_enabled_says_so(
    tmp_path: Path,
) -> None:
    text = "[plugins]\ndisable = ['acme']\n[acme]\ntoken = 7"
    (warning,) = (await read(tmp_path, text, acme())).warnings
    assert "line 3: [acme] has no effect: plugin:acme is off" in warning


async def test_a_plugin_that_is_off_does_not_stand_in_the_way_of_our_sections(
    tmp_path: Path,
) -> None:
    off = "[plugins]\ndisable = ['web', 'web_fetch', 'web_search']\n"
    text = f"{off}[web.fetch]\nmax_chars = 7"
    (warning,) = (await read(tmp_path, text, acme(name="web"))).warnings
    assert "[web] has no effect: plugin:web is off" in warning


async def test_a_section_of_a_plugin_that_failed_says_so(tmp_path: Path) -> None:
    def broken() -> Iterator[ConfigSection]:
        raise RuntimeError("broken")

    plugin = module(register_config=broken)
    plugin.__name__ = "acme"
    (warning,) = (await read(tmp_path, "[acme]\ntoken = 7", plugin)).warnings
    assert "[acme] has no effect: plugin:acme is not running" in warning


async def test_every_section_of_our_own_stands_in_the_table_of_sections(
    tmp_path: Path,
) -> None:
    import tomllib

    from agenthost_settings.claims import SECTIONS

    table = tomllib.loads(SECTIONS.read_text(encoding="utf-8"))
    claims = (await read(tmp_path, None)).claims
    assert {name: key for name, (key, _) in claims.items()}.items() <= table.items()


async def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    settings = await read(
        tmp_path,
        "[acme]\nrooms = ['file']\nseconds = 3.0\n[budget]\nmax_hourly_usd = 1",
        acme(),
        AGENTHOST_WEB__FETCH__MAX_CHARS="77",
        AGENTHOST_BUDGET__MAX_DAILY_USD="2.5",
        AGENTHOST_SERVER__ALLOWED_HOSTS="a.example, b.example",
        AGENTHOST_PROVIDERS__GROQ__BASE_URL="https://groq.example",
        AGENTHOST_FALLBACK_PROVIDERS='[{"provider": "z"}]',
        AGENTHOST_ACME__ROOMS="one, two",
        AGENTHOST_ACME__TOKEN="canary",
    )
    assert settings.warnings == ()
    assert settings(WebFetchSection).max_chars == 77
    budget = settings(Budget)
    assert (budget.max_hourly_usd, budget.max_daily_usd) == (1, 2.5)
    assert settings(Server).allowed_hosts == ("a.example", "b.example")
    assert settings(Providers).root["groq"].base_url == "https://groq.example"
    assert settings(FallbackProviders).root[0].provider == "z"
    mine = settings(Acme)
    assert (mine.rooms, mine.seconds) == (("one", "two"), 3.0)
    assert mine.token is not None
    assert mine.token.reveal() == "canary"


async def test_a_wrong_variable_of_a_section_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"AGENTHOST_ACME__SECONDS: acme\.seconds"):
        await read(tmp_path, "", acme(), AGENTHOST_ACME__SECONDS="soon")


@pytest.mark.parametrize(
    ("variable", "hint"),
    [("AGENTHOST_LISTEN_ADR", "'listen_addr'"), ("AGENTHOST_ACME__ROMS", "'rooms'")],
)
async def test_an_unknown_variable_is_a_warning(
    tmp_path: Path, variable: str, hint: str
) -> None:
    environ = {variable: "x"}
    (warning,) = (await read(tmp_path, "", acme(), mode=0o600, **environ)).warnings
    assert warning.startswith(variable)
    assert hint in warning


async def test_the_keys_of_vault_and_home_are_no_settings(tmp_path: Path) -> None:
    settings = await read(
        tmp_path, "", AGENTHOST_VAULT_KEY="x", AGENTHOST_HOME="/elsewhere"
    )
    assert settings.warnings == ()


async def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    text = "[acme]\ntoken = 'canary'\nold_token = 'canary'"
    mine = (await read(tmp_path, text, acme()))(Acme)
    assert "canary" not in f"{mine!r}{mine}{mine.model_dump_json()}"
    assert mine.model_dump()["token"] == "***"
    with pytest.raises(ConfigError) as caught:
        await read(tmp_path, "[acme]\ntoken = ['canary']\nold_token = 7", acme())
    assert "canary" not in caught.value.message


async def test_an_empty_secret_is_refused_rather_than_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"acme\.token: is empty; fill it in"):
        await read(tmp_path, "[acme]\ntoken = ' '", acme())


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("api_key = 'k'", "api_key"),
        ("[acme]\ntoken = 'k'", "acme"),
        ("[storage]\nurl = 'sqlite:x'", "storage"),
    ],
)
async def test_a_key_in_a_file_that_others_can_read_is_a_warning(
    tmp_path: Path, text: str, named: str
) -> None:
    assert (await read(tmp_path, text, acme())).warnings == ()
    (warning,) = (await read(tmp_path, text, acme(), mode=0o640)).warnings
    assert f"{named} may hold a secret; chmod 600" in warning
    told = await read(tmp_path, "[budget]\nmax_daily_usd = 1", acme(), mode=0o640)
    assert told.warnings == ()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("acme", "plugin:acme has taken with [acme]"),
        ("acme.more", "plugin:acme has taken with [acme]"),
        ("web", "tool:web_fetch has taken with [web.fetch]"),
        ("turns", "plugin:turns has taken with [turns]"),
        ("backends", "agenthost itself has taken"),
        ("plugins.zeta", "agenthost itself has taken"),
        ("Zeta", "is no name"),
        ("zeta__x", "is no name"),
        ("..", "is no name"),
    ],
)
async def test_a_section_that_is_taken_fails_the_later_plugin(
    tmp_path: Path, name: str, reason: str
) -> None:
    class Other(BaseModel):
        x: int = 3

    later = acme(ConfigSection(name, Other), name="zeta")
    settings = await read(tmp_path, "", acme(), later)
    state = settings.plugins["plugin:zeta"]
    assert state.status == "failed"
    assert state.reason is not None
    assert reason in state.reason
    assert settings(Acme) == Acme()
    with pytest.raises(PluginError, match="Other is no section"):
        settings(Other)


async def test_one_model_is_for_one_section(tmp_path: Path) -> None:
    later = acme(ConfigSection("zeta", Acme), name="zeta")
    settings = await read(tmp_path, "", acme(), later)
    reason = settings.plugins["plugin:zeta"].reason
    assert reason is not None
    assert "with the model of [acme]; make a subclass" in reason


async def test_two_plugins_may_each_have_a_part_of_one_table(tmp_path: Path) -> None:
    class Search(BaseModel):
        engine: str = "none"

    plugin = acme(ConfigSection("web.looks", Search))
    text = "[web.looks]\nengine = 'x'\n[web.fetch]\nmax_chars = 3"
    settings = await read(tmp_path, text, plugin)
    assert settings.warnings == ()
    assert settings(Search).engine == "x"
    assert settings(WebFetchSection).max_chars == 3


async def test_a_validator_that_raises_fails_its_plugin_alone(tmp_path: Path) -> None:
    class Angry(BaseModel):
        x: int = 0

        @field_validator("x")
        @classmethod
        def _no(cls, value: int) -> int:
            raise SystemExit(value)

    plugin = acme(ConfigSection("angry", Angry), name="angry")
    settings = await read(tmp_path, "[angry]\nx = 3", acme(), plugin)
    assert settings.plugins["plugin:angry"].status == "failed"
    assert settings(Acme) == Acme()


async def test_a_model_that_takes_no_other_keys_refuses_them_in_words(
    tmp_path: Path,
) -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")
        x: int = 0

    plugin = acme(ConfigSection("strict", Strict), name="strict")
    with pytest.raises(ConfigError, match=r"line 2: strict\.y: unknown key; remove it"):
        await read(tmp_path, "[strict]\ny = 3", plugin)


async def test_a_section_may_be_a_list_of_tables(tmp_path: Path) -> None:
    class Peers(RootModel[list[More]]):
        root: list[More] = Field(default_factory=list)

    plugin = acme(ConfigSection("peers", Peers), name="peers")
    text = "[[peers]]\nname = 'a'\n[[peers]]\nname = 'b'\nnmae = 'c'"
    settings = await read(tmp_path, text, plugin)
    assert [peer.name for peer in settings(Peers).root] == ["a", "b"]
    assert settings.warnings == (
        "config.toml line 5: peers[1].nmae: unknown key, ignored; did you mean 'name'?",
    )


async def test_models_are_ids_or_tables(tmp_path: Path) -> None:
    text = '[providers.x]\nmodels = ["a", { id = "b", context_window = 9 }]'
    models = (await read(tmp_path, text))(Providers).root["x"].models
    assert [m.id for m in models] == ["a", "b"]
    assert models[1].context_window == 9


async def test_register_config_gives_a_plugin_its_settings(daemons: Daemons) -> None:
    running = await daemons.start(plugins=[acme()], config="[acme]\nrooms = ['hall']\n")
    assert running.daemon.settings(Acme).rooms == ("hall",)
    offered = running.daemon.registry.offered(ConfigSection)
    assert ("plugin:acme", ConfigSection("acme", Acme)) in offered


async def test_a_wrong_value_of_a_third_party_stops_the_start(
    daemons: Daemons,
) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml line 2: acme\.seconds: "):
        await daemons.start(plugins=[acme()], config="[acme]\nseconds = 'x'\n")


async def test_a_daemon_without_the_plugin_comes_up_whatever_its_section_says(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text("[acme]\nseconds = 'x'\n", encoding="utf-8")
    daemon = Daemon(
        home,
        environ={
            "AGENTHOST_LISTEN_ADDR": "127.0.0.1:0",
            "AGENTHOST_PLUGINS__ENABLE": "acme",
        },
        entry_points=[*installed_entries(), *provided([acme()])],
        left_out={"plugin:acme": "it ended the daemon three times"},
    )
    await daemon.start()
    try:
        (told,) = [each for each in daemon.warnings if "[acme]" in each]
    finally:
        await daemon.stop()
    assert "plugin:acme is not running: it has failed, or was left out" in told


async def test_guards_stay_closed_when_a_claim_fails_their_plugin(
    daemons: Daemons,
) -> None:
    guard = SecuritySystem("acme_guard", {}, lambda: None)
    plugin = acme(ConfigSection("turns", Acme), security_system=lambda: guard)
    running = await daemons.start(plugins=[plugin])
    states = {state.name: state for state in running.daemon.registry.systems()}
    assert not states["acme_guard"].active
