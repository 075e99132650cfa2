"""From a provider and model name to a target: the one resolver."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from agenthost import (
    AgentHostError,
    ConfigError,
    Daemon,
    EgressPolicy,
    InvalidInput,
    ModelFacts,
    ProviderSpec,
    Secret,
    Target,
    did_you_mean,
)

from .configured import configured
from .keys import Keys

log = logging.getLogger(__name__)

OFFLINE = "offline"
LOCAL_FIRST = "ollama"
PROBE = EgressPolicy(
    "local_models", timeout=0.5, total_timeout=1.0, max_bytes=1024 * 1024
)


def _index(
    providers: Iterable[ProviderSpec],
) -> dict[str, tuple[ProviderSpec, ModelFacts]]:
    """Find models by id, by alias and by the retired ids they replace, in any case."""
    rows = [(spec, model) for spec in providers for model in spec.facts.models]
    index = {model.id.lower(): (spec, model) for spec, model in rows}
    names = [(alias, spec, model) for spec, model in rows for alias in model.aliases]
    names += [(old, spec, model) for spec, model in rows for old in model.replaces]
    for name, spec, model in names:
        index.setdefault(name.lower(), (spec, model))
    return index


class Catalogue:
    """The providers of the plugins and of the configuration, and their models."""

    def __init__(self, daemon: Daemon, keys: Keys) -> None:
        self._config = daemon.config
        self._keys = keys
        self._providers = configured(daemon)
        self._index = _index(self._providers.values())
        self._egress = daemon.egress
        self._local: Target | None = None
        self._noticed: set[str] = set()

    @property
    def providers(self) -> Mapping[str, ProviderSpec]:
        """All providers by slug."""
        return self._providers

    async def probe_local(self) -> None:
        """Find out whether a local Ollama answers, to prefer a model it has."""
        spec = self._providers.get(LOCAL_FIRST)
        if spec is None or self._config.default_model.provider:
            return
        names = await self._installed(spec)
        known = (self._listed(spec, name) or _unlisted(spec, name) for name in names)
        self._local = next((Target(spec, model) for model in known), None)

    async def _installed(self, spec: ProviderSpec) -> list[str]:
        """Ask an Ollama for the models it has; none when nothing answers like one."""
        import httpx

        host = urlsplit(spec.facts.base_url).hostname or ""
        policy = replace(PROBE, allowed_hosts=frozenset({host}))
        try:
            answer = await self._egress.client(policy).get(
                spec.facts.base_url.rstrip("/") + "/api/tags"
            )
            rows = answer.raise_for_status().json()["models"]
            return [str(row["name"]) for row in rows]
        except (AgentHostError, httpx.HTTPError, ValueError, KeyError, TypeError):
            return []

    def default(self) -> Target:
        """The daemon's default model: configured, local, first with a key, offline."""
        chosen = self._config.default_model
        if chosen.provider:
            return self.resolve(chosen.provider, chosen.model)
        if self._local is not None:
            return self._local
        for spec in self._providers.values():
            if self._keys.has(spec.facts) and spec.facts.models:
                return Target(spec, spec.facts.models[0])
        return self.resolve(OFFLINE, "")

    def names_of_default(self) -> tuple[str, str]:
        """The default provider's slug and model id, for display."""
        target = self.default()
        return target.provider.facts.slug, target.model.id

    def check_default(self) -> list[str]:
        """Warn of a default model without a key, or that no catalogue lists.

        Raises:
            ConfigError: ``[default_model]`` names a provider that is not there.
        """
        chosen = self._config.default_model
        if not chosen.provider:
            return []
        try:
            target = self.resolve(chosen.provider, chosen.model)
        except InvalidInput as error:
            raise ConfigError(f"default_{error.message}") from error
        slug, model = target.provider.facts.slug, target.model.id
        warnings = []
        if self.auth_status(slug) == "missing":
            warnings.append(
                f"default_model: {slug} has no API key; set "
                f"{target.provider.facts.env_var} or POST /api/providers/{slug}/key"
            )
        if self._listed(target.provider, model) is None and slug != LOCAL_FIRST:
            warnings.append(
                f"default_model.model: {slug} lists no model {model!r}"
                f"{did_you_mean(model, [m.id for m in target.provider.facts.models])}"
            )
        return warnings

    def lists(self, model: str) -> bool:
        """Tell whether some catalogue lists a model of this name."""
        return model.lower() in self._index

    def keys_of(self, slug: str) -> Sequence[Secret]:
        """Give a provider's keys in force, in the order they are tried."""
        return self._keys.of(self._providers[slug].facts)

    def auth_status(self, slug: str) -> str:
        """How a provider's key stands: configured, missing or no_key_needed."""
        spec = self._providers[slug]
        if self._keys.has(spec.facts):
            return "configured"
        return "missing" if spec.facts.key_required else "no_key_needed"

    def resolve(self, provider: str | None, model: str | None) -> Target:
        """Find the model; ``default`` or nothing means the daemon's default.

        A model that the provider's catalogue does not list is passed on as it is. A
        retired id leads to what took its place, which the log tells once.

        Raises:
            InvalidInput: The provider is unknown, or has no model to choose.
        """
        named = (model or "").strip()
        if named.lower() == "default":
            named = ""
        target = self._found(provider, named)
        notice = target.model.notice(named)
        if notice is not None and notice.lower() not in self._noticed:
            self._noticed.add(notice.lower())
            log.warning("%s", notice)
        return target

    def _found(self, provider: str | None, named: str) -> Target:
        if not provider or provider == "default":
            return self._by_model(named) if named else self.default()
        spec = self._provider(provider)
        known = self._listed(spec, named)
        if known is not None:
            return Target(spec, known)
        if not named:
            raise InvalidInput("model", f"provider {provider!r} needs a model name")
        return Target(spec, _unlisted(spec, named))

    def _provider(self, slug: str) -> ProviderSpec:
        spec = self._providers.get(slug)
        if spec is None:
            hint = did_you_mean(slug, self._providers)
            raise InvalidInput(
                "model.provider",
                f"unknown provider {slug!r}{hint}; enable its plugin or declare it "
                f"under [providers.{slug}] in config.toml",
            )
        return spec

    def _listed(self, spec: ProviderSpec, named: str) -> ModelFacts | None:
        models = spec.facts.models
        if not named:
            return models[0] if models else None
        wanted = {named.lower(), f"{spec.facts.slug}/{named}".lower()}
        for model in models:
            if model.id.lower() in wanted or model.upstream_id.lower() in wanted:
                return model
        for model in models:
            others = {name.lower() for name in (*model.aliases, *model.replaces)}
            if not wanted.isdisjoint(others):
                return model
        return None

    def _by_model(self, named: str) -> Target:
        found = self._index.get(named.lower())
        if found is not None:
            return Target(*found)
        slug, _, rest = named.partition("/")
        if rest and slug in self._providers:
            return self.resolve(slug, rest)
        default = self.default()
        return Target(default.provider, _unlisted(default.provider, named))


def _unlisted(spec: ProviderSpec, name: str) -> ModelFacts:
    return ModelFacts(name, spec.facts.slug, name, name)
