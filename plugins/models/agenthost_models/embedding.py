"""Texts become vectors: by one model, in batches, with retries and budgets."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agenthost import (
    CONTEXT,
    ChatRequest,
    Embedded,
    EmbedderSpec,
    EmbeddingCall,
    InvalidInput,
    Message,
    ModelFacts,
    Payer,
    ProviderError,
    ProviderFault,
    Role,
    Spent,
    Target,
    Text,
    Usage,
    did_you_mean,
)

from .attempts import ROUNDS, Attempts, Candidate, Patience
from .keys import lack
from .means import Means
from .price import measured
from .resolver import OFFLINE, STANDINGS, plain
from .settings import EmbeddingDefault, Trying

if TYPE_CHECKING:
    from agenthost import ProviderSpec, Secret

MOST_TEXTS = 1_024
MOST_BYTES = 8 * 1024 * 1024
BATCH_BYTES = 256 * 1024
"""A token is a byte at least: no vendor takes 300,000 of them in a request."""
BATCH_NUMBERS = 100_000
"""Reading more numbers at once would hold up everybody else."""
UNLISTED_BATCH = 16
SILENCE = 60.0


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The embeddings of the providers that list some."""

    means: Means
    default: Callable[[], tuple[str, str]]

    async def embed(
        self,
        texts: Sequence[str],
        model: str | None,
        payer: Payer | None,
        *,
        query: bool,
    ) -> Embedded:
        """Turn texts into vectors; see the port.

        Raises:
            InvalidInput: There is no such model, or the texts are too many or empty.
            ProviderError: No key of the provider gave an answer.
            QuotaExceeded: A budget has no room.
        """
        _check(texts)
        target = self.target(model)
        vectors: list[Sequence[float]] = []
        usage = Usage()
        for batch in _batches(texts, target.model):
            done = await self._batch(_Batch(target, batch, payer, query))
            vectors += done.vectors
            usage += done.usage
            if len(done.vectors[0]) != len(vectors[0]):
                raise _unlike(target, "vectors of several lengths")
        return Embedded(vectors, usage, target.names)

    def target(self, named: str | None) -> Target:
        """Find the model, listed or not.

        Raises:
            InvalidInput: Nobody lists it, or nobody speaks so of embeddings.
        """
        name = plain(named) or plain(self.means.host.settings(EmbeddingDefault).model)
        if not name:
            return self._usual()
        found = min(self._listed(name), key=self._standing, default=None)
        found = found or self._unlisted(name)
        if found is None:
            rows = [row.id for spec in self._specs() for row in spec.facts.embeddings]
            raise InvalidInput(
                "model",
                f"no provider lists embeddings {name!r}{did_you_mean(name, rows)}; "
                "write <provider>/<model>, or list it under [providers.<provider>] "
                "embeddings",
            )
        return found

    def _specs(self) -> Iterator[ProviderSpec]:
        yield from self.means.providers.values()

    def _listed(self, name: str) -> Iterator[Target]:
        lowered = name.lower()
        for spec in self._specs():
            slug = spec.facts.slug.lower()
            for row in spec.facts.embeddings:
                names = {each.lower() for each in (row.id, row.upstream_id)}
                if lowered in names | {f"{slug}/{each}" for each in names}:
                    yield Target(spec, row)

    def _unlisted(self, name: str) -> Target | None:
        slug, _, rest = name.partition("/")
        spec = self.means.providers.get(slug.lower())
        if spec is None or not rest or self._embedder(spec) is None:
            return None
        row = ModelFacts(rest, spec.facts.slug, rest, rest, batch=UNLISTED_BATCH)
        return Target(spec, row)

    def _usual(self) -> Target:
        """Choose for who names none: the default's provider, one with a key, offline.

        Raises:
            InvalidInput: Nobody offers embeddings.
        """
        keys, chosen = self.means.keys, self.default()[0]
        listing = [spec for spec in self._specs() if spec.facts.embeddings]
        ranked = sorted(
            listing,
            key=lambda spec: (
                spec.facts.slug != chosen,
                not keys.has(spec.facts),
                spec.facts.slug != OFFLINE,
            ),
        )
        for spec in ranked:
            facts = spec.facts
            ready = keys.has(facts) or facts.slug == OFFLINE
            if ready or (facts.slug == chosen and not facts.key_required):
                return Target(spec, facts.embeddings[0])
        raise InvalidInput("model", "no provider of embeddings has a key; name one")

    def _standing(self, target: Target) -> int:
        facts = target.provider.facts
        if self.means.keys.has(facts):
            return STANDINGS.index("configured")
        return STANDINGS.index("missing" if facts.key_required else "no_key_needed")

    def _embedder(self, spec: ProviderSpec) -> EmbedderSpec | None:
        name = spec.dialect if isinstance(spec.dialect, str) else spec.dialect.name
        offered = self.means.host.registry.offered(EmbedderSpec)
        return next((each for _, each in offered if each.name == name), None)

    async def _batch(self, batch: _Batch) -> Embedded:
        """Ask with one key after the other, and again for what passes.

        Raises:
            ProviderError: What the last one failed with.
        """
        means, facts = self.means, batch.target.provider.facts
        embedder = self._embedder(batch.target.provider)
        if embedder is None:
            raise InvalidInput("model", f"{facts.slug} has no embeddings; name another")
        attempts = self._attempts(batch.target)
        failure: ProviderError | None = None
        while (candidate := await attempts.next()) is not None:
            try:
                return await self._try(candidate, batch, embedder)
            except ProviderError as error:
                failure = means.without_secrets(error)
                attempts.failed(candidate, failure)
        if failure is None and attempts.refused:
            failure = means.without_secrets(attempts.refused[0][1])
        raise failure or ProviderError(ProviderFault.AUTH, facts.slug, lack(facts))

    def _attempts(self, target: Target) -> Attempts:
        means, facts = self.means, target.provider.facts
        keys: list[Secret | None] = [*means.keys.of(facts)]
        if not keys and not facts.key_required:
            keys = [None]
        patience = Patience(ROUNDS, means.host.settings(Trying).most_calls)
        return Attempts(
            [Candidate(target, key) for key in keys],
            means.breakers,
            means.host.clock,
            means.random,
            patience,
        )

    async def _try(
        self, candidate: Candidate, batch: _Batch, embedder: EmbedderSpec
    ) -> Embedded:
        """Make one request, and settle what it has cost, however it ends."""
        means, clock = self.means, self.means.host.clock
        spent: Spent | None = None
        try:
            hold = await means.budgets.reserve(batch.payer, batch.target, batch.request)
        except BaseException:
            means.breakers.abandoned(candidate.id, clock.monotonic())
            raise
        try:
            answer = await self._ask(candidate, batch, embedder)
            _check_answer(batch, answer)
            spent = self._spent(batch, answer.usage)
            means.breakers.succeeded(candidate.id)
            return replace(answer, usage=spent.usage)
        except ProviderError as error:
            means.breakers.failed(candidate.id, error, clock.monotonic())
            if error.fault in {ProviderFault.TIMEOUT, ProviderFault.MALFORMED}:
                spent = self._spent(batch, Usage())
            raise
        except BaseException as error:
            means.breakers.abandoned(candidate.id, clock.monotonic())
            if isinstance(error, asyncio.CancelledError):
                spent = self._spent(batch, Usage())
            raise
        finally:
            means.budgets.settle(hold, spent)
            if spent is not None:
                means.host.usage.book(spent)

    def _spent(self, batch: _Batch, usage: Usage) -> Spent:
        """Price a request; what the vendor does not count is estimated."""
        counted = measured(usage, batch.request, 0)
        return self.means.spent(batch.target, batch.payer, counted)

    async def _ask(
        self, candidate: Candidate, batch: _Batch, embedder: EmbedderSpec
    ) -> Embedded:
        tokens = self.means.tokens.get(candidate.target.names[0])
        if tokens is None:
            return await self._send(candidate.key, batch, embedder)
        token = await tokens.of(candidate.key)
        try:
            return await self._send(token, batch, embedder)
        except ProviderError as error:
            if error.fault is not ProviderFault.AUTH:
                raise
        tokens.forget(candidate.key, token)
        return await self._send(await tokens.of(candidate.key), batch, embedder)

    async def _send(
        self, key: Secret | None, batch: _Batch, embedder: EmbedderSpec
    ) -> Embedded:
        means, facts = self.means, batch.target.provider.facts
        egress = means.host.egress
        told = {CONTEXT: batch.payer.context} if batch.payer else {}
        call = EmbeddingCall(
            batch.texts,
            facts.at(key, batch.target.model),
            egress.client(means.policy(facts, SILENCE)),
            egress.exchange,
            batch.query,
            told,
        )
        try:
            async with asyncio.timeout(2 * SILENCE):
                return await embedder.embed(call)
        except TimeoutError:
            told_so = f"no vectors within {2 * SILENCE:g} seconds"
            raise ProviderError(ProviderFault.TIMEOUT, facts.slug, told_so) from None


@dataclass(frozen=True, slots=True)
class _Batch:
    """What one request asks for, and who pays."""

    target: Target
    texts: Sequence[str]
    payer: Payer | None
    query: bool

    @property
    def request(self) -> ChatRequest:
        """What the budgets measure: all of it is read, and nothing is said."""
        said = Message(Role.USER, tuple(map(Text, self.texts)))
        return ChatRequest(self.target.model.upstream_id, "", (said,), max_tokens=1)


def _check(texts: Sequence[str]) -> None:
    if isinstance(texts, str) or not 0 < len(texts) <= MOST_TEXTS:
        raise InvalidInput("texts", f"must be a list of 1 to {MOST_TEXTS:,} texts")
    for place, text in enumerate(texts):
        if not text.strip():
            raise InvalidInput(f"texts[{place}]", "is empty; leave it out")
    if sum(map(_size, texts)) > MOST_BYTES:
        raise InvalidInput("texts", f"are more than {MOST_BYTES:,} bytes; send fewer")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _batches(texts: Sequence[str], row: ModelFacts) -> Iterator[list[str]]:
    """Split texts into what one request may hold."""
    most = min(row.batch, max(BATCH_NUMBERS // max(row.dimensions, 1), 1))
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) >= most or size + _size(text) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += _size(text)
    yield batch


def _check_answer(batch: _Batch, answer: Embedded) -> None:
    """Demand a vector for each text, of the length that the model's row says.

    Raises:
        ProviderError: MALFORMED.
    """
    vectors, row = answer.vectors, batch.target.model
    if len(vectors) != len(batch.texts):
        count = f"{len(vectors)} vectors for {len(batch.texts)} texts"
        raise _unlike(batch.target, count)
    lengths = {len(vector) for vector in vectors}
    wanted = {row.dimensions} if row.dimensions else lengths - {0}
    if len(lengths) != 1 or lengths != wanted:
        raise _unlike(batch.target, "vectors of another length than its model's")
    if not all(math.isfinite(sum(map(abs, vector))) for vector in vectors):
        raise _unlike(batch.target, "numbers that are none")


def _unlike(target: Target, what: str) -> ProviderError:
    return ProviderError(ProviderFault.MALFORMED, target.names[0], f"sent {what}")
