"""Which models a server on this machine or network has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from agenthost import (
    AgentHostError,
    Egress,
    EgressPolicy,
    ProviderFacts,
    Secret,
)

PROBE = EgressPolicy(
    "local_models", timeout=1.0, total_timeout=2.0, max_bytes=1024 * 1024
)


async def installed(
    facts: ProviderFacts, keys: Sequence[Secret], egress: Egress
) -> list[str] | None:
    """Ask a server for the models it has; None when nothing answers like one."""
    import httpx

    if facts.probe is None:
        return None
    host = urlsplit(facts.base_url).hostname or ""
    policy = replace(PROBE, allowed_hosts=frozenset({host}))
    where = facts.at(keys[0] if keys else None)
    wire = facts.probe.request(where)
    try:
        answer = await egress.client(policy).request(
            wire.method, wire.url, headers=dict(wire.headers)
        )
        return _names(answer.raise_for_status().json())
    except (AgentHostError, httpx.HTTPError, ValueError, KeyError, TypeError):
        return None


def _names(listed: Any) -> list[str]:
    """Read a list of models as Ollama writes it, or as OpenAI does."""
    if "models" in listed:
        return [str(row["name"]) for row in listed["models"]]
    return [str(row["id"]) for row in listed["data"]]
