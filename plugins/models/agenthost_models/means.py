"""What calls of models are made with: keys, breakers, budgets, and the way out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agenthost import (
    EgressPolicy,
    Host,
    Payer,
    ProviderError,
    ProviderFacts,
    Spent,
    Target,
    Usage,
    redacted,
    secrets_of,
)
from agenthost_values.value_class import value_class

from .breaker import Breakers
from .budget import Budgets
from .keys import Keys
from .price import price
from .settings import Providers

if TYPE_CHECKING:
    from agenthost import ProviderSpec

    from .tokens import Tokens

LONGEST_CALL = 3_600.0


@value_class
class Means:
    """What the calls of one daemon share."""

    host: Host
    keys: Keys
    random: Random
    providers: Mapping[str, ProviderSpec]
    budgets: Budgets
    tokens: Mapping[str, Tokens]
    breakers: Breakers

    def policy(self, facts: ProviderFacts, patience: float) -> EgressPolicy:
        """Say what a provider's requests may reach, and how long they may be silent."""
        configured = facts.local or facts.slug in self.host.settings(Providers).root
        return _policy(facts.slug, facts.base_url, patience, configured=configured)

    def without_secrets(self, error: ProviderError) -> ProviderError:
        """Take every secret of the daemon out of what a vendor said."""
        given = [s for p in self.providers.values() for s in p.facts.extras.secrets]
        given += [token for each in self.tokens.values() for token in each.live]
        detail = redacted(error.detail, [*secrets_of(self.host), *given])
        if detail == error.detail:
            return error
        waits = error.retry_after
        return ProviderError(error.fault, error.provider, detail, retry_after=waits)

    def spent(self, target: Target, payer: Payer | None, usage: Usage) -> Spent:
        """Price a call for the ledger."""
        context = payer.context if payer else None
        agent = payer.agent if payer else None
        return Spent(
            at=self.host.clock.time(),
            agent_id=agent.id if agent else "",
            session_id=agent.session_id if agent else "",
            turn_id=payer.turn_id if payer else "",
            provider=target.provider.facts.slug,
            model=target.model.id,
            usage=usage,
            cost_micro_usd=price(target.model, usage),
            principal=context.owner if context else "",
            person=context.principal.person if context else "",
        )


# Every call asks for one, and only what is said here makes it another.
@lru_cache(maxsize=1_024)
def _policy(
    slug: str, base_url: str, patience: float, *, configured: bool
) -> EgressPolicy:
    host = urlsplit(base_url).hostname or ""
    return EgressPolicy(
        name=f"provider:{slug}",
        allowed_hosts=frozenset({host}) if configured and host else frozenset(),
        timeout=patience,
        total_timeout=LONGEST_CALL,
    )
