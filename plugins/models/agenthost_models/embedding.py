"""Texts become vectors: by one model, in batches, with retries and budgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agenthost import (
    ChatRequest,
    Embedded,
    EmbeddingCall,
    InvalidInput,
    Message,
    ModelFacts,
    Payer,
    ProviderError,
    ProviderFault,
    Role,
    Target,
    Text,
    Usage,
    did_you_mean,
)

from .means import Means
from .resolver import OFFLINE, STANDINGS, plain
from .settings import EmbeddingDefault
from .single import Job, Single

if TYPE_CHECKING:
    from agenthost import ProviderSpec

MOST_TEXTS = 1_024
MOST_BYTES = 8 * 1024 * 1024
BATCH_BYTES = 256 * 1024
"""A token is a byte at least: no vendor takes 300,000 of them in a request."""
BATCH_NUMBERS = 100_000
"""Reading more numbers at once would hold up everybody else."""
UNLISTED_BATCH = 16


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
        if spec is None or not rest or Single(self.means).speaker(spec) is None:
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

    async def _batch(self, batch: _Batch) -> Embedded:
        """Ask for the vectors of a batch.

        Raises:
            ProviderError: What the last try failed with.
        """
        spec = batch.target.provider
        embedder = Single(self.means).speaker(spec)
        if embedder is None:
            slug = spec.facts.slug
            raise InvalidInput("model", f"{slug} has no embeddings; name another")

        async def send(call: EmbeddingCall) -> Embedded:
            texts = replace(call, texts=batch.texts, query=batch.query)
            return await embedder.embed(texts)

        def usage(answer: Embedded) -> Usage:
            _check_answer(batch, answer)
            return answer.usage

        job = Job(batch.target, batch.payer, batch.request, send, usage)
        answer, counted = await Single(self.means).answer(job)
        return replace(answer, usage=counted)


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
