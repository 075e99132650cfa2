"""The data files hold together, and the providers are made of them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from typing import Any

import agenthost_providers
import pytest
from agenthost import (
    ChatRequest,
    Endpoint,
    Image,
    InvalidInput,
    Message,
    Role,
    Secret,
    Text,
)
from agenthost.providers import Driver
from agenthost.testing.installed import provider_of
from agenthost_dialects import register_dialect
from agenthost_providers.catalogue import load_facts

TWENTY = (
    "anthropic",
    "bedrock",
    "cerebras",
    "cohere",
    "deepseek",
    "fireworks",
    "gemini",
    "groq",
    "huggingface",
    "lmstudio",
    "mistral",
    "ollama",
    "openai",
    "openrouter",
    "perplexity",
    "replicate",
    "sambanova",
    "together",
    "vllm",
    "xai",
)
SLUGS = (*TWENTY, "offline")
DIALECTS = {
    "anthropic-messages",
    "bedrock-converse",
    "cohere-v2",
    "gemini-generateContent",
    "ollama",
    "openai-chat",
    "openai-responses",
    "replicate-predictions",
}
FACTS = files(agenthost_providers) / "facts"


def read(name: str) -> Any:
    return json.loads((FACTS / name).read_text(encoding="utf-8"))


def test_there_are_at_least_200_models_and_55_aliases() -> None:
    assert len(read("models.json")["models"]) >= 200
    assert len(read("aliases.json")["aliases"]) >= 55


def test_model_ids_are_unique_and_complete() -> None:
    rows = read("models.json")["models"]
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["upstream_id"]
        assert row["tier"] in {
            "frontier",
            "smart",
            "balanced",
            "fast",
            "local",
            "custom",
        }
        limits = (row["max_output"], row["context_window"])
        assert all(limit is None or limit > 0 for limit in limits)


def test_every_alias_leads_to_a_model() -> None:
    known = {row["id"] for row in read("models.json")["models"]}
    aliases = read("aliases.json")["aliases"]
    assert set(aliases.values()) <= known
    assert len({alias.lower() for alias in aliases}) == len(aliases)


@pytest.mark.parametrize("slug", SLUGS)
def test_a_provider_carries_its_own_models(slug: str) -> None:
    spec = provider_of(slug)
    assert spec.facts == load_facts(slug)
    assert spec.facts.models
    assert {model.provider for model in spec.facts.models} == {slug}
    assert all(model.max_output and model.context_window for model in spec.facts.models)


def test_a_catalogue_id_has_the_id_of_the_wire() -> None:
    (llama,) = (m for m in load_facts("ollama").models if m.id == "ollama/llama3.2")
    assert llama.upstream_id == "llama3.2"


def test_keys_and_addresses_are_known() -> None:
    openai, ollama = load_facts("openai"), load_facts("ollama")
    assert (openai.env_var, openai.local) == ("OPENAI_API_KEY", False)
    assert (ollama.key_required, ollama.local) == (False, True)


def test_register_dialect_offers_every_dialect_in_use() -> None:
    specs = {spec.name: spec for spec in register_dialect()}
    spoken = [provider_of(slug) for slug in TWENTY]
    in_use = {spec.spoken_to("").name for spec in spoken}
    in_use |= {name for spec in spoken for name in spec.alternates}
    assert set(specs) == in_use == DIALECTS
    for spec in specs.values():
        assert spec.make({}).name == spec.name
        with pytest.raises(InvalidInput):
            spec.make({"no_such_quirk": 1})


def test_every_row_can_be_spoken_to() -> None:
    rows = [row for slug in TWENTY for row in provider_of(slug).facts.models]
    assert len(rows) == len(read("models.json")["models"])
    for row in rows:
        spec = provider_of(row.provider)
        wanted = row.dialect or spec.spoken_to("").name
        assert spec.spoken_to(row.upstream_id).name == wanted, row.id


@pytest.mark.parametrize("slug", TWENTY)
def test_a_provider_has_a_probe_and_a_key(slug: str) -> None:
    facts = load_facts(slug)
    assert facts.env_var
    assert facts.probe is not None
    assert facts.probe.method == "GET"
    assert facts.probe.url.startswith(("/", "https://"))
    proves = {"lmstudio", "ollama", "perplexity", "sambanova"}
    assert facts.probe.proves_key is (slug not in proves)


def test_rows_carry_what_a_bill_needs() -> None:
    openai = {row.id: row for row in load_facts("openai").models}
    long = openai["gpt-5.5"].long_context
    assert long is not None
    assert (long.above_input_tokens, long.input_cost_per_1m) == (272_000, 10.0)
    assert openai["gpt-5"].max_input == 272_000
    assert openai["gpt-5"].status == "deprecating"
    assert openai["gpt-5"].deprecation_date == "2026-12-11"
    claude = {row.id: row for row in load_facts("anthropic").models}
    haiku = claude["claude-haiku-5-5"]
    assert haiku.cache_write_cost_per_1m == round(haiku.input_cost_per_1m * 1.25, 9)
    assert haiku.long_context is not None
    assert haiku.long_context.cache_write_cost_per_1m == 0.625


def test_names_lead_to_rows() -> None:
    tables = read("aliases.json")
    rows = [row for slug in TWENTY for row in load_facts(slug).models]
    aliases = {name: row.id for row in rows for name in row.aliases}
    retired = {name: row.id for row in rows for name in row.replaces}
    assert aliases == tables["aliases"]
    assert retired == tables["retired_redirects"]
    assert not set(retired) & {row.id for row in rows}


def test_what_ends_or_has_ended_leads_to_an_active_model_both_ways() -> None:
    tables = read("aliases.json")
    rows = {row.id: row for slug in TWENTY for row in load_facts(slug).models}
    for old, new in tables["retired_redirects"].items():
        assert rows[new].status == "active", old
        assert old in rows[new].replaces
    ending = {row.id for row in rows.values() if row.status != "active"}
    assert ending == set(tables["successors"])
    for old in ending:
        successor = rows[rows[old].replaced_by or ""]
        assert (successor.status, successor.provider) == ("active", rows[old].provider)
        assert rows[old].deprecation_date


LATER = "agenthost_dialects.openai_chat"


def test_importing_a_provider_loads_no_sdk_and_no_http() -> None:
    names = ", ".join(f"agenthost_providers.{slug}" for slug in SLUGS)
    heavy = ("openai", "anthropic", "httpx", "boto3", "google.genai", "click", LATER)
    code = f"import sys, {names}; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_models_that_always_think_are_marked() -> None:
    rows = [row for slug in SLUGS for row in load_facts(slug).models]
    marked = {row.id for row in rows if row.always_thinks}
    assert {"claude-fable-5-1", "gpt-5.5-pro", "grok-4.20-reasoning"} <= marked
    assert "claude-haiku-5-5" not in marked
    assert all(row.supports_thinking for row in rows if row.always_thinks)


@pytest.mark.parametrize("slug", TWENTY)
def test_a_provider_states_a_default_that_is_listed_and_no_dearest(slug: str) -> None:
    facts = load_facts(slug)
    (row,) = [row for row in facts.models if row.id == facts.default_model]
    assert row.status == "active"
    dearest = max(facts.models, key=lambda each: each.output_cost_per_1m)
    assert len(facts.models) == 1 or facts.local or row != dearest
    assert row.output_cost_per_1m <= 10


@pytest.mark.parametrize("slug", TWENTY)
def test_a_row_sees_what_its_dialect_sends(slug: str) -> None:
    spec = provider_of(slug)
    picture = Message(
        Role.USER, (Text("what is this?"), Image("image/png", "iVBORw0="))
    )
    for row in (row for row in spec.facts.models if row.supports_vision):
        spoken = spec.spoken_to(row.upstream_id, row)
        assert not isinstance(spoken, Driver), row.id
        where = Endpoint(slug, "http://127.0.0.1:1/v1", Secret("sk-test"), row)
        wire = spoken.encode(ChatRequest(row.upstream_id, "", (picture,)), where)
        assert b"iVBORw0=" in wire.body, row.id


def test_no_listed_model_leaves_its_abilities_to_a_pattern() -> None:
    for slug in TWENTY:
        for row in load_facts(slug).models:
            assert row.thinking, row.id
            if row.supports_thinking and slug in {"openai", "anthropic"}:
                assert row.sampling is not None, row.id
