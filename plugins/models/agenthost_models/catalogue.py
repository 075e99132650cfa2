"""The providers and models there are, and what every name leads to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from agenthost import (
    Choice,
    ConfigError,
    Host,
    InvalidInput,
    ProviderSpec,
    Secret,
    Target,
)

from .configured import configured
from .keys import Keys, lack
from .local import installed
from .resolver import LOCAL_FIRST, Resolver, plain

log = logging.getLogger(__name__)

MOST_NAMES = 4_096


class Catalogue:
    """The providers of the plugins and of the configuration, and their models.

    What a name leads to is worked out once, until a key changes or a local server has
    told what it has: every agent that is shown asks for its model.
    """

    def __init__(self, host: Host, keys: Keys) -> None:
        self._config = host.config
        self._vault = host.vault
        self._egress = host.egress
        self._keys = keys
        self._providers = configured(host)
        self._resolver = Resolver(host, keys, self._providers)
        self._resolved: dict[tuple[str | None, str | None], Target] = {}
        self._as_of = -1
        self._noticed: set[str] = set()

    @property
    def providers(self) -> Mapping[str, ProviderSpec]:
        """All providers by slug."""
        return self._providers

    async def probe_local(self) -> None:
        """Find out whether a local Ollama answers, to prefer a model it has."""
        spec = self._providers.get(LOCAL_FIRST)
        if spec is not None and not self._config.default_model.provider:
            await self._ask(spec)

    def default(self) -> Target:
        """The daemon's default model: configured, local, first with a key, offline."""
        return self.resolve(None, None)

    def names_of_default(self) -> tuple[str, str]:
        """The default provider's slug and model id, for display."""
        return self.default().names

    def check_default(self) -> list[str]:
        """Tell what ``[default_model]`` lacks: a key, or a model that is listed.

        Raises:
            ConfigError: Nobody offers its provider, or that has no model to choose.
        """
        written = self._config.default_model
        if not (written.provider or written.model):
            return []
        try:
            choice = self._current().default()
        except InvalidInput as error:
            raise ConfigError(f"default_{error.message}") from error
        facts = choice.target.provider.facts
        # What a local server has is not known before it was asked.
        told = [] if facts.local else list(choice.notices)
        if self.auth_status(facts.slug) == "missing":
            told.append(f"{facts.slug}: {lack(facts)}")
        return [f"default_model: {notice}" for notice in told]

    def find(self, name: str) -> Target | None:
        """Find what is listed under an id, an alias or ``<provider>/<model>``."""
        named = plain(name)
        choice = self._current().listed("", named) if named else None
        return choice.target if choice else None

    def keys_of(self, slug: str) -> Sequence[Secret]:
        """Give a provider's keys in force, in the order they are tried."""
        return self._keys.of(self._providers[slug].facts)

    def auth_status(self, slug: str) -> str:
        """How a provider's key stands: configured, missing or no_key_needed."""
        return self._resolver.standing(slug)

    def resolve(self, provider: str | None, model: str | None) -> Target:
        """Find the model; ``default`` or nothing means the daemon's default.

        A model that the provider's catalogue does not list is passed on as it is. A
        retired id leads to what took its place, which the log tells once.

        Raises:
            InvalidInput: The provider is unknown, or has no model to choose.
        """
        resolver = self._current()
        target = self._resolved.get((provider, model))
        if target is None:
            named = plain(model)
            target = resolver.choose(plain(provider), named).target
            self._resolved[provider, model] = target
            self._log(target.model.notice(named))
        return target

    async def choose(
        self, provider: str | None, model: str | None, own: str = ""
    ) -> Choice:
        """Resolve what somebody names for an agent of the provider ``own``.

        Local servers are asked for a name that nobody lists.

        Raises:
            InvalidInput: The provider is unknown, or has no model to choose.
        """
        asked = plain(provider), plain(model), own
        if asked[1] and self._current().listed(*asked) is None:
            await asyncio.gather(*map(self._ask, self._local(*asked)))
        return self._current().choose(*asked)

    def _local(self, provider: str, named: str, own: str) -> list[ProviderSpec]:
        """Name the local servers that may have a model which nobody lists."""
        spec, _ = self._resolver.asked(provider, named, own)
        if spec.facts.local or provider or self._resolver.names.prefix(named):
            return [spec] if spec.facts.local else []
        return [each for each in self._providers.values() if each.facts.local]

    async def _ask(self, spec: ProviderSpec) -> None:
        slug = spec.facts.slug
        names = await installed(spec.facts, self.keys_of(slug), self._egress)
        # A server that is silent just now keeps what it had: the default may be of it.
        if names is not None:
            self._resolver.names.install(slug, names)
            self._forget()

    def _current(self) -> Resolver:
        """Give the resolver, which knows nothing older than the keys."""
        if self._as_of != self._vault.revision or len(self._resolved) > MOST_NAMES:
            self._forget()
        return self._resolver

    def _forget(self) -> None:
        self._resolved.clear()
        self._resolver.forget()
        self._as_of = self._vault.revision

    def _log(self, notice: str | None) -> None:
        if notice is not None and notice.lower() not in self._noticed:
            self._noticed.add(notice.lower())
            log.warning("%s", notice)
