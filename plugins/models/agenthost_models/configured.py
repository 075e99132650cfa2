"""The providers of the plugins, as ``[providers.<slug>]`` changes and adds to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agenthost import (
    ConfigError,
    DialectSpec,
    Extras,
    Host,
    InvalidInput,
    ModelFacts,
    Probe,
    ProviderFacts,
    ProviderSpec,
    did_you_mean,
)

from .authentication import VERTEX_DIALECT, address_of, takes_token
from .extras import extras_of
from .settings import EmbeddingEntry, ProviderSection
from .settings import Providers as Sections

# What a write that lasts an hour costs, as a share of fresh input.
HOUR_FACTOR = 2
DEFAULT_DIALECT = "openai-chat"
REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-[0-9]{1,2}")

Providers = dict[str, ProviderSpec]


def configured(host: Host) -> Providers:
    """Join the providers of the plugins and those of the configuration.

    An alias that somebody else has is dropped, with a warning of the daemon.

    Raises:
        ConfigError: A declared provider cannot be used.
    """
    offered = host.registry.offered(ProviderSpec)
    providers = {spec.facts.slug: _placed(host, spec) for _, spec in offered}
    sections = host.settings(Sections).root
    for slug, section in sections.items():
        known = providers.get(slug)
        if known is None or section.dialect is not None:
            known = _declared(host, slug, section)
        providers[slug] = _changed(known, section, extras_of(host, slug, section))
    for warning in _drop_taken_aliases(providers, sections):
        host.warnings.append(warning)
    return providers


def _placed(host: Host, spec: ProviderSpec) -> ProviderSpec:
    """Move a provider to the region that the environment names."""
    facts = spec.facts
    named = (host.environ.get(name, "").strip() for name in facts.region_vars)
    region = next(filter(None, named), None)
    if region is None or facts.region is None:
        return spec
    if not REGION.fullmatch(region):
        host.warnings.append(f"{facts.region_vars[0]}: {region!r} is no region")
        return spec
    probe = facts.probe
    if probe is not None:
        probe = replace(probe, url=probe.url.replace(facts.region, region))
    url = facts.base_url.replace(facts.region, region)
    return replace(spec, facts=replace(facts, base_url=url, probe=probe))


def _declared(host: Host, slug: str, section: ProviderSection) -> ProviderSpec:
    """A provider that stands in the configuration alone."""
    dialects = {spec.name: spec for _, spec in host.registry.offered(DialectSpec)}
    usual = VERTEX_DIALECT if section.vertex else DEFAULT_DIALECT
    name = section.dialect or usual
    offer = dialects.get(name)
    if offer is None:
        hint = did_you_mean(name, dialects)
        raise ConfigError(f"providers.{slug}.dialect: unknown dialect {name!r}{hint}")
    address = address_of(section)
    if address is None:
        raise ConfigError(
            f"providers.{slug}.base_url: is needed; no plugin offers {slug!r}"
        )
    facts = ProviderFacts(slug, slug, address, key_required=False)
    try:
        return ProviderSpec(facts, offer.make(section.quirks))
    except InvalidInput as error:
        raise ConfigError(f"providers.{slug}.quirks.{error.message}") from error


def _changed(
    spec: ProviderSpec, section: ProviderSection, extras: Extras
) -> ProviderSpec:
    facts, address = spec.facts, address_of(section)
    models = tuple(
        _row(facts, entry.model_dump(exclude_unset=True)) for entry in section.models
    )
    models = models or facts.models
    if section.cache_hour:
        models = tuple(map(_kept_an_hour, models))
    changed = replace(
        facts,
        probe=_probe(facts.probe, section, extras),
        base_url=(address or facts.base_url).rstrip("/"),
        **_variables(facts, section),
        key_required=bool(section.api_key_env or section.auth) or facts.key_required,
        models=models,
        embeddings=tuple(_vectors(facts, each) for each in section.embeddings)
        or facts.embeddings,
        extras=extras,
    )
    return replace(spec, facts=changed)


def _variables(facts: ProviderFacts, section: ProviderSection) -> dict[str, Any]:
    """Name the variables of the key; what becomes a token is another than the usual."""
    if takes_token(section):
        return {"env_var": section.api_key_env, "env_var_alternatives": ()}
    return {"env_var": section.api_key_env or facts.env_var}


def _probe(
    probe: Probe | None, section: ProviderSection, extras: Extras
) -> Probe | None:
    """Let a probe show the key as calls do; what becomes a token shows none."""
    if probe is None or takes_token(section):
        return None
    if extras.key_headers:
        bare = {n: v for n, v in probe.headers.items() if "{key}" not in v}
        probe = replace(probe, headers={**bare, **extras.key_headers})
    if section.base_url is not None:
        # What it proves is known of the provider's own address alone, not of a proxy.
        probe = replace(probe, proves_key=False)
    return probe


def _row(facts: ProviderFacts, written: dict[str, Any]) -> ModelFacts:
    """The catalogue's row with what is written in its place, or a new one."""
    name = written["id"]
    for row in facts.models:
        if name in {row.id, row.upstream_id} or f"{facts.slug}/{name}" == row.id:
            return replace(row, **{**written, "id": row.id})
    unnamed: dict[str, Any] = {"upstream_id": name, "display_name": name}
    if facts.local and facts.models:
        # A local server loads as much of a window as it is asked for.
        unnamed["context_window"] = facts.models[0].context_window
    return ModelFacts(**{**unnamed, **written, "provider": facts.slug})


def _vectors(facts: ProviderFacts, entry: EmbeddingEntry) -> ModelFacts:
    """The row of embeddings with what is written in its place, or a new one."""
    for row in facts.embeddings:
        if entry.id == row.id:
            return replace(row, **entry.model_dump(exclude_unset=True))
    names = {"upstream_id": entry.upstream_id or entry.id, "display_name": entry.id}
    window = {"context_window": entry.max_input, "max_output": 1}
    return ModelFacts(
        **{**entry.model_dump(), **names, **window, "provider": facts.slug}
    )


def _kept_an_hour(row: ModelFacts) -> ModelFacts:
    """Keep what the model's prompts mark for an hour, and know what that costs."""
    if "marks" not in row.caches or "brief" in row.caches:
        return row
    long = row.long_context
    if long is not None:
        twice = HOUR_FACTOR * long.input_cost_per_1m
        long = replace(long, cache_write_cost_per_1m=twice)
    return replace(
        row,
        caches=(*row.caches, "hour"),
        cache_write_cost_per_1m=HOUR_FACTOR * row.input_cost_per_1m,
        long_context=long,
    )


def _drop_taken_aliases(
    providers: Providers, sections: Mapping[str, ProviderSection]
) -> Iterator[str]:
    """Keep the written aliases that are free; tell of the others."""
    writing = [
        slug
        for slug, section in sections.items()
        if any(entry.aliases for entry in section.models)
    ]
    taken = _taken(providers, writing)
    for slug in writing:
        facts, rows = providers[slug].facts, []
        for row in facts.models:
            holders = {a: taken.setdefault(a.lower(), row) for a in row.aliases}
            free = tuple(a for a, holder in holders.items() if holder is row)
            rows.append(replace(row, aliases=free))
            for alias in holders.keys() - set(free):
                yield _told(alias, row, holders[alias])
        changed = replace(facts, models=tuple(rows))
        providers[slug] = replace(providers[slug], facts=changed)


def _taken(providers: Providers, writing: list[str]) -> dict[str, ModelFacts]:
    """Who has which name, in lower case: ids, and the aliases of other providers."""
    rows = [row for spec in providers.values() for row in spec.facts.models]
    taken = {
        alias.lower(): row
        for row in rows
        if row.provider not in writing
        for alias in row.aliases
    }
    return {**taken, **{row.id.lower(): row for row in rows}}


def _told(alias: str, row: ModelFacts, holder: ModelFacts) -> str:
    return (
        f"providers.{row.provider}.models: alias {alias!r} of {row.id!r} is left out: "
        f"{holder.id!r} of {holder.provider} has that name; choose another"
    )
