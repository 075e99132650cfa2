"""How likely tokens were: asked for, read, and told in one vendor's words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    ProviderError,
    ProviderFault,
    Text,
    TextChunk,
    user_message,
)
from agenthost_dialects.conversation import told_by_name
from agenthost_dialects.gemini import Gemini
from agenthost_dialects.likelihood import scored
from agenthost_dialects.ollama import Ollama
from agenthost_dialects.openai_chat import OpenAIChat
from agenthost_dialects.openai_responses import OpenAIResponses
from agenthost_dialects.spoken import DIALECTS, make
from agenthost_providers.catalogue import load_facts

from .exchange import HERE, body_of, decode, sse

ASKED = ChatRequest("m", "", (user_message("hi"),), logprobs=2)
BARE = replace(ASKED, logprobs=0)
TOKEN = {"token": "é", "logprob": -0.5, "bytes": [195, 169]}
BESIDE = {"token": "e", "logprob": -1.5, "bytes": [101]}
WHOLE = {**TOKEN, "top_logprobs": [TOKEN, BESIDE]}
GOOGLES = {
    "chosenCandidates": [{"token": "é", "tokenId": 1, "logProbability": -0.5}],
    "topCandidates": [
        {
            "candidates": [
                {"token": "é", "logProbability": -0.5},
                {"token": "e", "logProbability": -1.5},
            ]
        }
    ],
}
MESSAGE = {"id": "msg", "type": "message", "role": "assistant"}
PART = {"type": "output_text", "text": "é", "logprobs": [WHOLE]}
DONE = {"status": "completed", "output": [{**MESSAGE, "content": [PART]}]}
ANSWERS: dict[str, tuple[Any, Any, bytes]] = {
    "chat": (
        OpenAIChat(),
        {
            "choices": [
                {
                    "message": {"role": "assistant", "content": "é"},
                    "logprobs": {"content": [WHOLE]},
                    "finish_reason": "stop",
                }
            ]
        },
        sse(
            {
                "choices": [
                    {"delta": {"content": "é"}, "logprobs": {"content": [WHOLE]}}
                ]
            },
            {"choices": [{"delta": {}, "logprobs": None, "finish_reason": "stop"}]},
            "[DONE]",
        ),
    ),
    "responses": (
        OpenAIResponses(),
        DONE,
        sse(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {**MESSAGE, "content": []},
            },
            {
                "type": "response.output_text.delta",
                "output_index": 0,
                "delta": "é",
                "logprobs": [WHOLE],
            },
            {"type": "response.completed", "response": DONE},
        ),
    ),
    "gemini": (
        Gemini(),
        answer := {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": "é"}]},
                    "logprobsResult": GOOGLES,
                    "finishReason": "STOP",
                }
            ]
        },
        sse(answer),
    ),
    "ollama": (
        Ollama(),
        last := {
            "message": {"role": "assistant", "content": "é"},
            "logprobs": [WHOLE],
            "done": True,
        },
        json.dumps(last).encode() + b"\n",
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_tells_how_likely_its_tokens_were(name: str, *, stream: bool) -> None:
    dialect, whole, streamed = ANSWERS[name]
    body = streamed if stream else json.dumps(whole).encode()
    deltas, completion = decode(dialect, body, replace(ASKED, stream=stream))
    assert completion.message.parts == (Text("é", logprobs=(WHOLE,)),)
    pieces = [each for each in deltas if isinstance(each, TextChunk)]
    assert "".join(each.text for each in pieces) == "é"
    assert [token for each in pieces for token in each.logprobs] == [WHOLE]


@pytest.mark.parametrize(
    ("dialect", "many", "alone"),
    [
        (OpenAIChat(), {"logprobs": True, "top_logprobs": 2}, {"logprobs": True}),
        (Ollama(), {"logprobs": True, "top_logprobs": 2}, {"logprobs": True}),
    ],
)
def test_they_are_asked_for(dialect: Any, many: Any, alone: Any) -> None:
    for request, wanted in ((ASKED, many), (BARE, alone)):
        body = body_of(dialect, request)
        assert {n: v for n, v in body.items() if "logprobs" in n} == wanted
    assert "logprobs" not in str(body_of(dialect, replace(ASKED, logprobs=None)))


def test_gemini_and_responses_are_asked_in_their_words() -> None:
    google = body_of(Gemini(), ASKED)["generationConfig"]
    assert google == {"responseLogprobs": True, "logprobs": 2}
    assert body_of(Gemini(), BARE)["generationConfig"] == {"responseLogprobs": True}
    plain = OpenAIResponses.from_quirks({"temperature": True})
    body = body_of(plain, ASKED)
    assert body["include"][-1] == "message.output_text.logprobs"
    assert (body["top_logprobs"], body_of(plain, BARE)["top_logprobs"]) == (2, 0)


TELLING = {"openai-chat", "openai-responses", "gemini-generateContent", "ollama"}


@pytest.mark.parametrize("name", sorted(DIALECTS.keys() - TELLING))
def test_who_does_not_tell_is_not_asked(name: str) -> None:
    dialect: Any = make(name, {})
    encode = getattr(dialect, "encode", None)
    if encode is None:
        pytest.skip("a driver: its settings are fitted by the same function")
    refused(encode, HERE)


@pytest.mark.parametrize("slug", ["groq", "mistral", "together", "perplexity"])
def test_a_provider_that_does_not_tell_is_not_asked(slug: str) -> None:
    kind = OpenAIResponses if slug == "perplexity" else OpenAIChat
    refused(kind.from_quirks(load_facts(slug).quirks).encode, HERE)


def test_a_model_without_a_temperature_does_not_tell() -> None:
    refused(OpenAIChat.from_quirks({"temperature": False}).encode, HERE)


def refused(encode: Any, where: Any) -> None:
    with pytest.raises(ProviderError, match="logprobs: the model does not") as caught:
        encode(ASKED, where)
    assert caught.value.fault is ProviderFault.BAD_REQUEST
    assert (caught.value.status, getattr(caught.value, "field", "")) == (
        400,
        "logprobs",
    )


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"token": "e", "logprob": -1.5}, BESIDE),
        ({"token": "e", "logprob": float("-inf")}, {**BESIDE, "logprob": -9_999.0}),
        ({"token": "e", "logprob": 3}, {**BESIDE, "logprob": 0.0}),
        ({"token": "e", "logprob": -1.5, "bytes": [101, 999]}, BESIDE),
        ({"token": "e", "logprob": -1.5, "bytes": [226]}, {**BESIDE, "bytes": [226]}),
        ({"token": "e", "logprob": float("nan")}, None),
        ({"token": "e", "logprob": True}, None),
        ({"token": 1, "logprob": -1.5}, None),
        ({"logprob": -1.5}, None),
        ("e", None),
    ],
)
def test_what_is_no_token_says_nothing(given: Any, read: Any) -> None:
    wanted = () if read is None else ({**read, "top_logprobs": []},)
    assert scored([given]) == wanted
    assert scored(given) == ()


def test_no_more_is_kept_than_words_can_have() -> None:
    many = [{"token": "e" * 900, "logprob": -1.0, "top_logprobs": [WHOLE] * 50}] * 500
    body = {
        "choices": [
            {
                "message": {"content": "é"},
                "logprobs": {"content": many},
                "finish_reason": "stop",
            }
        ]
    }
    written = json.dumps(body).encode()
    _, said = decode(OpenAIChat(), written, replace(ASKED, stream=False))
    (part,) = said.message.parts
    assert isinstance(part, Text)
    kept = part.logprobs
    assert len(kept) < 100
    assert (len(kept[0]["token"]), len(kept[0]["top_logprobs"])) == (200, 20)


def test_calls_of_tools_have_none() -> None:
    function = {"name": "look", "arguments": "{}"}
    call = {"index": 0, "id": "c", "type": "function", "function": function}
    told = {"content": [WHOLE]}
    body = sse(
        {"choices": [{"delta": {"tool_calls": [call]}, "logprobs": told}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
        "[DONE]",
    )
    deltas, _ = decode(OpenAIChat(), body, ASKED)
    assert not any(isinstance(each, TextChunk) for each in deltas)


def test_tokens_that_come_before_their_words_are_kept() -> None:
    body = sse(
        {"choices": [{"delta": {"content": ""}, "logprobs": {"content": [WHOLE]}}]},
        {"choices": [{"delta": {"content": "é"}, "finish_reason": "stop"}]},
        "[DONE]",
    )
    _, said = decode(OpenAIChat(), body, ASKED)
    assert said.message.parts == (Text("é", logprobs=(WHOLE,)),)


def test_a_name_goes_along_or_is_told_in_words() -> None:
    hello = replace(user_message("hi"), name="bob")
    asked = replace(ASKED, messages=(hello,), logprobs=None)
    (message,) = body_of(OpenAIChat(), asked)["messages"]
    assert message == {"role": "user", "content": "hi", "name": "bob"}
    lacking = OpenAIChat.from_quirks({"lacks": ["name"]})
    (message,) = body_of(lacking, asked)["messages"]
    assert message == {"role": "user", "content": "[bob says:]\nhi"}
    assert told_by_name(hello).name == ""
