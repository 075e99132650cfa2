"""The Gemini dialect, without a network."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Finish,
    ProviderError,
    ProviderFault,
    Reasoning,
    Usage,
)
from agenthost_dialects.gemini import UNSIGNED, Gemini

from .exchange import HERE, body_of, decode, sse

PLAIN = Gemini()
PRO = Gemini.from_quirks({"thinking": "budget", "thinking_range": [128, 32_768]})
OLD = Gemini.from_quirks({"thinking": "budget", "sign_calls": False})


def chunk(*parts: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate]}


def call(name: str, signature: str = "", call_id: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"functionCall": {"name": name, "args": {"x": 1}}}
    if call_id:
        made["functionCall"]["id"] = call_id
    if signature:
        made["thoughtSignature"] = signature
    return made


def again(asked: ChatRequest, *chunks: dict[str, Any]) -> list[dict[str, Any]]:
    """Decode an answer and write it back into the conversation's loop."""
    _, whole = decode(PLAIN, sse(*chunks), asked)
    loop = replace(asked, messages=(*asked.messages[:3], whole.message))
    parts: list[dict[str, Any]] = body_of(PLAIN, loop)["contents"][-1]["parts"]
    return parts


def test_signatures_of_calls_go_back(conversation: ChatRequest) -> None:
    parts = again(
        conversation, chunk(call("look", "c2ln"), call("look"), finish="STOP")
    )
    assert [part.get("thoughtSignature") for part in parts] == ["c2ln", None]


def test_signatures_of_text_go_back_where_they_were(conversation: ChatRequest) -> None:
    signed = {"text": "it is ", "thoughtSignature": "b25l"}
    empty = {"text": "", "thoughtSignature": "dHdv"}
    parts = again(
        conversation, chunk(signed), chunk({"text": "so"}), chunk(empty, finish="STOP")
    )
    assert parts == [signed, {"text": "so"}, empty]


def test_calls_of_another_model_are_marked_as_unsigned(
    conversation: ChatRequest,
) -> None:
    contents = body_of(PLAIN, conversation)["contents"]
    calls = [p for c in contents for p in c["parts"] if "functionCall" in p]
    assert [p.get("thoughtSignature") for p in calls] == [UNSIGNED, None]
    assert UNSIGNED not in json.dumps(body_of(OLD, conversation))


def test_thoughts_are_shown_and_not_sent_back(conversation: ChatRequest) -> None:
    thought = {"text": "hm", "thought": True}
    _, whole = decode(PLAIN, sse(chunk(thought, {"text": "ok"}, finish="STOP")))
    assert whole.message.parts[0] == Reasoning("hm")
    parts = again(conversation, chunk(thought, {"text": "ok"}, finish="STOP"))
    assert parts == [{"text": "ok"}]


def test_candidates_and_thoughts_are_both_output() -> None:
    usage = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 20,
        "cachedContentTokenCount": 4,
    }
    last = {**chunk({"text": "x"}, finish="STOP"), "usageMetadata": usage}
    _, whole = decode(PLAIN, sse({"usageMetadata": {"promptTokenCount": 1}}, last))
    assert whole.usage == Usage(15, 27, cached_tokens=4, reasoning_tokens=20)


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT"])
def test_a_blocked_answer_says_so(reason: str) -> None:
    _, whole = decode(PLAIN, sse({"candidates": [{"finishReason": reason}]}))
    assert whole.finish is Finish.CONTENT_BLOCKED


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, ProviderFault.CONTENT_BLOCKED),
        (chunk(finish="MALFORMED_FUNCTION_CALL"), ProviderFault.MALFORMED),
        (chunk({"text": "x"}), ProviderFault.MALFORMED),
        ({"error": {"code": 503, "status": "UNAVAILABLE"}}, ProviderFault.OVERLOADED),
    ],
)
def test_failures_are_named(payload: dict[str, Any], fault: ProviderFault) -> None:
    with pytest.raises(ProviderError) as caught:
        decode(PLAIN, sse(payload))
    assert caught.value.fault is fault


def test_a_wrong_key_is_no_bad_request() -> None:
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
    }
    error = {"code": 400, "status": "INVALID_ARGUMENT", "message": "x"}
    body = json.dumps({"error": {**error, "details": [info]}}).encode()
    assert PLAIN.fault(HERE, 400, {}, body).fault is ProviderFault.AUTH
    plain = json.dumps({"error": error}).encode()
    assert PLAIN.fault(HERE, 400, {}, plain).fault is ProviderFault.BAD_REQUEST


@pytest.mark.parametrize(
    ("delay", "seconds"), [("7.5s", 7.5), ("-1s", 0.0), ("soon", None), (7, None)]
)
def test_the_wait_stands_in_the_body(delay: Any, seconds: float | None) -> None:
    details = [{"@type": "x"}, {"retryDelay": delay}]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}
    body = json.dumps({"error": error}).encode()
    found = PLAIN.fault(HERE, 429, {}, body)
    assert (found.fault, found.retry_after) == (ProviderFault.RATE_LIMITED, seconds)


@pytest.mark.parametrize(
    ("dialect", "budget", "expected"),
    [
        (PLAIN, None, None),
        (PLAIN, 0, {"includeThoughts": False, "thinkingLevel": "LOW"}),
        (PLAIN, 20_000, {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        (OLD, 0, {"includeThoughts": False, "thinkingBudget": 0}),
        (OLD, 900, {"includeThoughts": True, "thinkingBudget": 900}),
        (OLD, 90_000, {"includeThoughts": True, "thinkingBudget": 24_576}),
        (PRO, 0, {"includeThoughts": False, "thinkingBudget": 128}),
        (Gemini.from_quirks({"thinking": "none"}), 900, None),
    ],
)
def test_thinking_is_written_as_the_model_takes_it(
    conversation: ChatRequest, dialect: Gemini, budget: int | None, expected: Any
) -> None:
    body = body_of(dialect, replace(conversation, thinking_budget=budget))
    assert body["generationConfig"].get("thinkingConfig") == expected


def test_the_address_names_model_and_manner(conversation: ChatRequest) -> None:
    here = replace(HERE, base_url="https://g/v1beta/")
    url = PLAIN.encode(replace(conversation, model="tuned/a b"), here).url
    assert url == "https://g/v1beta/models/tuned%2Fa%20b:streamGenerateContent?alt=sse"
    url = PLAIN.encode(replace(conversation, model="g", stream=False), here).url
    assert url == "https://g/v1beta/models/g:generateContent"


def test_the_user_speaks_first(conversation: ChatRequest) -> None:
    cut = replace(conversation, messages=conversation.messages[1:])
    roles = [content["role"] for content in body_of(PLAIN, cut)["contents"]]
    assert roles == ["user", "model", "user", "model", "user"]
