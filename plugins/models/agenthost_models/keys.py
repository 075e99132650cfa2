"""The keys of a provider: from the vault, else from the environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, takewhile

from agenthost import ProviderFacts, Secret, Vault


class Keys:
    """Looks keys up at every call, so that a changed key holds at once."""

    def __init__(self, vault: Vault, environ: Mapping[str, str]) -> None:
        self._vault = vault
        self._environ = environ

    def has(self, facts: ProviderFacts) -> bool:
        """Tell whether the provider has a key."""
        return bool(self.of(facts))

    def of(self, facts: ProviderFacts) -> list[Secret]:
        """Give the provider's keys in the order to try them.

        In the vault they are ``provider/<slug>``, ``provider/<slug>#2`` and so on; in
        the environment the provider's variable, then the same with ``_2`` and so on,
        else an alternative's.
        """
        stored = list(self._stored(f"provider/{facts.slug}"))
        if stored:
            return stored
        for name in filter(None, (facts.env_var, *facts.env_var_alternatives)):
            found = list(takewhile(bool, self._values(name)))
            if found:
                return [Secret(value) for value in found]
        return []

    def _stored(self, name: str) -> Iterator[Secret]:
        for number in count(1):
            key = self._vault.get(name if number == 1 else f"{name}#{number}")
            if key is None:
                return
            yield key

    def _values(self, name: str) -> Iterator[str]:
        yield self._joined(name)
        for number in count(2):
            yield self._joined(f"{name}_{number}")

    def _joined(self, names: str) -> str:
        """Join the values of variables; nothing when one is missing that must not."""
        values = []
        for name in names.split(":"):
            value = self._environ.get(name.removesuffix("?"), "").strip()
            if not value and not name.endswith("?"):
                return ""
            values.append(value)
        return ":".join(filter(None, values))


def lack(facts: ProviderFacts) -> str:
    """Say that a provider has no key, and the ways to give it one."""
    given = f"set {facts.env_var} in the daemon's environment, or " * bool(
        facts.env_var
    )
    return f"no API key; {given}POST it to /api/providers/{facts.slug}/key"
