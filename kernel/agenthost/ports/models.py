"""Where model calls go: the port MODELS, which a plugin serves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from agenthost_chat.chat import ChatRequest, Completion, Delta, Message
from agenthost_values.value_class import value_class

from ..context import AgentView, Context, Pool
from ..embedders import Embedded
from ..providers import ModelFacts, ProviderSpec

if TYPE_CHECKING:
    from ..agent import Agent
    from ..secrets import Secret
    from .usage import Spent


@value_class
class Target:
    """A model that can be called: its provider, facts and wire id."""

    provider: ProviderSpec
    model: ModelFacts

    @property
    def names(self) -> tuple[str, str]:
        """The provider's slug and the model's id."""
        return self.provider.facts.slug, self.model.id


@value_class
class Choice:
    """Where a model's name leads, and what who named it should know."""

    target: Target
    notices: tuple[str, ...] = ()


@value_class
class Attempt:
    """A try that gave no answer: of what, why, and what was booked for it.

    ``began`` is a moment of the daemon's monotonic clock, as that of an answer.
    """

    target: Target
    outcome: str
    spent: Spent | None = None
    began: float = 0.0
    seconds: float = 0.0


@value_class
class Payer:
    """Whose budgets and fallbacks a call uses, and the row it is booked on.

    Without an ``agent`` somebody asks the model itself, and the daemon's budgets and
    fallbacks are used alone. The router adds to ``failed`` what it tried in vain.
    ``context`` says who pays, and is told to the guards of what the call sends.
    ``take_back`` unsays the words of a call that broke off; it is False where somebody
    has heard them.
    """

    agent: AgentView | None
    turn_id: str
    pools: tuple[Pool, ...] = ()
    failed: list[Attempt] = field(default_factory=list, compare=False)
    context: Context | None = field(default=None, compare=False)
    take_back: Callable[[], bool] | None = field(default=None, compare=False)


@value_class
class Answered:
    """The end of a call: what was said, by which model and for how much.

    ``began`` is when the try that answered did, ``first`` when its first piece came; 0
    where there was none.
    """

    completion: Completion
    spent: Spent
    began: float = 0.0
    first: float = 0.0


@value_class
class Quoted:
    """What a message would cost: its first call at most, and its turn likely.

    ``model`` is ``<provider>/<model>``; ``answer_tokens`` are likely in each of the
    ``calls`` that a turn makes, as ``turns`` of the session show.
    """

    model: str
    input_tokens: int
    output_tokens: int
    most_micro_usd: int
    answer_tokens: int
    calls: int
    likely_micro_usd: int
    turns: int


class Models(Protocol):
    """The providers and models there are, and the way to call them."""

    @property
    def providers(self) -> Mapping[str, ProviderSpec]:
        """All providers by slug."""

    @property
    def hourly_tokens(self) -> int:
        """Tokens an hour of an agent whose manifest names no limit; 0 is none."""

    async def probe_local(self) -> None:
        """Find out whether a local server answers."""

    def default(self) -> Target:
        """Give the daemon's default model."""

    def names_of_default(self) -> tuple[str, str]:
        """Name the default provider's slug and model id, for display."""

    def check_default(self) -> list[str]:
        """Warn of what ``[default_model]`` lacks; one nobody has is a ConfigError."""

    def find(self, name: str) -> Target | None:
        """Find what is listed under an id, an alias or ``<provider>/<model>``."""

    def auth_status(self, slug: str) -> str:
        """How a provider's key stands: configured, missing or no_key_needed."""

    def keys_of(self, slug: str) -> Sequence[Secret]:
        """Give a provider's keys in force, in the order they are tried."""

    def resolve(self, provider: str | None, model: str | None) -> Target:
        """Find the model, else raise InvalidInput; ``default`` is the daemon's."""

    async def choose(
        self, provider: str | None, model: str | None, own: str = ""
    ) -> Choice:
        """Resolve what somebody names for an agent of the provider ``own``.

        As :meth:`resolve`, but local servers are asked for names that nobody lists.
        """

    def resting(self, slug: str) -> Sequence[tuple[str, int, str, float]]:
        """Tell which of a provider's models rest: name, key, fault, seconds to go.

        A key is named by its place in :meth:`keys_of`, from 1; 0 is no key.
        """

    def gauges(self) -> Iterable[tuple[str, Mapping[str, str], float]]:
        """What a monitor may show now: names, labels of bounded lists, and numbers.

        A name always has the same labels; one that ends in ``_total`` only grows. No
        label holds a secret, or a name that anybody may make up.
        """

    def check(self, target: Target) -> None:
        """Refuse a target without a key: ProviderError, fault AUTH."""

    async def quote(
        self, agent: Agent, message: Message, session_id: str = ""
    ) -> Quoted:
        """Tell what a message to an agent would cost; nothing is asked or booked.

        Args:
            agent: Who would answer.
            message: What would be said.
            session_id: The session of the agent's that it is said in; a new one by
                default.

        Raises:
            NotFound: The agent has no such session.
        """

    def stream(
        self, target: Target, request: ChatRequest, payer: Payer | None = None
    ) -> AsyncGenerator[Delta | Answered, None]:
        """Call the model, or what stands in for it; Answered comes last.

        Nothing is repeated without a payer, or after a TextChunk, unless the payer
        takes it back. The caller books
        ``Answered.spent``; the router books calls without an end or a payer. It
        raises ProviderError, or QuotaExceeded where a budget has no room.
        """

    def ask(
        self, target: Target, request: ChatRequest, payer: Payer
    ) -> AsyncGenerator[Delta | Answered, None]:
        """Call a model for who asks it itself, outside of any turn.

        As :meth:`stream`, and it is all that there is to such a call: observers are
        told of it and the router books it, before Answered comes. The payer has a
        context.
        """

    async def embed(
        self,
        texts: Sequence[str],
        model: str | None = None,
        payer: Payer | None = None,
        *,
        query: bool = False,
    ) -> Embedded:
        """Turn texts into vectors, in their order; the router books what it takes.

        Nothing stands in for the model: vectors of another could not be compared.

        Args:
            texts: At most 1,024, none empty.
            model: As its provider lists it, or ``<provider>/<model>``; the daemon's
                default without.
            payer: Whose budgets hold.
            query: The texts ask; else they are what is to be found.

        Raises:
            InvalidInput: There is no such model, or the texts are too many or empty.
            ProviderError: No key of the provider gave an answer.
            QuotaExceeded: A budget has no room.
        """
