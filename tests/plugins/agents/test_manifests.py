"""Manifests: every key, every refusal, what is kept."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
import tomlkit
from agenthost.errors import InvalidInput, TooLarge
from agenthost.manifest_model import Manifest
from agenthost_agents.autonomous import RESTARTS
from agenthost_agents.commands import COMMANDS
from agenthost_agents.facts import UNSERVED
from agenthost_agents.manifests import parse_manifest
from agenthost_agents.rights import granted
from agenthost_egress.manifest import TRAFFIC
from agenthost_mcp.client.manifest import SERVERS
from agenthost_models.manifest import SPENDING
from agenthost_orchestration.schedules.manifest import AUTONOMOUS, SCHEDULE
from agenthost_toolbox.manifest import PACE
from agenthost_tools.shell.settings import EXEC_POLICY
from agenthost_turns.manifest import HEARTBEAT, ROUTING
from hypothesis import given
from hypothesis import strategies as st

READ = (
    *(SPENDING, PACE, SCHEDULE, AUTONOMOUS, COMMANDS, EXEC_POLICY),
    *(RESTARTS, HEARTBEAT, TRAFFIC, ROUTING, SERVERS),
)

EVERYTHING = """
name = "worker"
version = "1.2.3"
description = "does things"
author = "me"
module = "builtin:chat"
tags = ["a"]
skills = ["s"]
mcp_servers = ["m"]
priority = "High"
profile = "research"
pinned_model = "p"
workspace = "w"
state_dir = "s"
generate_identity_files = false
cache_context = true
max_history_messages = 30
tool_allowlist = ["web_*"]
tool_blocklist = ["web_search"]
schedule = { periodic = { cron = "every 5m" } }

[exec_policy]
mode = "full"

[model]
provider = "groq"
name = "fast"
max_tokens = 100
temperature = 1
system_prompt = "Be brief."
api_key_env = "KEY"
base_url = "https://x.example"

[[fallback_models]]
provider = "openai"
model = "m"

[resources]
max_llm_tokens_per_hour = 5
max_memory_bytes = 1
max_cpu_time_ms = 1
max_tool_calls_per_minute = 2
max_network_bytes_per_hour = 1
max_cost_per_hour_usd = 1
max_cost_per_day_usd = 2.5
max_cost_per_month_usd = 3

[capabilities]
network = ["*.example"]
tools = ["web_*", "file_read"]
memory_read = ["*"]
memory_write = ["self.*"]
agent_spawn = true
agent_message = ["helper-*"]
shell = ["ls *"]
ofp_discover = true
ofp_connect = ["*"]

[tools.web_fetch.params]
depth = 1

[metadata]
is_subagent = true

[routing]
simple_model = "s"
simple_threshold = 10

[autonomous]
max_iterations = 5
max_restarts = 3
heartbeat_interval_secs = 60
heartbeat_channel = "c"
quiet_hours = "22:00-07:00"

[thinking]
budget_tokens = 0
stream_thinking = true
"""


def test_every_key_is_known_and_what_no_plugin_serves_is_said() -> None:
    parsed = parse_manifest(EVERYTHING, READ)
    assert set(parsed.warnings) == {
        f"{key}: no plugin serves it yet" for key in UNSERVED if "*" not in key
    }
    manifest = parsed.manifest
    assert manifest.model.model == "fast"
    assert SPENDING.of(manifest).max_cost_per_day_usd == 2.5
    assert PACE.of(manifest).max_tool_calls_per_minute == 2
    assert manifest.thinking.budget_tokens == 0


def test_an_endpoint_of_a_fallback_is_named_as_unused() -> None:
    parsed = parse_manifest(
        'name = "a"\n[[fallback_models]]\nmodel = "m"\n'
        '[[fallback_models]]\nmodel = "n"\nbase_url = "https://x.example"',
        READ,
    )
    assert parsed.warnings == ("fallback_models[1].base_url: no plugin serves it yet",)


def test_a_name_is_enough() -> None:
    parsed = parse_manifest('name = "a"', READ)
    assert parsed.warnings == ()
    assert parsed.manifest.module == "builtin:chat"
    assert parsed.manifest.model.provider is None


@pytest.mark.parametrize("word", ["", "default", "Default"])
def test_default_leaves_the_model_to_the_daemon(word: str) -> None:
    model = parse_manifest(
        f'name = "a"\n[model]\nprovider = "{word}"\nmodel = "{word}"', READ
    ).manifest.model
    assert (model.provider, model.model) == (None, None)


@pytest.mark.manifest("module")
@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("name =", "manifest_toml", "line 1, column 7"),
        ('\n[capabilities\nx = "', "manifest_toml", "line 2, column"),
        ('name = "a', "manifest_toml", "line 1"),
        ('name = "a"\nmore = "\ud800"', "manifest_toml", "half a character"),
        ('name = "a"\ntags = ["\ud800"]', "manifest_toml", "half a character"),
        ("", "name", "is missing"),
        ('nmae = "a"', "name", "is missing"),
        ("name = 3", "name", "it is a whole number"),
        ('name = ""', "name", "1 to 64"),
        ('name = "a/b"', "name", "1 to 64"),
        ('name = ".."', "name", "1 to 64"),
        ('name = "a\\n"', "name", "1 to 64"),
        (f'name = "{"a" * 65}"', "name", "1 to 64"),
        ('name = "a"\nmodule = "python:x.py"', "module", "skills runtime"),
        ('name = "a"\nmodule = "wasm:x.wasm"', "module", "skills runtime"),
        ('name = "a"\nmodule = "builtin:caht"', "module", "builtin:chat"),
        ('name = "a"\nprofile = "codng"', "profile", "did you mean 'coding'"),
        ('name = "a"\ntags = { a = 1 }', "tags", "must be a list"),
        ('name = "a"\ntags = ["x", 1]', "tags[1]", "must be text"),
        (
            'name = "a"\n[capabilities]\ntools = "file_read"',
            "capabilities.tools",
            "list",
        ),
        (
            'name = "a"\n[capabilities]\nagent_spawn = 1',
            "capabilities.agent_spawn",
            "true or false",
        ),
        (
            'name = "a"\n[model]\nmax_tokens = "9"',
            "model.max_tokens",
            "a whole number",
        ),
        (
            'name = "a"\n[model]\ntemperature = 3',
            "model.temperature",
            "less than or equal",
        ),
        (
            'name = "a"\n[resources]\nmax_tool_calls_per_minute = -1',
            "resources.max_tool_calls_per_minute",
            "greater",
        ),
        (
            'name = "a"\n[resources]\nmax_cost_per_day_usd = "2"',
            "resources.max_cost_per_day_usd",
            "must be a number",
        ),
        ('name = "a"\nresources = 0', "resources", "must be a table"),
        ('name = "a"\n[[model]]', "model", "must be a table"),
        ('name = "a"\n[metadata]\nat = 1979-01-01', "metadata.at", "JSON"),
    ],
)
def test_a_wrong_manifest_names_the_key(text: str, field: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_manifest(text, READ)
    assert caught.value.field == field
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "descripton = 'x'",
            "descripton: unknown key, ignored; did you mean 'description'?",
        ),
        (
            "[capabilities]\ntool = ['x']",
            "capabilities.tool: unknown key, ignored; did you mean 'tools'?",
        ),
        (
            "[[fallback_models]]\nq = 1",
            "fallback_models[0].q: unknown key, ignored",
        ),
        (
            "[resources]\nmax_memory_byte = 1",
            (
                "resources.max_memory_byte: unknown key, ignored; "
                "did you mean 'max_memory_bytes'?"
            ),
        ),
        (
            "[resources]\nmax_tool_calls_per_minutes = 1",
            (
                "resources.max_tool_calls_per_minutes: unknown key, ignored; "
                "did you mean 'max_tool_calls_per_minute'?"
            ),
        ),
        ("skils = []", "skils: unknown key, ignored; did you mean 'skills'?"),
        ("resource = 1", "resource: unknown key, ignored; did you mean 'resources'?"),
        (
            "[model]\nmax_token = 1",
            "model.max_token: unknown key, ignored; did you mean 'max_tokens'?",
        ),
    ],
)
def test_an_unknown_key_is_a_warning(text: str, warning: str) -> None:
    assert warning in parse_manifest(f'name = "a"\n{text}', READ).warnings


@pytest.mark.parametrize(
    ("default", "other"),
    [
        ('priority = "Normal"', 'priority = "High"'),
        ("skills = []", 'skills = "none"'),
        ("[resources]\nmax_cpu_time_ms = 30_000", "[resources]\nmax_cpu_time_ms = -1"),
        (
            "[capabilities]\nofp_discover = false",
            "[capabilities]\nofp_discover = true",
        ),
    ],
)
def test_what_no_plugin_serves_is_told_of_unless_it_is_the_default(
    default: str, other: str
) -> None:
    assert parse_manifest(f'name = "a"\n{default}', READ).warnings == ()
    (warning,) = parse_manifest(f'name = "a"\n{other}', READ).warnings
    assert warning.endswith(": no plugin serves it yet")


def test_what_nobody_reads_is_kept_as_it_was_written() -> None:
    manifest = parse_manifest(
        'name = "a"\nskils = ["x"]\nsince = 2020-01-01\nmost = nan\n'
        "[acme]\nodd.way = [{ a = 1 }]\n[model]\nbase_url = 3",
        READ,
    ).manifest
    assert manifest.model_extra == {
        "skils": ["x"],
        "since": "2020-01-01",
        "most": "NaN",
        "acme": {"odd": {"way": [{"a": 1}]}},
    }
    assert manifest.model.model_extra == {"base_url": 3}
    assert Manifest.from_json(manifest.model_json()) == manifest


@pytest.mark.manifest("version", "author", "metadata")
def test_what_is_told_of_an_agent_is_kept_with_it() -> None:
    stored = parse_manifest(EVERYTHING, READ).manifest.model_json()
    manifest = Manifest.from_json(stored)
    assert (manifest.version, manifest.author) == ("1.2.3", "me")
    assert manifest.metadata == {"is_subagent": True}


def test_a_key_may_be_named_as_what_a_manifest_is_made_of() -> None:
    odd = ("tables", "own_tables", "model_extra", "model_config", "__class__", "")
    text = "".join(f'"{name}" = {{ a = 1 }}\n' for name in odd)
    manifest = parse_manifest(f'name = "a"\n{text}', READ).manifest
    assert manifest.model_extra == {name: {"a": 1} for name in odd}
    assert SPENDING.of(manifest).max_cost_per_day_usd == 0
    assert Manifest.from_json(manifest.model_json()) == manifest


def test_very_many_unknown_keys_are_not_all_told_of() -> None:
    keys = "".join(f"key{number} = 1\n" for number in range(50_000))
    warnings = parse_manifest(f'name = "a"\n{keys}', READ).warnings
    assert len(warnings) == 101
    assert warnings[-1] == "and more of this kind"


def test_over_one_mebibyte_is_too_large() -> None:
    with pytest.raises(TooLarge):
        parse_manifest('name = "a"\n#' + "é" * 2**19, READ)


@pytest.mark.parametrize(
    "bomb",
    [
        "a" + ".a" * 500_000 + " = 1",
        '"a"' + " . 'a'" * 100_000 + " = 1",
        "a = " + "[" * 100_000,
        "a = " + "[" * 500 + "]" * 500,
        "a" * 1_000_000,
    ],
)
def test_a_hostile_manifest_is_refused_quickly(bomb: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidInput):
        parse_manifest(bomb, READ)
    assert time.process_time() - began < 5


NAMES = st.lists(st.text(max_size=5), max_size=3)
PLAIN = st.booleans() | st.integers(-9, 9) | st.text(max_size=5)
MANIFESTS = st.fixed_dictionaries(
    {"name": st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,63}", fullmatch=True)},
    optional={
        "description": st.text(max_size=20),
        "tags": NAMES,
        "priority": st.sampled_from(["Low", "Normal", "High", "Critical"]),
        "profile": st.sampled_from(["minimal", "coding", "full"]),
        "tool_allowlist": NAMES,
        "exec_policy": st.sampled_from(["deny", "full"]),
        "schedule": st.just("reactive")
        | st.fixed_dictionaries({"continuous": st.just({"check_interval_secs": 10})}),
        "acme": st.dictionaries(st.text(max_size=4), PLAIN, max_size=3),
        "model": st.fixed_dictionaries(
            {},
            optional={
                "provider": st.text(max_size=5),
                "name": st.text(max_size=5),
                "temperature": st.floats(0, 2),
                "max_tokens": st.integers(1, 9_999),
                "system_prompt": st.text(),
            },
        ),
        "capabilities": st.fixed_dictionaries(
            {},
            optional={"tools": NAMES, "network": NAMES, "agent_spawn": st.booleans()},
        ),
        "resources": st.fixed_dictionaries(
            {}, optional={"max_cost_per_day_usd": st.floats(0, 1e9)}
        ),
        "metadata": st.dictionaries(st.text(max_size=4), PLAIN, max_size=3),
        "thinking": st.fixed_dictionaries(
            {}, optional={"budget_tokens": st.integers(0, 9_999)}
        ),
    },
)


@given(MANIFESTS)
def test_a_manifest_survives_toml_and_the_database(
    content: dict[str, object],
) -> None:
    direct = Manifest.model_validate(content)
    parsed = parse_manifest(tomlkit.dumps(content), READ).manifest
    assert parsed == direct
    stored = Manifest.from_json(parsed.model_json())
    assert stored == parsed
    assert granted(stored, ["a", "b"]) == granted(parsed, ["a", "b"])
    assert stored.model_json() == parsed.model_json()


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_is_a_manifest_or_an_invalid_input(text: str) -> None:
    with suppress(InvalidInput):
        assert parse_manifest(text, READ).manifest.name
