"""What ``[providers.<slug>]`` adds to each request: read, checked and kept secret."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from agenthost import Extras, Host
from pydantic import AfterValidator, JsonValue, PlainSerializer

if TYPE_CHECKING:
    from .settings import ProviderSection

HIDDEN = "***"
DEEPEST = 8
LONGEST = 8_192
SHORTEST = 6
"""A shorter secret stands in any text: to take it out would show more than it hides."""
# What else RFC 9110 allows in a name nobody uses.
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
SECRET = re.compile(r"(?i)(key|token|secret|password|auth|authorization|cookie|sig)$")

OF_THE_CONNECTION = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
OF_THE_DIALECT = frozenset({"accept", "anthropic-version", "content-type", "prefer"})
OF_THE_KEY = frozenset({"api-key", "authorization", "x-api-key", "x-goog-api-key"})
OF_THE_PROMPT = frozenset(
    {
        "contents",
        "input",
        "instructions",
        "messages",
        "model",
        "n",
        "prompt",
        "stream",
        "system",
        "systemInstruction",
        "toolConfig",
        "tools",
    }
)
"""Of all dialects: what the conversation is and may do, and how many answers it has."""
OF_THE_BUDGET = frozenset(
    {
        "best_of",
        "candidateCount",
        "max_completion_tokens",
        "max_new_tokens",
        "max_output_tokens",
        "max_tokens",
        "maxOutputTokens",
        "maxTokens",
        "num_predict",
    }
)
"""At any depth: room was held for so many tokens and no more."""


BEARER = {"Authorization": "Bearer {key}"}
KEY_HEADERS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "api-key": {"api-key": "{key}"},
        "bearer": BEARER,
        "entra": BEARER,
        "vertex": BEARER,
    }
)
"""How each ``auth`` shows the key, or the token that it is exchanged for."""


def _header(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("must be a header's name: letters, digits, - and _")
    lowered = name.lower()
    if lowered in OF_THE_KEY or lowered.startswith("x-amz-"):
        raise ValueError("shows the key; give the provider its key, and see auth")
    if lowered in OF_THE_CONNECTION or lowered in OF_THE_DIALECT:
        raise ValueError("is written by the daemon itself; leave it out")
    return name


def _value(value: str) -> str:
    if not is_header_value(value):
        raise ValueError(f"must be ASCII on one line, at most {LONGEST:,} characters")
    return value


def _query(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._~$-]{1,64}", name):
        raise ValueError("must be a name: letters, digits, and . _ ~ $ -")
    if name.lower() == "alt":
        raise ValueError("is written by the daemon itself; leave it out")
    return name


HeaderName = Annotated[str, AfterValidator(_header)]
HeaderValue = Annotated[str, AfterValidator(_value)]
QueryName = Annotated[str, AfterValidator(_query)]


def is_header_value(text: str) -> bool:
    """Tell whether a header can hold the text."""
    return text.isascii() and text.isprintable() and 0 < len(text) <= LONGEST


def checked_body(body: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuse what would replace the conversation, or outspend a budget.

    Raises:
        ValueError: Naming the key.
    """
    if taken := sorted(OF_THE_PROMPT & body.keys()):
        raise ValueError(f"{taken[0]!r} is written by the daemon itself; leave it out")
    for name, value in _entries(body, 0):
        if name in OF_THE_BUDGET:
            raise ValueError(
                f"{name!r} is what budgets count on; write the model's max_output"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name!r} must be a finite number")
    return body


def _entries(value: Any, depth: int, name: str = "") -> Iterator[tuple[str, Any]]:
    """List all that stands in a table, at any depth, by the name it stands under."""
    if depth > DEEPEST:
        raise ValueError(f"must be at most {DEEPEST} tables deep")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key, inner
            yield from _entries(inner, depth + 1, key)
    elif isinstance(value, list):
        for inner in value:
            yield name, inner
            yield from _entries(inner, depth + 1, name)


def _shown(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _shown(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shown(inner, name) for inner in value]
    return HIDDEN if isinstance(value, str) and SECRET.search(name) else value


SHOWN = PlainSerializer(_shown)
"""Where a configuration is shown, what looks like a secret is not."""
MASKED = PlainSerializer(lambda table: dict.fromkeys(table, HIDDEN))
"""No value is shown: what a gateway calls its key, nobody knows."""


def extras_of(host: Host, slug: str, section: ProviderSection) -> Extras:
    """Gather what a section adds; what the environment lacks is left out and told."""
    headers, query = dict(section.headers), dict(section.query)
    secrets = [v for n, v in {**headers, **query}.items() if SECRET.search(n)]
    entries = _entries(section.body, 0)
    secrets += [v for n, v in entries if isinstance(v, str) and SECRET.search(n)]
    for name, variable in section.headers_env.items():
        value = host.environ.get(variable, "").strip()
        if is_header_value(value):
            headers[name] = value
            secrets.append(value)
        else:
            wrong = "is no value of a header" if value else "is not set"
            host.warnings.append(
                f"providers.{slug}.headers_env.{name}: {variable} {wrong}; requests "
                "go without it"
            )
    shown = KEY_HEADERS.get(section.auth or "", {})
    told = tuple(secret for secret in secrets if len(secret) >= SHORTEST)
    return Extras(headers, query, section.body, shown, told)
