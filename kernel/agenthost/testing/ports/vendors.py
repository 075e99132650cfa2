"""Providers that say what a test wrote for them, behind the models of a daemon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace

from agenthost_chat.chat import ChatRequest, Delta, Message, Role, Text, Usage

from ...context import AgentView, Pool
from ...embedders import Embedded, EmbedderSpec, EmbeddingCall
from ...errors import ProviderError, ProviderFault
from ...plugins.hooks import hookimpl
from ...ports.models import Answered, Payer, Target
from ...ports.usage import Spent
from ...providers import ModelFacts, ProviderFacts, ProviderSpec
from ..daemons import RunningDaemon
from ..scripted import ScriptedModel
from .stage import Stage, known, soon

SLUGS = ("ada", "bob", "cyd")
KEYED, KEY = "cyd", "CONTRACT_CYD_KEY"
COST = 20
"""Micro-dollars that a scripted answer takes: 10 tokens in at 1, 5 out at 2."""
FALLBACKS = '[[fallback_models]]\nprovider = "bob"\n\n[[fallback_models]]\n'
FALLBACKS += 'provider = "cyd"\n'
ASKED = ChatRequest("", "be brief", (Message(Role.USER, (Text("hello"),)),))
MARK = Spent(0.0, "", "", "", "contract", "mark", Usage(), 0)


def facts_of(slug: str) -> ProviderFacts:
    """A provider with two models; the second has an alias and takes no tools."""
    first, second = f"{slug}-model", f"{slug}-other"
    plain = ModelFacts(
        first,
        slug,
        f"{slug}-wire",
        first,
        input_cost_per_1m=1.0,
        output_cost_per_1m=2.0,
    )
    other = replace(
        plain,
        id=second,
        upstream_id=f"{slug}-second",
        supports_tools=False,
        aliases=(f"{slug}-short",),
    )
    vectors = replace(
        plain,
        id=f"{slug}-vectors",
        upstream_id=f"{slug}-numbers",
        output_cost_per_1m=0.0,
        max_output=1,
        dimensions=2,
        batch=2,
    )
    keyed = slug == KEYED
    return ProviderFacts(
        slug,
        slug,
        "",
        env_var=KEY if keyed else None,
        key_required=keyed,
        models=(plain, other),
        embeddings=(vectors,),
    )


class LetterCounter:
    """Embeddings that count letters, and note what they were asked.

    Attributes:
        calls: The batches, each with the key it came with.
        refused: Keys that are refused, "" for none at all.
        length: How many numbers a vector has.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[str, ...], str]] = []
        self.refused: set[str] = set()
        self.length = 2

    async def embed(self, call: EmbeddingCall) -> Embedded:
        """Give each text its length and zeros."""
        where = call.endpoint
        key = where.key.reveal() if where.key else ""
        self.calls.append((tuple(call.texts), key))
        if key in self.refused:
            raise ProviderError(ProviderFault.BILLING, where.provider, "no credit")
        rest = [0.0] * (self.length - 1)
        return Embedded([[float(len(t)), *rest] for t in call.texts], Usage(10))


class Vendors:
    """A daemon with three providers: two need no key, the third has one.

    Attributes:
        daemon: The daemon; its default model is ada's first.
        ada: What the first says.
        bob: What the second says.
        cyd: What the third says.
        letters: The embeddings of all three.
    """

    def __init__(
        self,
        daemon: RunningDaemon,
        said: Sequence[ScriptedModel],
        letters: LetterCounter,
    ) -> None:
        self.daemon = daemon
        self.models = daemon.daemon.models
        self.ada, self.bob, self.cyd = said
        self.letters = letters
        self._marks = 0

    @classmethod
    async def open(cls, stage: Stage, *, key: str = "sk-cyd") -> Vendors:
        """Start the daemon.

        Args:
            stage: Where.
            key: The third one's key; none when it is empty.
        """
        said = [ScriptedModel(name=slug) for slug in SLUGS]
        default = {"PROVIDER": "ada", "MODEL": "ada-model"}
        environ = {f"AGENTHOST_DEFAULT_MODEL__{k}": v for k, v in default.items()}
        counter = LetterCounter()
        daemon = await stage.open(
            *(_offering(each, counter) for each in said),
            environ={**environ, **({KEY: key} if key else {})},
        )
        return cls(daemon, said, counter)

    @property
    def asked(self) -> list[int]:
        """How often each was asked."""
        return [len(each.requests) for each in (self.ada, self.bob, self.cyd)]

    def target(self, slug: str) -> Target:
        """The first model of a provider."""
        return self.models.resolve(slug, f"{slug}-model")

    async def payer(self, *pools: Pool, manifest: str = "") -> Payer:
        """An agent that pays for calls, with its fallbacks in the manifest."""
        agent = await self.daemon.agent("payer", extra=manifest)
        now = known(agent)
        view = AgentView(now.id, now.name, now.manifest, now.session_id)
        return Payer(view, "turn", pools)

    async def heard(
        self, slug: str, payer: Payer | None = None, request: ChatRequest = ASKED
    ) -> list[Delta | Answered]:
        """Call a provider's first model and give all that comes."""

        async def listen() -> list[Delta | Answered]:
            stream = self.models.stream(self.target(slug), request, payer)
            async with aclosing(stream) as deltas:
                return [delta async for delta in deltas]

        return await soon(listen())

    async def ask(self, slug: str, payer: Payer | None = None) -> Answered:
        """Call a provider's first model and give the end."""
        last = (await self.heard(slug, payer))[-1]
        assert isinstance(last, Answered)
        return last

    async def booked(self) -> int:
        """Count what was booked until now."""
        usage = self.daemon.daemon.usage
        # Rows are written in their order: once this one is, all before it are.
        await usage.book(MARK)
        self._marks += 1
        return (await usage.period(0.0)).requests - self._marks


def _offering(said: ScriptedModel, counter: LetterCounter) -> SimpleNamespace:
    @hookimpl
    def register_provider() -> Iterable[ProviderSpec]:
        """Offer it."""
        return [ProviderSpec(facts_of(said.name), said)]

    @hookimpl
    def register_embedder() -> Iterable[EmbedderSpec]:
        """Offer its embeddings."""
        return [EmbedderSpec(said.name, counter.embed)]

    return SimpleNamespace(
        __name__=said.name,
        register_provider=register_provider,
        register_embedder=register_embedder,
    )
