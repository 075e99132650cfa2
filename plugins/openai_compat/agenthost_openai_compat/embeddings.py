"""``POST /v1/embeddings``: texts become vectors, by the providers that offer it."""

from __future__ import annotations

import asyncio
import base64
import math
from array import array
from collections.abc import Sequence

from agenthost import (
    Answer,
    Call,
    Embedded,
    InvalidInput,
    RouteGroup,
    Usage,
    authorize,
)

from .errors import written
from .passthrough import RIGHT, payer_of
from .shapes import Embeddings, EmbeddingsBody

routes = RouteGroup("openai_embeddings", errors=written)

COST = 30
BODY_BYTES = 20 * 1024 * 1024
TOGETHER = 1_024
DEFAULTS = frozenset({"", "default"})
Vector = Sequence[float]


@routes.post(
    "/v1/embeddings",
    scope="agents:message",
    cost=COST,
    body=EmbeddingsBody,
    answer=Embeddings,
    body_limit=BODY_BYTES,
    direct=True,
)
async def create_embeddings(call: Call, body: EmbeddingsBody) -> Answer:
    """Turn texts into vectors; who names a model has to have the right to."""
    named = None if body.model in DEFAULTS else body.model
    if named is not None:
        authorize(call.principal, "route", RIGHT)
    done = await _embedded(call, _texts(body), named)
    # Many numbers take long to write.
    data = await asyncio.to_thread(_written, done.vectors, body)
    tokens = done.usage.input_tokens
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": at, "embedding": each}
            for at, each in enumerate(data)
        ],
        "model": "/".join(done.names),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


async def _embedded(call: Call, texts: Sequence[str], named: str | None) -> Embedded:
    embed, payer = call.host.models.embed, payer_of(call.context)
    vectors: list[Vector] = []
    usage = Usage()
    for start in range(0, len(texts), TOGETHER):
        some = texts[start : start + TOGETHER]
        done = await embed(some, named, payer)
        vectors += done.vectors
        usage += done.usage
    return Embedded(vectors, usage, done.names)


def _texts(body: EmbeddingsBody) -> Sequence[str]:
    texts = [body.input] if isinstance(body.input, str) else body.input
    for at, text in enumerate(texts):
        if not text:
            raise InvalidInput(f"input.{at}", "must be a text, and not empty")
    return texts


def _written(
    vectors: Sequence[Vector], body: EmbeddingsBody
) -> Sequence[str | list[float]]:
    cut = [_cut(vector, body.dimensions) for vector in vectors]
    if body.encoding_format == "base64":
        return [base64.b64encode(array("f", v).tobytes()).decode() for v in cut]
    return [list(vector) for vector in cut]


def _cut(vector: Vector, dimensions: int | None) -> Vector:
    """Keep the first numbers and make the vector as long as one again.

    So OpenAI does it, whose models are trained for it.
    """
    if dimensions is None or dimensions == len(vector):
        return vector
    if dimensions > len(vector):
        raise InvalidInput("dimensions", f"must be {len(vector)} at most")
    kept = vector[:dimensions]
    length = math.hypot(*kept)
    return [number / length for number in kept] if length else kept
