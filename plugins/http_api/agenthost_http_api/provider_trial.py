"""Try a provider out: one small call that proves its address and its key."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from urllib.parse import urlsplit

from agenthost import (
    AgentHostError,
    Answer,
    ChatRequest,
    EgressPolicy,
    Host,
    InvalidInput,
    Message,
    ModelFacts,
    ProviderError,
    ProviderFacts,
    ProviderFault,
    ProviderSpec,
    Reply,
    Role,
    Text,
    redacted,
)

PATIENCE = 30.0
# The least that all services accept as a limit of the answer.
FEW_TOKENS = 16
PROBE_POLICY = "provider_probe"


async def try_provider(host: Host, spec: ProviderSpec) -> Answer:
    """Ask whether the key is good, by the provider's probe or else by a short chat.

    Raises:
        InvalidInput: A key is needed and missing, or there is no model to ask.
    """
    facts = spec.facts
    if host.models.auth_status(facts.slug) == "missing":
        variable = f"set {facts.env_var}, or " if facts.env_var else ""
        raise InvalidInput(
            "api_key",
            f"{facts.slug} has none; {variable}POST it to "
            f"/api/providers/{facts.slug}/key",
        )
    model = _cheapest(facts)
    began = host.clock.monotonic()
    try:
        async with asyncio.timeout(PATIENCE):
            checked = await _check(host, spec, model)
    except TimeoutError:
        return _failed(host, facts, f"no answer within {PATIENCE:g} s", 502)
    except AgentHostError as error:
        return _failed(host, facts, error.message, _status(error))
    return {
        "status": "ok",
        "provider": facts.slug,
        "latency_ms": round((host.clock.monotonic() - began) * 1000),
        "model_tested": model.id,
        "checked": checked,
    }


def _cheapest(facts: ProviderFacts) -> ModelFacts:
    models = [model for model in facts.models if model.status == "active"]
    if not models:
        raise InvalidInput(
            "model", f"list one under [providers.{facts.slug}] models to test it with"
        )
    return min(models, key=lambda row: row.input_cost_per_1m + row.output_cost_per_1m)


async def _check(host: Host, spec: ProviderSpec, model: ModelFacts) -> str:
    if await _vouched_for(host, spec.facts):
        return "key"
    await _chat(host, spec.facts.slug, model)
    return "model"


async def _vouched_for(host: Host, facts: ProviderFacts) -> bool:
    """Tell whether the probe proves the key; whatever else it says, a chat decides."""
    keys = host.models.keys_of(facts.slug)
    probe = facts.probe
    if probe is None or not probe.proves_key or not keys:
        return False
    if not re.fullmatch(probe.keys, keys[0].reveal()):
        return False
    wire = probe.request(facts.at(keys[0]))
    name = urlsplit(wire.url).hostname or ""
    policy = EgressPolicy(
        PROBE_POLICY, frozenset({name}) if facts.local else frozenset(), PATIENCE / 3
    )
    try:
        async with (
            host.egress.exchange.faults(facts.slug),
            host.egress.client(policy).stream(
                wire.method, wire.url, headers=dict(wire.headers)
            ) as answer,
        ):
            return answer.is_success
    except ProviderError:
        return False


async def _chat(host: Host, slug: str, model: ModelFacts) -> None:
    target = host.models.resolve(slug, model.id)
    words = (Message(Role.USER, (Text("Hi"),)),)
    request = ChatRequest(model.upstream_id, "", words, max_tokens=FEW_TOKENS)
    async with aclosing(host.models.stream(target, request)) as deltas:
        async for _ in deltas:
            pass


def _status(error: AgentHostError) -> int:
    bad_key = isinstance(error, ProviderError) and error.fault is ProviderFault.AUTH
    return 401 if bad_key else 502


def _failed(host: Host, facts: ProviderFacts, said: str, status: int) -> Reply:
    said = redacted(said, [key.reveal() for key in host.models.keys_of(facts.slug)])
    body = {"status": "failed", "provider": facts.slug, "error": said}
    return Reply(body, status)
