"""Providers: how their keys stand, set and remove a key, try one out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from agenthost import (
    Answer,
    Call,
    Host,
    NotFound,
    ProviderSpec,
    RouteGroup,
    did_you_mean,
    telling,
)

from .catalogue_shapes import (
    MOST_KEYS,
    KeyAnswer,
    ProviderFailed,
    ProviderItem,
    ProviderList,
    ProviderTested,
    SetKey,
)
from .events import ProviderKeysChanged, ProviderTried
from .provider_trial import try_provider

routes = RouteGroup("providers")


@routes.get("/api/providers", scope="providers:read", answer=ProviderList)
async def list_providers(call: Call) -> Answer:
    """List every provider, those of the configuration included, by name."""
    specs = sorted(call.host.models.providers.items())
    rows = [_item(call.host, slug, spec) for slug, spec in specs]
    return {"providers": rows, "total": len(rows)}


@routes.post(
    "/api/providers/<name>/key",
    scope="providers:write",
    body=SetKey,
    answer=KeyAnswer,
)
async def set_key(call: Call, name: str, body: SetKey) -> Answer:
    """Keep the key of a provider, or several; it holds from the next call on."""
    host = call.host
    _find(host, name)
    keys = {
        _secret_name(name, number): value
        for number, value in enumerate(body.values(), 1)
    }
    await _keep(call, name, keys)
    return {"status": "configured", "provider": name}


@routes.delete("/api/providers/<name>/key", scope="providers:write", answer=KeyAnswer)
async def delete_key(call: Call, name: str) -> Answer:
    """Forget the keys of a provider; idempotent."""
    host = call.host
    spec = _find(host, name)
    await _keep(call, name, {})
    answer: KeyAnswer = {"status": "removed", "provider": name}
    if host.models.auth_status(name) == "configured":
        answer["message"] = f"{spec.facts.env_var} still holds a key"
    return answer


@routes.post(
    "/api/providers/<name>/test",
    scope="providers:test",
    cost=30,
    answer=ProviderTested,
    others={401: ProviderFailed, 502: ProviderFailed},
)
async def test_provider(call: Call, name: str) -> Answer:
    """Ask the provider for a few tokens at most, to prove its address and key."""
    host, now = call.host, call.host.clock.time()
    spec = _find(host, name)
    with telling(host.events, ProviderTried, name, now, **call.context.caused) as keep:
        # It may cost money, so that somebody does it is on disk before.
        if keep is not None:
            await host.store.write(keep)
        return await try_provider(host, spec)


def _find(host: Host, name: str) -> ProviderSpec:
    spec = host.models.providers.get(name)
    if spec is None:
        hint = did_you_mean(name, host.models.providers)
        raise NotFound("provider", f"{name}{hint}")
    return spec


def _item(host: Host, slug: str, spec: ProviderSpec) -> ProviderItem:
    facts = spec.facts
    auth_status = host.models.auth_status(slug)
    row: ProviderItem = {
        "name": slug,
        "display_name": facts.display_name,
        "auth_status": auth_status,
        "base_url": _without_secrets(facts.base_url),
        "model_count": len(facts.models),
    }
    if resting := host.models.resting(slug):
        row["resting"] = [
            {"model": model, "key": key, "fault": fault, "seconds": seconds}
            for model, key, fault, seconds in resting
        ]
    if facts.env_var and auth_status != "no_key_needed":
        row["env_var"] = facts.env_var
    return row


def _without_secrets(url: str) -> str:
    """Leave out what may be a password: what stands before the host, and the query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="").geturl()


def _secret_name(slug: str, number: int) -> str:
    return f"provider/{slug}" if number == 1 else f"provider/{slug}#{number}"


async def _keep(call: Call, slug: str, keys: Mapping[str, str]) -> None:
    """Keep these keys of a provider and no others."""
    host, now = call.host, call.host.clock.time()
    told = slug, now, len(keys)
    with telling(
        host.events, ProviderKeysChanged, *told, **call.context.caused
    ) as keep:
        # The vault is no table: that somebody changes it is on disk before it changes.
        if keep is not None:
            await host.store.write(keep)
        await host.vault.change({**_none_of(host, slug), **keys})


def _none_of(host: Host, slug: str) -> dict[str, None]:
    """Say that no key of the provider stays, also one that is being written now."""
    own = re.compile(rf"provider/{re.escape(slug)}(#[0-9]+)?")
    known = [name for name in host.vault.names() if own.fullmatch(name)]
    possible = [_secret_name(slug, number) for number in range(1, MOST_KEYS + 1)]
    return dict.fromkeys([*known, *possible])
