"""Providers of plugins name the dialect they speak."""

from __future__ import annotations

import pytest
from agenthost import (
    DialectSpec,
    ModelFacts,
    PluginError,
    ProviderFacts,
    ProviderSpec,
)
from agenthost.testing import Daemons
from agenthost.testing.installed import installed_dialects
from agenthost_dialects.openai_chat import OpenAIChat

from tests.kernel.plugins.entries import module

KEY = "provider:made"


def facts(dialect: str | None = None, **quirks: object) -> ProviderFacts:
    row = ModelFacts("acme-1", "acme", "one", "One", dialect=dialect)
    return ProviderFacts(
        "acme", "Acme", "https://acme.example", models=(row,), quirks=quirks
    )


def test_a_named_dialect_is_made_of_the_quirks() -> None:
    spec = ProviderSpec(facts(max_tokens=7), "openai-chat").made(installed_dialects())
    spoken = spec.spoken_to("one")
    assert spoken.name == "openai-chat"
    assert spoken.quirks.base.max_tokens == 7  # type: ignore[union-attr]


def test_a_row_may_name_another() -> None:
    named = ProviderSpec(facts("openai-responses"), "openai-chat")
    spec = named.made(installed_dialects())
    assert spec.spoken_to("one").name == "openai-responses"
    assert spec.spoken_to("another").name == "openai-chat"


def test_what_is_not_made_is_not_spoken() -> None:
    with pytest.raises(PluginError, match="not made yet"):
        ProviderSpec(facts(), "openai-chat").spoken_to("one")


@pytest.mark.parametrize("row", [None, "openai-chatt"])
def test_a_name_nobody_offers_is_refused(row: str | None) -> None:
    own = "openai-chatt" if row is None else "openai-chat"
    with pytest.raises(PluginError, match="did you mean 'openai-chat'"):
        ProviderSpec(facts(row), own).made(installed_dialects())


async def test_a_wrong_name_fails_its_plugin_alone(daemons: Daemons) -> None:
    wrong = module(register_provider=lambda: [ProviderSpec(facts(), "opnai-chat")])
    running = await daemons.start(plugins=[wrong])
    (state,) = [s for s in running.daemon.plugins.states() if s.status == "failed"]
    assert "no plugin offers the dialect 'opnai-chat'" in (state.reason or "")
    assert "acme" not in running.daemon.models.providers


async def test_a_plugin_speaks_the_dialect_of_another(daemons: Daemons) -> None:
    made: list[object] = []

    def make(quirks: object) -> OpenAIChat:
        made.append(quirks)
        return OpenAIChat()

    both = module(
        register_dialect=lambda: [DialectSpec("acme-chat", make)],
        register_provider=lambda: [ProviderSpec(facts(a=1), "acme-chat")],
    )
    running = await daemons.start(plugins=[both])
    spec = running.daemon.models.providers["acme"]
    assert isinstance(spec.spoken_to("one"), OpenAIChat)
    assert made == [{"a": 1}]
