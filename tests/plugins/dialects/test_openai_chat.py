"""Chat completions: what the contract class cannot see from outside."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Finish,
    InvalidInput,
    ProviderError,
    ProviderFault,
    Reasoning,
    Text,
    TextChunk,
    Usage,
)
from agenthost_dialects.openai_chat import OpenAIChat
from agenthost_providers.catalogue import load_facts

from .exchange import HERE, body_of, decode, sse, there

PLAIN = OpenAIChat()
OPENAI = OpenAIChat.from_quirks(load_facts("openai").quirks)


def chunk(
    delta: dict[str, Any] | None = None, finish: str | None = None
) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}]}


def call(call_id: str, name: str, arguments: Any, **index: int) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return chunk({"tool_calls": [{**index, "id": call_id, "function": function}]})


def test_results_are_messages_of_their_own(conversation: ChatRequest) -> None:
    messages = body_of(PLAIN, conversation)["messages"]
    roles = [m["role"] for m in messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "tool", "tool"]
    assert messages[-1] == {"role": "tool", "tool_call_id": "b:2", "content": "no city"}
    written = messages[4]["tool_calls"][0]["function"]["arguments"]
    assert written == '{"city":"Évora"}'


def test_a_call_without_words_has_null_content(conversation: ChatRequest) -> None:
    message = conversation.messages[3]
    silent = replace(message, parts=message.parts[3:])
    asked = replace(conversation, messages=(conversation.messages[0], silent))
    assert body_of(PLAIN, asked)["messages"][-1]["content"] is None


def test_reasoning_goes_back_inside_the_loop_only(conversation: ChatRequest) -> None:
    table = {"reasoning_back": "reasoning_content"}
    messages = body_of(OpenAIChat.from_quirks(table), conversation)["messages"]
    assert [
        m.get("reasoning_content") for m in messages if m["role"] == "assistant"
    ] == [
        None,
        "hm",
    ]
    assert "reasoning_content" not in str(body_of(PLAIN, conversation))


@pytest.mark.parametrize(
    ("model", "budget", "expected"),
    [
        ("gpt-4o", 0, {"max_completion_tokens": 2000, "temperature": 0.5}),
        ("gpt-5.2", None, {"max_completion_tokens": 2000}),
        ("gpt-5.2", 0, {"max_completion_tokens": 2000, "reasoning_effort": "none"}),
        (
            "gpt-5-mini",
            0,
            {"max_completion_tokens": 2000, "reasoning_effort": "minimal"},
        ),
        (
            "gpt-5.2",
            20_000,
            {"max_completion_tokens": 2000, "reasoning_effort": "high"},
        ),
    ],
)
def test_options_follow_the_models_facts(
    conversation: ChatRequest, model: str, budget: int | None, expected: dict[str, Any]
) -> None:
    asked = replace(conversation, model=model, thinking_budget=budget, stream=False)
    body = body_of(OPENAI, asked, there("openai", model))
    rest = {k: v for k, v in body.items() if k not in {"model", "messages", "tools"}}
    assert rest == expected


def test_reasoning_models_get_their_instructions_from_the_developer(
    conversation: ChatRequest,
) -> None:
    roles = {
        model: body_of(OPENAI, replace(conversation, model=model))["messages"][0][
            "role"
        ]
        for model in ("gpt-4o-mini", "gpt-6.1-sol")
    }
    assert roles == {"gpt-4o-mini": "system", "gpt-6.1-sol": "developer"}


def test_usage_is_asked_for_unless_the_provider_refuses_it(
    conversation: ChatRequest,
) -> None:
    asked = body_of(PLAIN, conversation)
    refused = body_of(OpenAIChat.from_quirks({"stream_options": False}), conversation)
    assert asked["stream_options"] == {"include_usage": True}
    assert "stream_options" not in refused


def test_a_switch_turns_thinking_on_and_off(conversation: ChatRequest) -> None:
    dialect = OpenAIChat.from_quirks({"thinking": "switch"})
    off = body_of(dialect, replace(conversation, thinking_budget=0))
    assert off["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"stream_option": True}, "did you mean 'stream_options'"),
        ({"zzz": 1}, "known:"),
        ({"max_tokens_field": "limit"}, "max_tokens_field"),
        ({"models": [{"match": ["x"], "think": 1}]}, "did you mean 'thinking'"),
    ],
)
def test_a_wrong_quirk_names_itself(table: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        OpenAIChat.from_quirks(table)


def test_calls_are_told_apart_though_every_index_is_zero() -> None:
    body = sse(
        call("a", "one", "{}", index=0),
        call("b", "two", '{"x":1}', index=0),
        chunk(finish="tool_calls"),
        "[DONE]",
    )
    _, whole = decode(PLAIN, body)
    assert [(u.id, u.name) for u in whole.message.tool_uses] == [
        ("a", "one"),
        ("b", "two"),
    ]


def test_pieces_without_an_index_belong_together() -> None:
    more = {"tool_calls": [{"function": {"arguments": "1}"}}]}
    body = sse(
        call("a", "one", '{"x":'), chunk(more), chunk(finish="tool_calls"), "[DONE]"
    )
    _, whole = decode(PLAIN, body)
    assert whole.message.tool_uses[0].arguments == {"x": 1}


def test_missing_ids_are_counted_on_from_the_conversation(
    conversation: ChatRequest,
) -> None:
    body = sse(
        call("", "look", {"x": 1}, index=0),
        call("", "look", None, index=1),
        chunk(finish="stop"),
        "[DONE]",
    )
    _, whole = decode(PLAIN, body, conversation)
    assert whole.finish is Finish.TOOL_USE
    first, second = whole.message.tool_uses
    assert (first.id, second.id) == ("call_3", "call_4")
    assert (first.arguments, second.arguments) == ({"x": 1}, {})


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_think_tags_become_reasoning(size: int) -> None:
    text = "\n<think>\na < b </thin k</think>\n\nit is <think>b</think>"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    body = sse(*(chunk({"content": p}) for p in pieces), chunk(finish="stop"), "[DONE]")
    _, whole = decode(OpenAIChat.from_quirks({"think_tags": True}), body)
    assert whole.message.parts == (
        Reasoning("\na < b </thin k"),
        Text("it is <think>b</think>"),
    )


@pytest.mark.parametrize("text", ["<thi", "plain", "", "<think>lost in thought</thi"])
def test_held_back_text_is_not_lost(text: str) -> None:
    body = sse(chunk({"content": text}), chunk(finish="stop"), "[DONE]")
    _, whole = decode(OpenAIChat.from_quirks({"think_tags": True}), body)
    said = "".join(getattr(part, "text", "") for part in whole.message.parts)
    assert said == text.removeprefix("<think>")


def test_listed_content_is_read_as_reasoning_and_text() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    body = sse(
        chunk({"content": [thinking]}),
        chunk({"content": [{"type": "text", "text": "ok"}]}),
        chunk(finish="stop"),
        "[DONE]",
    )
    _, whole = decode(PLAIN, body)
    assert whole.message.parts == (Reasoning("hm"), Text("ok"))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, Usage(9, 2)),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
            Usage(9, 2, cached_tokens=4),
        ),
        (
            {"prompt_tokens": None, "completion_tokens": "2", "cost": 0.00125},
            Usage(cost_micro_usd=1250),
        ),
    ],
)
def test_usage_is_read(usage: dict[str, Any], expected: Usage) -> None:
    body = sse(chunk(finish="stop"), {"choices": [], "usage": usage}, "[DONE]")
    _, whole = decode(OpenAIChat.from_quirks({"cost_field": "cost"}), body)
    assert whole.usage == expected


def test_usage_of_groq_stands_elsewhere() -> None:
    last = {**chunk(finish="stop"), "x_groq": {"usage": {"prompt_tokens": 3}}}
    _, whole = decode(PLAIN, sse(last, "[DONE]"))
    assert whole.usage == Usage(3)


def test_a_provider_may_end_without_a_marker() -> None:
    dialect = OpenAIChat.from_quirks({"done_marker": False})
    _, whole = decode(dialect, sse(chunk({"content": "hi"}), chunk(finish="stop")))
    assert whole.message.text == "hi"
    with pytest.raises(ProviderError, match="reason to stop"):
        decode(dialect, sse(chunk({"content": "hi"})))


@pytest.mark.parametrize(
    "body",
    [
        sse(chunk({"content": "x"}), "[DONE]"),
        sse(chunk(finish="tool_calls"), "[DONE]"),
        sse("[]"),
    ],
)
def test_answers_that_contradict_themselves_are_malformed(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        decode(PLAIN, body)
    assert caught.value.fault is ProviderFault.MALFORMED


def test_a_call_without_a_name_is_told_to_the_model() -> None:
    body = sse(call("a", "", "{}", index=0), chunk(finish="tool_calls"), "[DONE]")
    _, whole = decode(PLAIN, body)
    (use,) = whole.message.tool_uses
    assert (use.id, use.name, use.arguments) == ("a", "unnamed", {})
    assert "names no tool" in use.malformed


def test_half_a_pair_is_replaced_wherever_it_stands() -> None:
    half = "\ud83d"
    arguments = json.dumps({half: [half, {"b": half + "x"}]})
    body = sse(
        chunk({"content": half}),
        chunk({"reasoning_content": half}),
        call(half, half, arguments, index=0),
        chunk(finish="tool_calls"),
        "[DONE]",
    )
    deltas, whole = decode(PLAIN, body)
    (use,) = whole.message.tool_uses
    mended = "\ufffd"
    assert (use.id, use.name) == (mended, mended)
    assert use.arguments == {mended: [mended, {"b": mended + "x"}]}
    assert TextChunk(mended) in deltas


def test_a_finish_of_error_is_a_fault() -> None:
    with pytest.raises(ProviderError) as caught:
        decode(PLAIN, sse(chunk({"content": "x"}), chunk(finish="error"), "[DONE]"))
    assert caught.value.fault is ProviderFault.SERVER


def test_what_follows_the_end_is_ignored() -> None:
    deltas, _ = decode(PLAIN, sse(chunk(finish="stop"), "[DONE]", "junk"))
    assert len(deltas) == 1


def test_no_key_means_no_header(conversation: ChatRequest) -> None:
    headers = PLAIN.encode(conversation, replace(HERE, key=None)).headers
    assert "Authorization" not in headers
