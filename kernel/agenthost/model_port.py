"""Where model calls go: the port MODELS, which a plugin serves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agenthost_chat.chat import ChatRequest, Completion, Delta

from .context import AgentView
from .providers import ModelFacts, ProviderSpec

if TYPE_CHECKING:
    from .record_port import Spent
    from .secrets import Secret


@dataclass(frozen=True, slots=True)
class Target:
    """A model that can be called: its provider, facts and wire id."""

    provider: ProviderSpec
    model: ModelFacts


@dataclass(slots=True)
class Pool:
    """What a tree of calls may spend together, in micro-USD."""

    limit: int
    used: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try that gave no answer: of what, why, and what was booked for it."""

    target: Target
    outcome: str
    spent: Spent | None = None


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose budgets and fallbacks a call uses, and the row it is booked on.

    The router adds to ``failed`` what it tried in vain.
    """

    agent: AgentView
    turn_id: str
    pools: tuple[Pool, ...] = ()
    failed: list[Attempt] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a call: what was said, by which model and for how much."""

    completion: Completion
    spent: Spent


class Models(Protocol):
    """The providers and models there are, and the way to call them."""

    @property
    def providers(self) -> Mapping[str, ProviderSpec]:
        """All providers by slug."""

    async def probe_local(self) -> None:
        """Find out whether a local server answers."""

    def default(self) -> Target:
        """Give the daemon's default model."""

    def names_of_default(self) -> tuple[str, str]:
        """Name the default provider's slug and model id, for display."""

    def check_default(self) -> list[str]:
        """Warn of a default model that cannot answer; ConfigError names a wrong one."""

    def lists(self, model: str) -> bool:
        """Tell whether some catalogue lists a model of this name."""

    def auth_status(self, slug: str) -> str:
        """How a provider's key stands: configured, missing or no_key_needed."""

    def keys_of(self, slug: str) -> Sequence[Secret]:
        """Give a provider's keys in force, in the order they are tried."""

    def resolve(self, provider: str | None, model: str | None) -> Target:
        """Find the model, else raise InvalidInput; ``default`` is the daemon's."""

    def check(self, target: Target) -> None:
        """Refuse a target without a key: ProviderError, fault AUTH."""

    def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> AsyncGenerator[Delta | Answered, None]:
        """Call the model, or what stands in for it; Answered comes last.

        Nothing is repeated after a TextChunk, or without a payer. The caller books
        ``Answered.spent``; the router books calls without an end or a payer. It
        raises ProviderError, or QuotaExceeded where a budget has no room.
        """
