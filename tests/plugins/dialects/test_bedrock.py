"""The Bedrock dialect, without a network."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Finish,
    ProviderError,
    ProviderFault,
    Reasoning,
    Secret,
    Usage,
)
from agenthost.testing.simulators.bedrock import frame
from agenthost_dialects.aws_signature import read_keys, region_of
from agenthost_dialects.bedrock import Bedrock
from agenthost_providers.catalogue import load_facts

from .exchange import HERE, body_of, decode, there

PLAIN = Bedrock()


def event(kind: str, payload: Any) -> bytes:
    headers = {":event-type": kind, ":message-type": "event"}
    return frame(headers, json.dumps(payload).encode())


def delta(index: int, said: dict[str, Any]) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": said})


def thought(index: int, **said: str) -> bytes:
    return delta(index, {"reasoningContent": said})


STOP = event("messageStop", {"stopReason": "end_turn"})
END = event("metadata", {"usage": {"inputTokens": 3, "outputTokens": 2}})


def test_signed_and_redacted_thinking_goes_back(conversation: ChatRequest) -> None:
    body = b"".join(
        [
            thought(0, text="h"),
            thought(0, text="m"),
            thought(0, signature="c2ln"),
            thought(1, redactedContent="ZGF0YQ=="),
            delta(2, {"text": "ok"}),
            STOP,
            END,
        ]
    )
    _, whole = decode(PLAIN, body, conversation)
    assert isinstance(whole.message.parts[0], Reasoning)
    again = replace(conversation, messages=(*conversation.messages[:3], whole.message))
    assert body_of(PLAIN, again)["messages"][-1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "ZGF0YQ=="}},
        {"text": "ok"},
    ]


def test_cached_tokens_are_part_of_the_prompt() -> None:
    usage = {
        "inputTokens": 10,
        "outputTokens": 5,
        "cacheReadInputTokens": 100,
        "cacheWriteInputTokens": 20,
    }
    _, whole = decode(PLAIN, STOP + event("metadata", {"usage": usage}))
    assert whole.usage == Usage(130, 5, 100, 20)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop_sequence", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("model_context_window_exceeded", Finish.LENGTH),
        ("guardrail_intervened", Finish.CONTENT_BLOCKED),
        ("content_filtered", Finish.CONTENT_BLOCKED),
    ],
)
def test_reasons_are_read(reason: str, finish: Finish) -> None:
    _, whole = decode(PLAIN, event("messageStop", {"stopReason": reason}) + END)
    assert whole.finish is finish


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("throttlingException", ProviderFault.RATE_LIMITED),
        ("modelStreamErrorException", ProviderFault.SERVER),
        ("serviceUnavailableException", ProviderFault.OVERLOADED),
        ("modelTimeoutException", ProviderFault.TIMEOUT),
        ("validationException", ProviderFault.SERVER),
    ],
)
def test_exceptions_in_a_stream_are_named(name: str, fault: ProviderFault) -> None:
    headers = {":exception-type": name, ":message-type": "exception"}
    body = frame(headers, b'{"message": "so it is"}')
    with pytest.raises(ProviderError, match="so it is") as caught:
        decode(PLAIN, delta(0, {"text": "x"}) + body)
    assert caught.value.fault is fault


def test_an_error_without_a_name_is_an_error() -> None:
    headers = {":message-type": "error", ":error-code": "x", ":error-message": "gone"}
    with pytest.raises(ProviderError, match="gone"):
        decode(PLAIN, frame(headers, b""))


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_a_malformed_answer_is_a_fault(reason: str) -> None:
    with pytest.raises(ProviderError) as caught:
        decode(PLAIN, event("messageStop", {"stopReason": reason}) + END)
    assert caught.value.fault is ProviderFault.MALFORMED


def test_the_header_names_the_error() -> None:
    headers = {"x-amzn-errortype": "AccessDeniedException:http://internal"}
    error = PLAIN.fault(HERE, 400, headers, b'{"message": "no"}')
    assert error.fault is ProviderFault.AUTH
    error = PLAIN.fault(HERE, 400, {}, b'{"message": "Input is too long for it"}')
    assert error.fault is ProviderFault.CONTEXT_OVERFLOW


def test_tools_of_the_conversation_are_named_though_none_is_offered(
    conversation: ChatRequest,
) -> None:
    (tool,) = body_of(PLAIN, replace(conversation, tools=()))["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "look"
    bare = replace(conversation, tools=(), messages=conversation.messages[:1])
    assert "toolConfig" not in body_of(PLAIN, bare)


def test_the_prompt_is_marked_for_the_cache_where_the_model_has_one(
    conversation: ChatRequest,
) -> None:
    facts = load_facts("bedrock")
    dialect = Bedrock.from_quirks(facts.quirks)
    marked = {
        row.id
        for row in facts.models
        if {"cachePoint": {"type": "default"}}
        in body_of(
            dialect,
            replace(conversation, model=row.upstream_id),
            there("bedrock", row.upstream_id),
        )["system"]
    }
    assert marked == {
        "bedrock/anthropic.claude-opus-5-5",
        "bedrock/anthropic.claude-sonnet-5-5",
        "bedrock/anthropic.claude-haiku-5-5",
        "bedrock/anthropic.claude-haiku-4-5-20251001-v1:0",
        "bedrock/amazon.nova-premier-v1:0",
        "bedrock/amazon.nova-pro-v1:0",
        "bedrock/amazon.nova-lite-v1:0",
        "bedrock/amazon.nova-micro-v1:0",
    }
    # Who marks is billed for what is kept: the catalogue has to know the price.
    assert all(row.cached_input_cost_per_1m for row in facts.models if row.id in marked)
    silent = body_of(dialect, replace(conversation, system=""))
    assert "system" not in silent


@pytest.mark.parametrize(
    ("quirks", "limit", "budget", "expected"),
    [
        ({}, 2000, 900, None),
        ({"thinking": "budget"}, 2000, 0, None),
        ({"thinking": "budget"}, 9000, 4000, {"budget_tokens": 4000}),
        ({"thinking": "budget"}, 2000, 9000, {"budget_tokens": 1999}),
        ({"thinking": "budget"}, None, 10, {"budget_tokens": 1024}),
        ({"thinking": "budget"}, 1000, 9000, None),
        ({"thinking": "adaptive"}, 2000, 9000, {"type": "adaptive"}),
    ],
)
def test_thinking_is_written_as_the_model_takes_it(
    conversation: ChatRequest,
    quirks: dict[str, Any],
    limit: int | None,
    budget: int,
    expected: dict[str, Any] | None,
) -> None:
    one = replace(conversation, messages=conversation.messages[:1])
    asked = replace(one, max_tokens=limit, thinking_budget=budget)
    body = body_of(Bedrock.from_quirks(quirks), asked)
    extra = body.get("additionalModelRequestFields")
    if expected is None:
        assert extra is None
    else:
        assert extra is not None
        assert expected.items() <= extra["thinking"].items()
        assert "temperature" not in body.get("inferenceConfig", {})


@pytest.mark.parametrize(
    ("profile", "region", "model", "named"),
    [
        ("none", "us-east-1", "zai.glm-5", "zai.glm-5"),
        ("global", "eu-west-1", "amazon.nova-2-lite", "global.amazon.nova-2-lite"),
        ("region", "us-east-1", "meta.llama4", "us.meta.llama4"),
        ("region", "eu-west-1", "meta.llama4", "eu.meta.llama4"),
        ("region", "ap-south-1", "meta.llama4", "apac.meta.llama4"),
        ("region", "us-gov-west-1", "meta.llama4", "us-gov.meta.llama4"),
        ("region", "eu-west-1", "us.meta.llama4", "us.meta.llama4"),
        ("region", "sa-east-1", "meta.llama4", "us.meta.llama4"),
    ],
)
def test_a_model_is_named_by_its_profile(
    conversation: ChatRequest, profile: str, region: str, model: str, named: str
) -> None:
    dialect = Bedrock.from_quirks({"profile": profile})
    where = replace(HERE, base_url=f"https://bedrock-runtime.{region}.amazonaws.com")
    url = dialect.encode(replace(conversation, model=model), where).url
    assert url.endswith(f"/model/{named}/converse-stream")


def test_access_keys_sign_and_other_keys_are_borne(conversation: ChatRequest) -> None:
    moment = datetime(2026, 11, 21, tzinfo=UTC)
    dialect = Bedrock(now=lambda: moment)
    borne = dialect.encode(conversation, HERE).headers
    assert borne["Authorization"] == "Bearer sk-test"
    keys = Secret("AKIAIOSFODNN7EXAMPLE:secret/key+x")
    where = replace(HERE, base_url="https://bedrock-runtime.eu-west-1.aws", key=keys)
    signed = dialect.encode(conversation, where).headers
    assert signed["X-Amz-Date"] == "20261121T000000Z"
    assert "/20261121/eu-west-1/bedrock/aws4_request" in signed["Authorization"]
    assert "secret/key" not in str(signed)
    none = dialect.encode(conversation, replace(HERE, key=None)).headers
    assert "Authorization" not in none


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("ABSKQmVkcm9jaw==", None),
        ("AKIAIOSFODNN7EXAMPLE:s", ("AKIAIOSFODNN7EXAMPLE", "s", None)),
        ("ASIAIOSFODNN7EXAMPLE:s:t/k=", ("ASIAIOSFODNN7EXAMPLE", "s", "t/k=")),
        ("bearer:with:colons", None),
    ],
)
def test_keys_are_told_apart(key: str, parts: tuple[str, ...] | None) -> None:
    keys = read_keys(key)
    assert (keys and (keys.id, keys.secret, keys.session)) == parts


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("bedrock-runtime.us-east-1.amazonaws.com", "us-east-1"),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        (
            "vpce-0a1-b2.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com",
            "ap-southeast-2",
        ),
        ("localhost:8000", "us-east-1"),
    ],
)
def test_the_region_stands_in_the_host(host: str, region: str) -> None:
    assert region_of(host) == region


@pytest.mark.parametrize("key", ["akia-typo:wJalr", "short:wJalr", "a:b:c:d", ":x"])
def test_a_key_with_a_colon_that_is_no_pair_is_never_sent(
    conversation: ChatRequest, key: str
) -> None:
    with pytest.raises(ProviderError, match="holds a colon") as caught:
        PLAIN.encode(conversation, replace(HERE, key=Secret(key)))
    assert caught.value.fault is ProviderFault.AUTH
    assert "wJalr" not in caught.value.message


@pytest.mark.parametrize(
    ("model", "budget", "expected"),
    [
        (
            "amazon.nova-2-lite-v1:0",
            9000,
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}},
        ),
        ("amazon.nova-2-lite-v1:0", 0, {"reasoningConfig": {"type": "disabled"}}),
        ("openai.gpt-oss-120b-1:0", 9000, {"reasoning_effort": "medium"}),
        ("openai.gpt-oss-120b-1:0", 0, {"reasoning_effort": "low"}),
        ("deepseek.v3.2", 20_000, {"reasoning_effort": "high"}),
        ("zai.glm-5", 9000, None),
        ("anthropic.claude-opus-5-5", 0, {"output_config": {"effort": "low"}}),
        ("anthropic.claude-sonnet-5-5", 0, {"thinking": {"type": "between_tools"}}),
    ],
)
def test_models_of_all_makers_are_told_to_think(
    conversation: ChatRequest, model: str, budget: int, expected: dict[str, Any] | None
) -> None:
    asked = replace(conversation, model=model, thinking_budget=budget)
    body = body_of(PLAIN, asked, there("bedrock", model))
    assert body.get("additionalModelRequestFields") == expected
