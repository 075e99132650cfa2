"""Encode and decode without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agenthost import ChatRequest, Completion, Delta, Dialect, Endpoint, Secret
from agenthost_providers.catalogue import load_facts

HERE = Endpoint("acme", "http://acme/v1/", Secret("sk-test"))


def there(slug: str, model: str) -> Endpoint:
    """Where a call of a listed model goes: its row comes along."""
    rows = (row for row in load_facts(slug).models if row.upstream_id == model)
    return Endpoint(slug, HERE.base_url, HERE.key, next(rows, None))


def body_of(
    dialect: Dialect, request: ChatRequest, where: Endpoint = HERE
) -> dict[str, Any]:
    """Encode and read back."""
    body: dict[str, Any] = json.loads(dialect.encode(request, where).body)
    return body


def decode(
    dialect: Dialect, body: bytes, request: ChatRequest | None = None
) -> tuple[list[Delta], Completion]:
    """Feed a whole body; return the deltas and the Completion among them."""
    asked = request or ChatRequest("m", "", ())
    decoder = dialect.decoder(asked, HERE)
    deltas = [*decoder.feed(body), *decoder.close()]
    (whole,) = [delta for delta in deltas if isinstance(delta, Completion)]
    return deltas, whole


def sse(*payloads: Mapping[str, Any] | str) -> bytes:
    """Write server-sent events."""
    texts = (p if isinstance(p, str) else json.dumps(p) for p in payloads)
    return "".join(f"data: {text}\n\n" for text in texts).encode()
