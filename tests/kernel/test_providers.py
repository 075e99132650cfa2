"""What is known of a provider: how its models are spoken to, how it is probed."""

from __future__ import annotations

from dataclasses import replace

from agenthost import Endpoint, ModelFacts, Probe, Secret
from agenthost.testing.installed import provider_of

KEY = Secret("sk-1")


def test_a_dialect_that_the_provider_does_not_offer_is_not_used() -> None:
    spec = provider_of("groq")
    odd = ModelFacts("x", "groq", "x", "X", dialect="openai-responses")
    changed = replace(spec, facts=replace(spec.facts, models=(odd,)))
    assert changed.spoken_to("x").name == "openai-chat"


def test_a_probe_writes_its_request() -> None:
    key = {"x-api-key": "{key}", "version": "1"}
    here = Endpoint("acme", "http://acme/v1/", KEY)
    request = Probe("GET", "/models?limit=1", key).request(here)
    assert request.url == "http://acme/v1/models?limit=1"
    assert request.headers == {"x-api-key": "sk-1", "version": "1"}
    elsewhere = Probe("GET", "https://other/whoami", key)
    asked = elsewhere.request(replace(here, key=None))
    assert (asked.url, asked.headers) == ("https://other/whoami", {"version": "1"})
