"""What installed distributions offer to tests, without a daemon."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from importlib_metadata import EntryPoints, entry_points

from ..providers import DialectSpec, ProviderSpec


@cache
def provider_of(slug: str) -> ProviderSpec:
    """Load the provider that an installed distribution offers under this slug."""
    (entry,) = _entries().select(group="agenthost.providers", name=slug)
    specs: list[ProviderSpec] = list(entry.load().register_provider())
    return next(s for s in specs if s.facts.slug == slug).made(installed_dialects())


@cache
def installed_dialects() -> Mapping[str, DialectSpec]:
    """Load the dialects that installed distributions offer, by name."""
    plugins = [entry.load() for entry in _entries().select(group="agenthost.plugins")]
    hooks = [p.register_dialect for p in plugins if hasattr(p, "register_dialect")]
    return {spec.name: spec for hook in hooks for spec in hook()}


@cache
def _entries() -> EntryPoints:
    """Look once: nothing is installed while a process tests."""
    return entry_points()
