"""The one resolver: from what somebody calls a model to the model."""

from __future__ import annotations

from agenthost import (
    Choice,
    Host,
    InvalidInput,
    ProviderSpec,
    Target,
    did_you_mean,
)

from .configured import Providers
from .keys import Keys
from .names import Names, unlisted, usual, without

OFFLINE = "offline"
LOCAL_FIRST = "ollama"
NOBODY = "no provider can answer; give one a key or enable the provider offline"
STANDINGS = ("configured", "no_key_needed", "missing")


class Resolver:
    """Reads names of models as people write them.

    The provider that the caller names is never left. Else the agent's own goes first,
    then the one that the name begins with, then whoever has such a model: those with a
    key, those that need none, those that lack one. A name that nobody lists is passed
    on as it is. What should be known of the choice stands in its notices.
    """

    def __init__(self, host: Host, keys: Keys, providers: Providers) -> None:
        self._written = host.config.default_model
        self._keys = keys
        self._providers = providers
        self._usual: Target | None = None
        self.names = Names(providers)

    def forget(self) -> None:
        """A key has changed, or a local server told what it has."""
        self._usual = None

    def default(self) -> Choice:
        """Choose for who names nothing: configured, local, first with a key, offline.

        Raises:
            InvalidInput: What is configured leads nowhere.
        """
        asked = plain(self._written.provider), plain(self._written.model)
        return self.choose(*asked) if any(asked) else Choice(self._unwritten())

    def choose(self, provider: str, named: str, own: str = "") -> Choice:
        """Find the model, listed or not.

        Raises:
            InvalidInput: The provider is unknown, or has no model to choose.
        """
        if not (provider or named):
            return self.default()
        found = self.listed(provider, named, own)
        if found is not None:
            return found
        spec, name = self.asked(provider, named, own)
        slug = spec.facts.slug
        if not name:
            raise InvalidInput("model", f"provider {slug!r} needs a model name")
        hint = did_you_mean(name, [model.id for model in spec.facts.models])
        notice = f"{slug} lists no model {name!r}, which is passed on as it is{hint}"
        return Choice(Target(spec, unlisted(spec, name)), (notice,))

    def listed(self, provider: str, named: str, own: str = "") -> Choice | None:
        """Find who lists the model, if anybody does."""
        if provider:
            return _told(self._within(self._provider(provider), named), named)
        pair = self.names.prefix(named)
        others = [target.names[0] for target in self.names.anywhere(named)]
        home = self._home(own)
        if home is not None and (at_home := self._within(home, named)):
            return _told(at_home, named, [*others, *([pair[0]] if pair else [])])
        if pair is not None:
            return _told(self._within(self._providers[pair[0]], pair[1]), pair[1])
        best = min(self.names.anywhere(named), key=self._standing, default=None)
        return _told(best, named, others)

    def asked(self, provider: str, named: str, own: str) -> tuple[ProviderSpec, str]:
        """Find who is asked for a name that nobody lists, and by which name."""
        if provider:
            spec = self._provider(provider)
            return spec, without(spec.facts.slug, named)
        pair = self.names.prefix(named)
        if pair is not None:
            return self._providers[pair[0]], pair[1]
        return self._home(own) or self._unwritten().provider, named

    def standing(self, slug: str) -> str:
        """How a provider's key stands: configured, missing or no_key_needed."""
        facts = self._providers[slug].facts
        if self._keys.has(facts):
            return "configured"
        return "missing" if facts.key_required else "no_key_needed"

    def _standing(self, target: Target) -> int:
        return STANDINGS.index(self.standing(target.names[0]))

    def _within(self, spec: ProviderSpec, named: str) -> Target | None:
        row = self.names.within(spec.facts.slug, named) if named else usual(spec)
        return Target(spec, row) if row else None

    def _home(self, own: str) -> ProviderSpec | None:
        """The provider that goes first: the agent's, else the default's."""
        written = plain(self._written.provider)
        slug = own if own in self._providers else self.names.slug(written)
        if slug:
            return self._providers[slug]
        self._usual = self._usual or self._best()
        return self._usual.provider if self._usual else None

    def _unwritten(self) -> Target:
        """The model of a daemon whose configuration names none."""
        self._usual = self._usual or self._best()
        if self._usual is None:
            raise InvalidInput("model", NOBODY)
        return self._usual

    def _best(self) -> Target | None:
        local = self.names.first_installed(LOCAL_FIRST)
        if local is not None:
            return Target(self._providers[LOCAL_FIRST], local)
        for spec in self._providers.values():
            row = usual(spec) if self._keys.has(spec.facts) else None
            if row is not None:
                return Target(spec, row)
        built_in = self._providers.get(OFFLINE)
        return self._within(built_in, "") if built_in else None

    def _provider(self, name: str) -> ProviderSpec:
        slug = self.names.slug(name)
        if slug is None:
            hint = did_you_mean(name, self._providers)
            raise InvalidInput(
                "model.provider",
                f"unknown provider {name!r}{hint}; enable its plugin or declare it "
                f"under [providers.{name}] in config.toml",
            )
        return self._providers[slug]


def plain(written: str | None) -> str:
    """Read what was written for a provider or a model; ``default`` is nothing."""
    name = (written or "").strip()
    return "" if name.lower() == "default" else name


def _told(
    target: Target | None, named: str, also: list[str] | None = None
) -> Choice | None:
    """Tell what replaces the model, and who else has one of this name."""
    if target is None:
        return None
    slug = target.names[0]
    notices = [notice] if (notice := target.model.notice(named)) else []
    others = [each for each in dict.fromkeys(also or ()) if each != slug]
    if others:
        notices.append(
            f"{named!r} is taken from {slug}; it is also a model of "
            f"{', '.join(others)}: name the provider to have that one"
        )
    return Choice(target, tuple(notices))
