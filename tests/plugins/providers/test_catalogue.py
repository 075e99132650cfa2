"""The data files hold together, and the providers are made of them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from typing import Any

import agenthost_providers
import pytest
from agenthost import InvalidInput
from agenthost.testing.providers import provider_of
from agenthost_providers import register_dialect
from agenthost_providers.catalogue import load_facts

SLUGS = ("openai", "anthropic", "ollama", "offline")
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


def test_register_dialect_offers_the_three() -> None:
    specs = {spec.name: spec for spec in register_dialect()}
    assert set(specs) == {"openai-chat", "anthropic-messages", "ollama"}
    for spec in specs.values():
        assert spec.make({}).name == spec.name
        with pytest.raises(InvalidInput):
            spec.make({"no_such_quirk": 1})


def test_importing_a_provider_loads_no_sdk_and_no_http() -> None:
    code = (
        "import sys, agenthost_providers.openai, agenthost_providers.offline;"
        "print([m for m in ('openai', 'anthropic', 'httpx') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
