"""Embeddings on the wire: what is asked, and what is read of the answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from agenthost import (
    Embedded,
    EmbeddingCall,
    Extras,
    ModelFacts,
    ProviderError,
    ProviderFault,
    Secret,
)
from agenthost.testing import installed_exchange
from agenthost_dialects.embedding import DIALECTS
from agenthost_dialects.spoken import EMBEDDINGS, embed

from .exchange import HERE

ROW = ModelFacts("v", "acme", "vectors/1", "V", dimensions=2, batch=9)
TEXTS = ("one", "twö")
TWO = [[1.0, 2.0], [3.0, 4.0]]
ANSWERS: dict[str, tuple[dict[str, Any], int]] = {
    "openai-chat": (
        {
            "data": [
                {"index": 1, "embedding": TWO[1]},
                {"index": 0, "embedding": TWO[0]},
            ],
            "usage": {"prompt_tokens": 5, "total_tokens": 5},
        },
        5,
    ),
    "gemini-generateContent": ({"embeddings": [{"values": v} for v in TWO]}, 0),
    "cohere-v2": (
        {"embeddings": {"float": TWO}, "meta": {"billed_units": {"input_tokens": 5}}},
        5,
    ),
    "ollama": ({"embeddings": TWO, "prompt_eval_count": 5}, 5),
}
SIGNING = "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TITAN = "amazon.titan-embed-text-v2:0"
ANSWERS["openai-responses"] = ANSWERS["openai-chat"]


class Wire:
    """A service in memory."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.asked: list[httpx.Request] = []

    async def ask(self, name: str, model: str = "vectors/1", **more: Any) -> Embedded:
        extras, texts = more.pop("extras", Extras()), more.pop("texts", TEXTS)
        url = more.pop("url", HERE.base_url)
        row = replace(ROW, upstream_id=model)
        key = Secret(more.pop("key", "sk-test"))
        where = replace(HERE, model=row, extras=extras, base_url=url, key=key)
        async with httpx.AsyncClient(transport=httpx.MockTransport(self._hear)) as http:
            call = EmbeddingCall(texts, where, http, installed_exchange(), **more)
            return await embed(name, call)

    def _hear(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self.answer

    @property
    def body(self) -> Any:
        return json.loads(self.asked[0].content)


@pytest.mark.parametrize("name", ANSWERS)
async def test_vectors_and_tokens_are_read(name: str) -> None:
    told, tokens = ANSWERS[name]
    done = await Wire(httpx.Response(200, json=told)).ask(name)
    assert [list(vector) for vector in done.vectors] == TWO
    assert done.usage.input_tokens == tokens


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        (
            "openai-chat",
            "/v1/embeddings",
            {
                "model": "vectors/1",
                "input": ["one", "twö"],
                "encoding_format": "float",
            },
        ),
        (
            "cohere-v2",
            "/v1/v2/embed",
            {
                "model": "vectors/1",
                "texts": ["one", "twö"],
                "input_type": "search_document",
                "embedding_types": ["float"],
                "truncate": "NONE",
            },
        ),
        (
            "ollama",
            "/api/embed",
            {"model": "vectors/1", "input": ["one", "twö"], "truncate": False},
        ),
        (
            "gemini-generateContent",
            "/v1/v1beta/models/vectors%2F1:batchEmbedContents",
            {
                "requests": [
                    {"model": "models/vectors/1", "content": {"parts": [{"text": t}]}}
                    for t in ("one", "twö")
                ]
            },
        ),
    ],
)
async def test_texts_are_asked_whole_and_in_order(
    name: str, path: str, body: Any
) -> None:
    wire = Wire(httpx.Response(200, json=ANSWERS[name][0]))
    await wire.ask(name)
    (request,) = wire.asked
    assert request.url.raw_path.decode() == path
    assert wire.body == body
    shown = [v for v in request.headers.values() if "sk-test" in v]
    assert len(shown) == 1


async def test_who_asks_is_told_apart_from_what_is_found() -> None:
    cohere = Wire(httpx.Response(200, json=ANSWERS["cohere-v2"][0]))
    await cohere.ask("cohere-v2", query=True)
    assert cohere.body["input_type"] == "search_query"
    tasks = []
    for query in (True, False):
        gemini = Wire(httpx.Response(200, json=ANSWERS["gemini-generateContent"][0]))
        await gemini.ask("gemini-generateContent", "gemini-embedding-001", query=query)
        tasks += [each["taskType"] for each in gemini.body["requests"]]
    assert tasks == ["RETRIEVAL_QUERY"] * 2 + ["RETRIEVAL_DOCUMENT"] * 2


@pytest.mark.parametrize("name", ANSWERS)
async def test_what_an_operator_adds_goes_along(name: str) -> None:
    wire = Wire(httpx.Response(200, json=ANSWERS[name][0]))
    added = Extras({"X-Team": "red"}, {"v": "1"}, {"d": 2}, {"api-key": "{key}"})
    await wire.ask(name, extras=added)
    (request,) = wire.asked
    assert request.headers["x-team"] == "red"
    assert request.headers["api-key"] == "sk-test"
    assert request.url.params["v"] == "1"
    assert wire.body["d"] == 2


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>",
        b"[" * 100_000,
        b'{"data": null, "embeddings": null}',
        b'{"data": [{"index": 0, "embedding": ["a"]}], "embeddings": [["a"]]}',
        b'{"data": [{"index": 0, "embedding": "ab"}], "embeddings": "ab"}',
        b'{"data": [{"index": 1, "embedding": [1]}], "embeddings": [[null]]}',
        b'{"data": [7], "embeddings": [7]}',
    ],
)
async def test_what_holds_no_vectors_is_malformed(name: str, answer: bytes) -> None:
    with pytest.raises(ProviderError) as told:
        await Wire(httpx.Response(200, content=answer)).ask(name)
    assert told.value.fault is ProviderFault.MALFORMED


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (401, ProviderFault.AUTH),
        (404, ProviderFault.MODEL_NOT_FOUND),
        (429, ProviderFault.RATE_LIMITED),
        (500, ProviderFault.SERVER),
    ],
)
async def test_a_refusal_has_its_fault_and_no_key(
    status: int, fault: ProviderFault
) -> None:
    said = {"error": {"message": "key sk-test is not good"}}
    with pytest.raises(ProviderError) as told:
        await Wire(httpx.Response(status, json=said)).ask("openai-chat")
    assert told.value.fault is fault
    assert "key *** is not good" in told.value.detail


async def test_vertex_is_told_to_have_none() -> None:
    wire = Wire(httpx.Response(200, json={}))
    with pytest.raises(ProviderError, match="Vertex"):
        await wire.ask("gemini-generateContent", url="https://a/publishers/google")
    assert wire.asked == []


def test_what_is_offered_is_what_there_is() -> None:
    assert set(EMBEDDINGS) == set(DIALECTS)


async def test_titan_is_asked_for_one_text_by_a_bearer_or_signed() -> None:
    told = {"embedding": TWO[0], "inputTextTokenCount": 3}
    for key, shown in (("bedrock-key", "Bearer bedrock-key"), (SIGNING, "AWS4-HMAC")):
        wire = Wire(httpx.Response(200, json=told))
        done = await wire.ask("bedrock-converse", TITAN, texts=["one"], key=key)
        assert [list(vector) for vector in done.vectors] == TWO[:1]
        assert done.usage.input_tokens == 3
        (request,) = wire.asked
        path = "/v1/model/amazon.titan-embed-text-v2%3A0/invoke"
        assert request.url.raw_path.decode() == path
        assert wire.body == {"inputText": "one"}
        assert request.headers["authorization"].startswith(shown)


async def test_what_titan_cannot_do_is_told() -> None:
    wire = Wire(httpx.Response(200, json={}))
    for model, texts in ((TITAN, ["one", "two"]), ("cohere.embed-v4:0", ["one"])):
        with pytest.raises(ProviderError, match="no Titan"):
            await wire.ask("bedrock-converse", model, texts=texts)
    assert wire.asked == []


@pytest.mark.parametrize("answer", [b"{}", b"[]", b'{"embedding": 7}'])
async def test_what_is_no_vector_of_titans_is_malformed(answer: bytes) -> None:
    wire = Wire(httpx.Response(200, content=answer))
    with pytest.raises(ProviderError) as told:
        await wire.ask("bedrock-converse", TITAN, texts=["one"])
    assert told.value.fault is ProviderFault.MALFORMED
