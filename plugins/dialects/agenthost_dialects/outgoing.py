"""Write a request with what the operator adds to it: headers, query, body and key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from agenthost import Endpoint, HttpRequest

from .answers import body_of

BEARER: Mapping[str, str] = MappingProxyType({"Authorization": "Bearer {key}"})


def post(
    endpoint: Endpoint, url: str, headers: Mapping[str, str], body: Mapping[str, Any]
) -> HttpRequest:
    """Write a POST of JSON; where nothing is added, it is what the dialect wrote."""
    extras = endpoint.extras
    if not (extras.headers or extras.query or extras.body):
        return HttpRequest("POST", url, headers, body_of(body))
    return HttpRequest(
        "POST",
        address(endpoint, url),
        headed(endpoint, headers),
        body_of(merged(body, extras.body)),
    )


def keyed(endpoint: Endpoint, usual: Mapping[str, str] = BEARER) -> dict[str, str]:
    """Make the headers that show the key, when there is one.

    Args:
        endpoint: Where the call goes, and how its operator wants the key shown.
        usual: How the dialect shows it otherwise; ``{key}`` stands for it.
    """
    if endpoint.key is None:
        return {}
    key, headers = endpoint.key.reveal(), {}
    for name, value in (endpoint.extras.key_headers or usual).items():
        headers[name] = value.replace("{key}", key)
    return headers


def headed(endpoint: Endpoint, headers: Mapping[str, str]) -> dict[str, str]:
    """Add the operator's headers; the dialect's own stay."""
    own = {name.lower() for name in headers}
    added = endpoint.extras.headers.items()
    return {**headers, **{n: v for n, v in added if n.lower() not in own}}


def address(endpoint: Endpoint, url: str) -> str:
    """Add the operator's query, behind the dialect's own."""
    if not endpoint.extras.query:
        return url
    parts = urlsplit(url)
    # In the order and the escapes that a signature wants.
    pairs = sorted(endpoint.extras.query.items())
    added = urlencode(pairs, quote_via=quote, safe="")
    query = f"{parts.query}&{added}" if parts.query else added
    return urlunsplit(parts._replace(query=query))


def merged(body: Mapping[str, Any], added: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge tables key by key; of anything else, what is added stays."""
    if not added:
        return body
    whole = dict(body)
    for name, value in added.items():
        own = whole.get(name)
        if isinstance(own, Mapping) and isinstance(value, Mapping):
            whole[name] = merged(own, value)
        else:
            whole[name] = value
    return whole
