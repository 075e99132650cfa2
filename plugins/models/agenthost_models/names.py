"""What a model's name may mean: the models there are, by every name they have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from agenthost import LongContext, ModelFacts, ProviderSpec, Target

# What follows a model's name where the same model is meant: a date, a version, a tag.
VARIANT = re.compile(r"$|[:@]|-(?:[0-9]{4}|latest|v[0-9])")

Index = dict[str, list[Target]]


class Names:
    """Finds models, in any case, within one provider and among all of them.

    Ids go before aliases, and those before the retired ids that a model replaces; what
    is installed on a local server comes last. Within its provider a model is also found
    by its id on the wire, and by each of its names with ``<provider>/`` before it.
    """

    def __init__(self, providers: Mapping[str, ProviderSpec]) -> None:
        self._slugs = {slug.lower(): slug for slug in providers}
        self._installed: dict[str, dict[str, ModelFacts]] = {}
        self._providers = providers
        self._listed: dict[str, dict[str, ModelFacts]] = {}

    @cached_property
    def _indexes(self) -> tuple[Index, Index, Index]:
        """All models by id, by alias and by retired id.

        Many daemons are only asked for one provider's: a start need not wait for it.
        """
        ids: Index = {}
        aliases: Index = {}
        retired: Index = {}
        for spec in self._providers.values():
            for row in spec.facts.models:
                target = Target(spec, row)
                _note(ids, [row.id], target)
                _note(aliases, row.aliases, target)
                _note(retired, row.replaces, target)
        return ids, aliases, retired

    def slug(self, name: str) -> str | None:
        """Give a provider's slug as it is written, or None when there is none."""
        return self._slugs.get(name.lower())

    def prefix(self, name: str) -> tuple[str, str] | None:
        """Read ``<provider>/<model>``; a name that is somebody's id is no such pair."""
        head, _, rest = name.partition("/")
        slug = self.slug(head)
        if slug is None or not rest or name.lower() in self._indexes[0]:
            return None
        return slug, rest.strip()

    def within(self, slug: str, name: str) -> ModelFacts | None:
        """Find a model of one provider."""
        known = name.lower()
        installed = self._installed.get(slug, {})
        return self._listed_by(slug).get(known) or installed.get(known)

    def anywhere(self, name: str) -> Sequence[Target]:
        """Find every model of this name, in the order of the providers."""
        known = name.lower()
        for index in self._indexes:
            if known in index:
                return index[known]
        return [
            Target(self._providers[slug], rows[known])
            for slug, rows in self._installed.items()
            if known in rows
        ]

    def install(self, slug: str, names: Iterable[str]) -> None:
        """Note what a local server has, in place of what it had before."""
        spec, listed = self._providers[slug], self._listed_by(slug)
        rows = {n.lower(): listed.get(n.lower()) or unlisted(spec, n) for n in names}
        self._installed[slug] = _with_prefix(slug, rows)

    def first_installed(self, slug: str) -> ModelFacts | None:
        """Give the model that a local server named first."""
        return next(iter(self._installed.get(slug, {}).values()), None)

    def _listed_by(self, slug: str) -> dict[str, ModelFacts]:
        if slug not in self._listed:
            self._listed[slug] = _names_within(self._providers[slug])
        return self._listed[slug]


def unlisted(spec: ProviderSpec, name: str) -> ModelFacts:
    """Make the row of a model that its provider does not list.

    A dated, tagged or tuned name of a listed model has that one's facts; any other is
    spoken to as the provider's usual model is, and priced as its dearest. Its id leads
    to it again: a name on the wire that begins with the provider's own would lose its
    beginning, so it gets another one before it.
    """
    slug = spec.facts.slug
    again = f"{slug}/{name}" if name.lower().startswith(f"{slug.lower()}/") else name
    kin = _kin(spec, name)
    if kin is not None:
        facts: dict[str, Any] = {"id": again, "upstream_id": name, "display_name": name}
        return replace(kin, **facts, aliases=(), replaces=())
    known = usual(spec)
    row = ModelFacts(again, slug, name, name, dialect=known.dialect if known else None)
    if known is None:
        return row
    if not spec.facts.local:
        return replace(row, **_dearest_rates(spec.facts.models))
    # A local server loads as much of a window as it is asked for.
    return replace(row, context_window=min(known.context_window, row.context_window))


def usual(spec: ProviderSpec) -> ModelFacts | None:
    """Give the model of a provider that is taken when nobody names one."""
    rows = spec.facts.models
    stated = (row for row in rows if row.id == spec.facts.default_model)
    return next(stated, rows[0] if rows else None)


def _dearest_rates(rows: Sequence[ModelFacts]) -> dict[str, Any]:
    """Give the highest of each of the rates that a provider has."""
    long = [row.long_context for row in rows if row.long_context]
    dear: list[ModelFacts | LongContext] = [*rows, *long]
    written = (row.cache_write_cost_per_1m or 0.0 for row in dear)
    return {
        "input_cost_per_1m": max(row.input_cost_per_1m for row in dear),
        "output_cost_per_1m": max(row.output_cost_per_1m for row in dear),
        "cache_write_cost_per_1m": max(written) or None,
    }


def _kin(spec: ProviderSpec, name: str) -> ModelFacts | None:
    kin = [
        row
        for row in spec.facts.models
        if _varies(row.upstream_id, name) or _varies(name, row.upstream_id)
    ]
    return max(kin, key=lambda row: len(row.upstream_id), default=None)


def _varies(known: str, name: str) -> bool:
    before, found, after = name.lower().partition(known.lower())
    if not found or (before and before[-1] not in ":./"):
        return False
    return VARIANT.match(after) is not None


def without(slug: str, name: str) -> str:
    """Take the provider's own prefix off a model's name."""
    own = f"{slug}/"
    return name[len(own) :] if name.lower().startswith(own.lower()) else name


def _names_within(spec: ProviderSpec) -> dict[str, ModelFacts]:
    found = dict[str, ModelFacts]()
    rows = spec.facts.models
    for names in (
        [(row.id, row) for row in rows],
        [(row.upstream_id, row) for row in rows],
        [(alias, row) for row in rows for alias in row.aliases],
        [(old, row) for row in rows for old in row.replaces],
    ):
        for name, row in names:
            found.setdefault(name.lower(), row)
    return _with_prefix(spec.facts.slug, found)


def _with_prefix(slug: str, rows: dict[str, ModelFacts]) -> dict[str, ModelFacts]:
    """Add each name with the provider's prefix, and without it."""
    own = f"{slug.lower()}/"
    for name, row in list(rows.items()):
        rows.setdefault(name.removeprefix(own), row)
        rows.setdefault(own + name, row)
    return rows


def _note(index: Index, names: Iterable[str], target: Target) -> None:
    for name in names:
        index.setdefault(name.lower(), []).append(target)
