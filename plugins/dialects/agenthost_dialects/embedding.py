"""Embeddings in five dialects: one request a batch, one answer, no stream.

Sources: OpenAI API reference, "Create embeddings"; Gemini API reference,
"batchEmbedContents"; Cohere API reference, "Embed"; Ollama API, "Generate embeddings";
Amazon Bedrock user guide, "Amazon Titan Text Embeddings".
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agenthost import (
    Embedded,
    EmbeddingCall,
    Endpoint,
    HttpRequest,
    ProviderError,
    ProviderFault,
    Usage,
)

from .faults import http_fault

if TYPE_CHECKING:
    import httpx

Vectors = list[Any]
LARGEST = 32 * 1024 * 1024
# What the newer ones are told in words, this one is told in a field.
WITH_TASKS = frozenset({"gemini-embedding-001"})


@dataclass(frozen=True, slots=True)
class _Form:
    """How a dialect writes the request, and reads vectors and tokens of its answer."""

    encode: Callable[[EmbeddingCall], HttpRequest]
    read: Callable[[Mapping[str, Any]], tuple[Vectors, Any]]


async def embed(name: str, call: EmbeddingCall) -> Embedded:
    """Ask for a batch's vectors.

    Raises:
        ProviderError: With the fault of the status, the body or the connection.
    """
    form, endpoint = DIALECTS[name], call.endpoint
    wire = form.encode(call)
    async with (
        call.exchange.faults(endpoint.provider),
        call.http.stream(
            wire.method,
            wire.url,
            headers=dict(wire.headers),
            content=wire.body,
            extensions=call.extensions,
        ) as answer,
    ):
        if not answer.is_success:
            body = await call.exchange.error_body(answer)
            raise http_fault(endpoint, answer.status_code, answer.headers, body)
        body = await _whole(answer, endpoint)
    try:
        vectors, tokens = form.read(json.loads(body))
        read = [array("f", vector) for vector in vectors]
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise _malformed(endpoint) from error
    except RecursionError as error:
        raise _malformed(endpoint) from error
    counted = tokens if isinstance(tokens, int) and tokens > 0 else 0
    return Embedded(read, Usage(input_tokens=counted))


async def _whole(answer: httpx.Response, endpoint: Endpoint) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > LARGEST:
            raise ProviderError(
                ProviderFault.TOO_LONG, endpoint.provider, "the answer has no end"
            )
    return bytes(body)


def _malformed(endpoint: Endpoint) -> ProviderError:
    return ProviderError(
        ProviderFault.MALFORMED, endpoint.provider, "the answer holds no vectors"
    )


def _model(call: EmbeddingCall) -> str:
    row = call.endpoint.model
    return row.upstream_id if row else ""


def _openai(call: EmbeddingCall) -> HttpRequest:
    from .conversation import bearer
    from .outgoing import post

    body = {"model": _model(call), "input": [*call.texts], "encoding_format": "float"}
    url = call.endpoint.base_url.rstrip("/") + "/embeddings"
    return post(call.endpoint, url, bearer(call.endpoint), body)


def _read_openai(answer: Mapping[str, Any]) -> tuple[Vectors, Any]:
    rows = answer["data"]
    # The vendor numbers them, and need not send them in order.
    ordered = sorted(rows, key=lambda row: row["index"])
    if [row["index"] for row in ordered] != list(range(len(rows))):
        raise ValueError("a vector is missing or comes twice")
    usage = answer.get("usage") or {}
    return [row["embedding"] for row in ordered], usage.get("prompt_tokens")


def _gemini(call: EmbeddingCall) -> HttpRequest:
    from .gemini import KEY_HEADER, models_at
    from .outgoing import keyed, post

    model, where = _model(call), call.endpoint
    if "/publishers/" in where.base_url:
        told = "embeddings on Vertex are not spoken; use the Gemini API"
        raise ProviderError(ProviderFault.BAD_REQUEST, where.provider, told)
    task = "RETRIEVAL_QUERY" if call.query else "RETRIEVAL_DOCUMENT"
    told_task = {"taskType": task} if model in WITH_TASKS else {}
    requests = [
        {
            "model": f"models/{model}",
            "content": {"parts": [{"text": text}]},
            **told_task,
        }
        for text in call.texts
    ]
    url = f"{models_at(where)}/{quote(model, safe='')}:batchEmbedContents"
    headers = {"Content-Type": "application/json", **keyed(where, KEY_HEADER)}
    return post(where, url, headers, {"requests": requests})


def _read_gemini(answer: Mapping[str, Any]) -> tuple[Vectors, Any]:
    usage = answer.get("usageMetadata") or {}
    rows = answer["embeddings"]
    return [row["values"] for row in rows], usage.get("promptTokenCount")


def _cohere(call: EmbeddingCall) -> HttpRequest:
    from .conversation import bearer
    from .outgoing import post

    body = {
        "model": _model(call),
        "texts": [*call.texts],
        "input_type": "search_query" if call.query else "search_document",
        "embedding_types": ["float"],
        # What is cut off would be found by nobody, and nobody would know.
        "truncate": "NONE",
    }
    root = call.endpoint.base_url.rstrip("/").removesuffix("/v2")
    return post(call.endpoint, root + "/v2/embed", bearer(call.endpoint), body)


def _read_cohere(answer: Mapping[str, Any]) -> tuple[Vectors, Any]:
    billed = (answer.get("meta") or {}).get("billed_units") or {}
    return answer["embeddings"]["float"], billed.get("input_tokens")


def _ollama(call: EmbeddingCall) -> HttpRequest:
    from .conversation import bearer
    from .outgoing import post

    body = {"model": _model(call), "input": [*call.texts], "truncate": False}
    root = call.endpoint.base_url.rstrip("/").removesuffix("/v1")
    return post(call.endpoint, root + "/api/embed", bearer(call.endpoint), body)


def _read_ollama(answer: Mapping[str, Any]) -> tuple[Vectors, Any]:
    return answer["embeddings"], answer.get("prompt_eval_count")


def _titan(call: EmbeddingCall) -> HttpRequest:
    from .bedrock import Bedrock

    where, model = call.endpoint, _model(call)
    if len(call.texts) != 1 or not model.startswith("amazon.titan-embed-text-"):
        told = f"{model!r} is no Titan, or is asked for several texts; batch = 1"
        raise ProviderError(ProviderFault.BAD_REQUEST, where.provider, told)
    url = f"{where.base_url.rstrip('/')}/model/{quote(model, safe='')}/invoke"
    return Bedrock().authorised(url, {"inputText": call.texts[0]}, where)


def _read_titan(answer: Mapping[str, Any]) -> tuple[Vectors, Any]:
    return [answer["embedding"]], answer.get("inputTextTokenCount")


OPENAI = _Form(_openai, _read_openai)
DIALECTS: Mapping[str, _Form] = MappingProxyType(
    {
        "openai-chat": OPENAI,
        "openai-responses": OPENAI,
        "gemini-generateContent": _Form(_gemini, _read_gemini),
        "cohere-v2": _Form(_cohere, _read_cohere),
        "bedrock-converse": _Form(_titan, _read_titan),
        "ollama": _Form(_ollama, _read_ollama),
    }
)
