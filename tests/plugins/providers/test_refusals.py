"""Requests as a user causes them, to upstreams that refuse as their vendors do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from datetime import date
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from agenthost import (
    ChatRequest,
    Completion,
    Endpoint,
    Message,
    ModelCall,
    ModelFacts,
    ProviderError,
    Reasoning,
    Role,
    Secret,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)
from agenthost.providers import Driver
from agenthost.testing import installed_exchange
from agenthost.testing.installed import provider_of
from agenthost.testing.samples import WIRES
from agenthost.testing.simulators import Turn

from .refusing import SIGNED, RefusingSimulator, breaks, rules
from .test_catalogue import TWENTY

RULES = rules()
NAMES = [f"{rule['provider']}: {rule['name']}" for rule in RULES]
KEY = Secret("sk-test")
TOOL = ToolDefinition("look", "Look at it.", {"type": "object", "properties": {}})


def opaque_of(provider: str, model: str) -> dict[str, Any]:
    """What a model hides in its answers, under every dialect's name."""
    by = {"provider": provider, "model": model}
    own = {**by, "signature": SIGNED + model, "redacted": SIGNED + model}
    sealed = {"summary": [], "encrypted_content": SIGNED + model}
    item = {"type": "reasoning", "id": "rs_1", **sealed}
    details = [{"type": "reasoning.encrypted", "data": SIGNED + model}]
    return {
        "anthropic-messages": own,
        "bedrock-converse": {**by, "signature": SIGNED + model},
        "gemini-generateContent": own,
        "openai-responses": {**by, "item": item, "id": SIGNED + model},
        "openai-chat": {**by, "details": details},
    }


def asked(row: ModelFacts, probe: Mapping[str, Any]) -> ChatRequest:
    """A tool loop at hand, whose first step some model has signed."""
    signer = probe.get("signed_by", row.upstream_id)
    hidden = opaque_of(row.provider, signer)
    step = (Reasoning("hm", hidden), ToolUse("call_1", "look", {}, hidden))
    return ChatRequest(
        row.upstream_id,
        "Be brief.",
        (
            Message(Role.USER, (Text("where?"),)),
            Message(Role.ASSISTANT, step),
            Message(Role.TOOL, (ToolOutput("call_1", "look", "here"),)),
        ),
        (TOOL,),
        temperature=probe.get("temperature"),
        thinking_budget=probe.get("budget"),
    )


def row_of(provider: str, probe: Mapping[str, Any]) -> ModelFacts:
    rows = provider_of(provider).facts.models
    names = {row.id: row for row in rows} | {row.upstream_id: row for row in rows}
    return names[probe.get("model", "") or probe["id"]]


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
async def test_what_a_user_asks_for_is_not_refused(
    rule: dict[str, Any], http: httpx.AsyncClient
) -> None:
    provider, row = rule["provider"], row_of(rule["provider"], rule["probe"])
    spec = provider_of(provider)
    wire = WIRES[spec.spoken_to(row.upstream_id, row).name]
    async with RefusingSimulator(wire, provider) as upstream:
        upstream.play(Turn("fine"))
        where = Endpoint(provider, upstream.base_url, KEY, row)
        request = asked(row, rule["probe"])
        call = ModelCall(request, where, http, installed_exchange())
        deltas = [delta async for delta in call.exchange.open(spec, call)]
    assert isinstance(deltas[-1], Completion)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_refuses_what_it_is_about(rule: dict[str, Any]) -> None:
    assert rule["source"]
    assert isinstance(rule["date"], date)
    path = rule.get("path", "/any").replace("*", "/v1")
    assert breaks(rule, path, rule.get("headers", {}), rule["refused"])


async def test_the_upstream_refuses(http: httpx.AsyncClient) -> None:
    spec, row = provider_of("anthropic"), row_of("anthropic", {"id": "claude-opus-5-5"})
    wrong = replace(row, thinking_off="disabled")
    async with RefusingSimulator(WIRES["anthropic-messages"], "anthropic") as upstream:
        where = Endpoint("anthropic", upstream.base_url, KEY, wrong)
        request = asked(row, {"budget": 0})
        call = ModelCall(request, where, http, installed_exchange())
        with pytest.raises(ProviderError, match="cannot be disabled"):
            _ = [delta async for delta in call.exchange.open(spec, call)]


WISHES = [
    dict(zip(("budget", "temperature"), wish, strict=True))
    for wish in product((None, 0, 1500, 9000, 40_000), (None, 0.3))
]


def written(row: ModelFacts, wish: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Write the request of a row: its path, headers and body."""
    spec = provider_of(row.provider)
    spoken = spec.spoken_to(row.upstream_id, row)
    if isinstance(spoken, Driver):
        return
    where = Endpoint(row.provider, "http://127.0.0.1:1/v1", KEY, row)
    wire = spoken.encode(asked(row, wish), where)
    headers = {name.lower(): value for name, value in wire.headers.items()}
    yield urlsplit(wire.url).path, headers, json.loads(wire.body)


@pytest.mark.parametrize("slug", TWENTY)
def test_no_listed_model_is_asked_for_what_its_vendor_refuses(slug: str) -> None:
    own = [rule for rule in RULES if rule["provider"] == slug]
    for row, wish in product(provider_of(slug).facts.models, WISHES):
        for path, headers, body in written(row, wish):
            broken = [rule["name"] for rule in own if breaks(rule, path, headers, body)]
            assert not broken, (row.id, wish)


def test_a_model_that_thinks_is_told_so_or_its_row_says_why() -> None:
    for slug in TWENTY:
        for row in provider_of(slug).facts.models:
            bodies = {
                budget: [body for *_, body in written(row, {"budget": budget})]
                for budget in (None, 0, 9000)
            }
            if row.thinking == "none":
                assert bodies[0] == bodies[9000] == bodies[None], row.id
                continue
            assert row.supports_thinking, row.id
            assert bodies[9000] != bodies[None], row.id
            assert bodies[9000] != bodies[0], row.id
            if row.thinking_off:
                assert bodies[0] != bodies[None], row.id


def test_every_model_that_thinks_says_how() -> None:
    for slug in TWENTY:
        for row in provider_of(slug).facts.models:
            assert row.thinking, row.id
