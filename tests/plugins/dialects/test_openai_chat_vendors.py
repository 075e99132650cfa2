"""How vendors bend the chat dialect, told by their own data files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Endpoint,
    Message,
    ProviderError,
    ProviderFault,
    Reasoning,
    Role,
    Text,
    ToolOutput,
    Usage,
)
from agenthost_dialects.openai_chat import AFTER_TOOL, OpenAIChat
from agenthost_providers.catalogue import load_facts

from .exchange import HERE, body_of, decode, sse, there


def dialect_of(slug: str) -> OpenAIChat:
    return OpenAIChat.from_quirks(load_facts(slug).quirks)


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def finished(usage: dict[str, Any] | None = None) -> tuple[Any, ...]:
    return chunk({}, "stop"), {"choices": [], "usage": usage or {}}, "[DONE]"


def back_in_loop(
    slug: str, asked: ChatRequest, *chunks: dict[str, Any]
) -> dict[str, Any]:
    """Decode an answer and write it back into the conversation's loop."""
    dialect = dialect_of(slug)
    _, whole = decode(dialect, sse(*chunks, *finished()), asked)
    again = replace(asked, messages=(*asked.messages[:3], whole.message))
    message: dict[str, Any] = body_of(dialect, again)["messages"][-1]
    return message


def call(call_id: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": "{}"}
    made = {"index": 0, "id": call_id, "type": "function", "function": function}
    return chunk({"tool_calls": [made]})


def test_mistrals_ids_are_nine_letters_and_digits(conversation: ChatRequest) -> None:
    messages = body_of(dialect_of("mistral"), conversation)["messages"]
    made = [c["id"] for m in messages for c in m.get("tool_calls", ())]
    told = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert made == told
    assert len(set(made)) == 2
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", call_id) for call_id in made)
    assert (
        back_in_loop("mistral", conversation, call("D681PevKs"))["tool_calls"][0]["id"]
        == "D681PevKs"
    )


def test_at_mistral_the_assistant_answers_a_tool_first(
    conversation: ChatRequest,
) -> None:
    asked = Message(Role.USER, (Text("go on"),))
    longer = replace(conversation, messages=(*conversation.messages, asked))
    written = body_of(dialect_of("mistral"), longer)["messages"]
    assert written[-2:] == [
        {"role": "assistant", "content": AFTER_TOOL},
        {"role": "user", "content": "go on"},
    ]
    roles = [m["role"] for m in body_of(dialect_of("groq"), longer)["messages"]]
    assert roles[-2:] == ["tool", "user"]


def test_mistral_is_asked_for_nothing_it_does_not_know(
    conversation: ChatRequest,
) -> None:
    body = body_of(dialect_of("mistral"), replace(conversation, model="codestral-1"))
    assert set(body) == {
        *("model", "messages", "tools", "max_tokens", "temperature", "stream"),
    }


def test_mistrals_thinking_goes_back_as_a_piece(conversation: ChatRequest) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    asked = replace(conversation, model="magistral-medium-latest")
    said = (chunk({"content": [thinking]}), chunk({"content": "ok"}), call("a1b2c3d4e"))
    message = back_in_loop("mistral", asked, *said)
    assert message["content"] == [thinking, {"type": "text", "text": "ok"}]


def test_deepseeks_thinking_goes_back_in_the_loop_alone(
    conversation: ChatRequest,
) -> None:
    thought = chunk({"reasoning_content": "hm"})
    message = back_in_loop("deepseek", conversation, thought, call("a"))
    assert message["reasoning_content"] == "hm"
    older = body_of(dialect_of("deepseek"), conversation)["messages"][2]
    assert "reasoning_content" not in older


DETAILS = (
    {"type": "reasoning.text", "index": 0, "text": "h", "format": "x", "id": None},
    {"type": "reasoning.text", "index": 0, "text": "m", "id": "r1"},
    {"type": "reasoning.text", "index": 0, "signature": "c2ln"},
    {"type": "reasoning.encrypted", "index": 1, "data": "ZA=="},
)


def test_openrouters_details_go_back_joined(conversation: ChatRequest) -> None:
    chunks = [
        chunk({"reasoning": piece.get("text"), "reasoning_details": [piece]})
        for piece in DETAILS
    ]
    message = back_in_loop("openrouter", conversation, *chunks, call("a"))
    text = {"type": "reasoning.text", "index": 0, "text": "hm", "format": "x"}
    assert message["reasoning_details"] == [
        {**text, "id": "r1", "signature": "c2ln"},
        {"type": "reasoning.encrypted", "index": 1, "data": "ZA=="},
    ]


def test_details_go_back_only_to_who_sent_them(conversation: ChatRequest) -> None:
    dialect = dialect_of("openrouter")
    by = {"provider": "acme", "model": conversation.model}
    own = {"openai-chat": {**by, "details": [DETAILS[3]]}}
    step = Message(Role.ASSISTANT, (Reasoning("", own), Text("x")))
    asked = replace(conversation, messages=(*conversation.messages[:3], step))
    assert "reasoning_details" in body_of(dialect, asked)["messages"][-1]
    other = Endpoint("other", HERE.base_url, HERE.key)
    assert "reasoning_details" not in str(body_of(dialect, asked, other))
    assert "reasoning_details" not in str(body_of(dialect, replace(asked, model="m")))


def test_openrouters_price_is_the_price() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "cost": 0.00123456}
    dialect = dialect_of("openrouter")
    _, whole = decode(dialect, sse(chunk({"content": "x"}), *finished(usage)))
    assert whole.usage == Usage(9, 2, cost_micro_usd=1235)


def test_an_error_chunk_of_openrouter_is_a_fault() -> None:
    error = {"code": 502, "message": "upstream went away"}
    broken = {"error": error, **chunk({"content": ""}, "error")}
    with pytest.raises(ProviderError, match="upstream went away") as caught:
        decode(dialect_of("openrouter"), sse(chunk({"content": "x"}), broken))
    assert caught.value.fault is ProviderFault.SERVER


def test_comments_of_openrouter_and_deepseek_are_skipped() -> None:
    noise = b": OPENROUTER PROCESSING\n\n: keep-alive\n\n"
    body = noise + sse(chunk({"content": "hi"})) + noise + sse(*finished())
    _, whole = decode(dialect_of("openrouter"), body)
    assert whole.message.text == "hi"


def test_a_call_that_groq_could_not_read_is_malformed() -> None:
    error = {
        "message": "Failed to call a function.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": "<function=look{",
    }
    body = json.dumps({"error": error}).encode()
    fault = dialect_of("groq").fault(HERE, 400, {}, body)
    assert fault.fault is ProviderFault.MALFORMED
    with pytest.raises(ProviderError) as caught:
        decode(dialect_of("groq"), sse({"error": error}))
    assert caught.value.fault is ProviderFault.MALFORMED


@pytest.mark.parametrize(
    ("total", "output"), [(399, 387), (13, 1), (None, 1), (400, 1)]
)
def test_the_total_tells_where_xai_counts_reasoning(
    total: int | None, output: int
) -> None:
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 1,
        "total_tokens": total,
        "completion_tokens_details": {"reasoning_tokens": 386},
    }
    _, whole = decode(dialect_of("xai"), sse(chunk({"content": "x"}), *finished(usage)))
    assert whole.usage == Usage(12, output, reasoning_tokens=386)


def test_an_error_may_be_a_bare_list() -> None:
    body = json.dumps([{"error": {"message": "no", "code": "model_not_found"}}])
    fault = dialect_of("together").fault(HERE, 400, {}, body.encode())
    assert fault.fault is ProviderFault.MODEL_NOT_FOUND


@pytest.mark.parametrize(
    ("slug", "model", "budget", "expected"),
    [
        ("groq", "qwen/qwen3.8-27b", 900, {"reasoning_effort": "default"}),
        ("groq", "qwen/qwen3.8-27b", 0, {"reasoning_effort": "none"}),
        ("groq", "openai/gpt-oss-20b", 0, {"reasoning_effort": "low"}),
        ("openrouter", "a/b", 900, {"reasoning": {"max_tokens": 900}}),
        ("openrouter", "a/b", 0, {"reasoning": {"enabled": False}}),
        ("deepseek", "deepseek-v4-pro", 900, {"thinking": {"type": "enabled"}}),
        ("xai", "grok-4.7", 20_000, {"reasoning_effort": "high"}),
        ("xai", "grok-4.20-non-reasoning", 20_000, {}),
        ("xai", "grok-4.20-reasoning", 20_000, {}),
        ("xai", "grok-build-0.1", 20_000, {"reasoning_effort": "high"}),
        ("mistral", "mistral-large-4", 900, {"reasoning_effort": "high"}),
        ("mistral", "mistral-large-4", 0, {"reasoning_effort": "none"}),
        ("mistral", "magistral-medium-latest", 900, {}),
        ("together", "moonshotai/Kimi-K3", 900, {"reasoning_effort": "low"}),
        ("together", "zai-org/GLM-5.3", 0, {"reasoning": {"enabled": False}}),
        ("together", "openai/gpt-oss-120b", 0, {"reasoning_effort": "low"}),
        ("cerebras", "qwen-3.8-27b", 0, {"reasoning_effort": "none"}),
        ("cerebras", "gpt-oss-120b", 0, {"reasoning_effort": "low"}),
        (
            "sambanova",
            "DeepSeek-V3.1",
            900,
            {"chat_template_kwargs": {"enable_thinking": True}},
        ),
        ("sambanova", "gpt-oss-120b", 9000, {"reasoning_effort": "medium"}),
        ("sambanova", "MiniMax-M2.7", 9000, {}),
        (
            "openrouter",
            "anthropic/claude-opus-5.5",
            0,
            {"reasoning": {"effort": "low"}},
        ),
        ("openrouter", "openai/gpt-4o", 900, {}),
    ],
)
def test_thinking_is_asked_for_as_the_vendor_takes_it(
    conversation: ChatRequest,
    slug: str,
    model: str,
    budget: int,
    expected: dict[str, Any],
) -> None:
    dialect = dialect_of(slug)
    where = there(slug, model)
    plain = body_of(dialect, replace(conversation, model=model), where)
    asked = replace(conversation, model=model, thinking_budget=budget)
    body = body_of(dialect, asked, where)
    assert {k: v for k, v in body.items() if k not in plain} == expected


def test_fireworks_gets_a_limit_of_ours(conversation: ChatRequest) -> None:
    asked = replace(conversation, max_tokens=None)
    assert body_of(dialect_of("fireworks"), asked)["max_tokens"] == 8192
    assert "max_tokens" not in body_of(dialect_of("together"), asked)


def test_results_without_a_call_are_still_written(conversation: ChatRequest) -> None:
    lost = Message(Role.TOOL, (ToolOutput("x y", "look", "words"),))
    asked = replace(conversation, messages=(lost,))
    (_, written) = body_of(dialect_of("mistral"), asked)["messages"]
    assert len(written["tool_call_id"]) == 9
