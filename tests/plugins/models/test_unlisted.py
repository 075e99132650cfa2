"""What is known of a model that its provider does not list."""

from __future__ import annotations

from dataclasses import replace

import pytest
from agenthost import Usage
from agenthost.testing.daemons import Daemons
from agenthost.testing.installed import provider_of
from agenthost_models.names import unlisted, usual
from agenthost_models.price import price

from .test_local import NO_DEFAULT


@pytest.mark.parametrize(
    ("slug", "name", "kin"),
    [
        ("openai", "gpt-5.5-2026-04-23", "gpt-5.5"),
        ("openai", "gpt-5.5-pro-2026-04-23", "gpt-5.5-pro"),
        ("openai", "ft:gpt-4o-mini:house::1", "gpt-4o-mini"),
        ("anthropic", "claude-haiku-4-5", "claude-haiku-4-5-20251001"),
        (
            "bedrock",
            "us.anthropic.claude-sonnet-5-5",
            "bedrock/anthropic.claude-sonnet-5-5",
        ),
        ("ollama", "qwen3:8b", "ollama/qwen3"),
    ],
)
def test_a_variant_of_a_listed_model_has_its_facts(
    slug: str, name: str, kin: str
) -> None:
    spec = provider_of(slug)
    (row,) = [row for row in spec.facts.models if row.id == kin]
    named = replace(row, id=name, upstream_id=name, display_name=name)
    assert unlisted(spec, name) == replace(named, aliases=(), replaces=())


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        ("anthropic", "claude-opus-5-9"),
        ("openai", "gpt-5.9"),
        ("openai", "gpt-5-turbo"),
        ("openai", "g"),
    ],
)
def test_another_model_of_a_family_is_no_variant(slug: str, name: str) -> None:
    assert unlisted(provider_of(slug), name).thinking == ""


def test_a_model_that_nobody_lists_is_priced_as_the_dearest() -> None:
    spec = provider_of("openai")
    row = unlisted(spec, "gpt-99-unknown")
    for known in spec.facts.models:
        assert price(row, Usage(500_000, 90)) >= price(known, Usage(500_000, 90))
    assert row.cache_write_cost_per_1m is not None
    assert unlisted(provider_of("ollama"), "somebodys").input_cost_per_1m == 0.0


def test_a_model_that_nobody_lists_is_spoken_to_as_the_usual_one_is() -> None:
    openai = provider_of("openai")
    row = unlisted(openai, "gpt-7")
    assert openai.spoken_to("gpt-7", row).name == "openai-responses"
    assert openai.spoken_to("gpt-4o").name == "openai-chat"


def test_a_local_servers_model_counts_on_the_window_that_is_loaded() -> None:
    assert unlisted(provider_of("ollama"), "somebodys-model").context_window == 32_768
    assert unlisted(provider_of("openai"), "gpt-7").context_window == 128_000


async def test_a_new_model_of_a_local_server_has_that_window_too(
    daemons: Daemons,
) -> None:
    text = '[providers.ollama]\nmodels = ["own", {id = "big", context_window = 65536}]'
    models = (await daemons.start(config=text)).daemon.models
    assert models.resolve("ollama", "own").model.context_window == 32_768
    assert models.resolve("ollama", "big").model.context_window == 65_536


async def test_a_key_alone_chooses_the_stated_default(daemons: Daemons) -> None:
    environ = {**NO_DEFAULT, "ANTHROPIC_API_KEY": "sk-x"}
    models = (await daemons.start(environ=environ)).daemon.models
    assert models.names_of_default() == ("anthropic", "claude-sonnet-5-5")
    assert models.resolve("openai", None).model.id == "gpt-6.1-terra"


def test_a_provider_without_a_stated_default_has_its_first() -> None:
    spec = provider_of("openai")
    unstated = replace(spec, facts=replace(spec.facts, default_model="gone"))
    assert usual(unstated) == spec.facts.models[0]
