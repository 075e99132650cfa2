"""Messages: what the contract class cannot see from outside."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Finish,
    Message,
    ModelFacts,
    ProviderError,
    ProviderFault,
    Reasoning,
    Role,
    Text,
    Usage,
)
from agenthost_dialects.anthropic_messages import (
    OPENING,
    AnthropicMessages,
)
from agenthost_providers.catalogue import load_facts

from .exchange import HERE, body_of, decode, sse, there

DIALECT = AnthropicMessages.from_quirks(load_facts("anthropic").quirks)
START = {"type": "message_start", "message": {"usage": {"input_tokens": 5}}}
STOP = {"type": "message_stop"}


def ended(reason: str) -> dict[str, Any]:
    usage = {"output_tokens": 3, "input_tokens": None, "cache_read_input_tokens": 7}
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def test_all_results_of_a_step_stand_in_one_user_message(
    conversation: ChatRequest,
) -> None:
    messages = body_of(DIALECT, conversation)["messages"]
    assert [m["role"] for m in messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    first, second = messages[-1]["content"]
    assert first == {
        "type": "tool_result",
        "tool_use_id": "a1",
        "content": "white walls",
    }
    assert second["is_error"] is True


def test_what_the_user_adds_joins_the_results(conversation: ChatRequest) -> None:
    more = Message(Role.USER, (Text("hurry"),))
    longer = replace(conversation, messages=(*conversation.messages, more))
    kinds = [b["type"] for b in body_of(DIALECT, longer)["messages"][-1]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]


def test_own_thinking_goes_back_unchanged_and_others_stay(
    conversation: ChatRequest,
) -> None:
    messages = body_of(DIALECT, conversation)["messages"]
    assert messages[1]["content"] == [{"type": "text", "text": "hi"}]
    assert messages[3]["content"][:2] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
    ]


def test_foreign_ids_become_ones_the_api_takes(conversation: ChatRequest) -> None:
    messages = body_of(DIALECT, conversation)["messages"]
    call = messages[3]["content"][-1]["id"]
    assert ":" not in call
    assert messages[4]["content"][1]["tool_use_id"] == call


def test_tools_and_system_are_marked_for_the_cache(conversation: ChatRequest) -> None:
    body = body_of(DIALECT, conversation)
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert body["tools"][-1]["cache_control"] == {"type": "ephemeral"}


def test_the_next_step_extends_the_same_bytes(conversation: ChatRequest) -> None:
    shorter = replace(conversation, messages=conversation.messages[:3])
    # Marks move on; the service leaves them out of what it compares.
    mark = b',"cache_control":{"type":"ephemeral"}'
    one, two = (
        DIALECT.encode(request, HERE).body.replace(mark, b"")
        for request in (shorter, conversation)
    )
    last = b'"iVBORw0="'
    assert two.startswith(one[: one.rindex(last) + len(last)])


def test_a_conversation_always_opens_with_the_user() -> None:
    said = (Message(Role.ASSISTANT, (Text("so far"),)),)
    messages = body_of(DIALECT, ChatRequest("m", "", said))["messages"]
    assert messages[0] == {
        "role": "user",
        "content": [
            {"type": "text", "text": OPENING, "cache_control": {"type": "ephemeral"}}
        ],
    }


def test_parts_without_words_are_left_out() -> None:
    said = (
        Message(Role.USER, (Text("a"), Text(" \n"))),
        Message(Role.ASSISTANT, (Reasoning("foreign"),)),
        Message(Role.USER, (Text("b"),)),
    )
    messages = body_of(DIALECT, ChatRequest("m", "", said))["messages"]
    texts = [block["text"] for message in messages for block in message["content"]]
    assert (len(messages), texts) == (1, ["a", "b"])


HAIKU = "claude-haiku-4-5-20251001"


def effort(word: str) -> dict[str, Any]:
    return {"output_config": {"effort": word}}


def tokens(budget: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


@pytest.mark.parametrize(
    ("model", "budget", "options"),
    [
        (HAIKU, None, {"temperature": 0.5}),
        (HAIKU, 0, {"thinking": {"type": "disabled"}, "temperature": 0.5}),
        (HAIKU, 1500, tokens(1500)),
        (HAIKU, 9999, tokens(1999)),
        ("claude-opus-4-6", None, {"temperature": 0.5}),
        ("claude-opus-5", None, {}),
        ("claude-opus-5", 0, {"thinking": {"type": "disabled"}}),
        ("claude-opus-5", 9999, {"thinking": {"type": "adaptive"}, **effort("medium")}),
        ("claude-fable-5-1", 0, effort("low")),
        ("claude-opus-5-5", None, {}),
        ("claude-opus-5-5", 0, effort("low")),
        ("claude-sonnet-5-5", 0, {"thinking": {"type": "between_tools"}}),
        ("claude-haiku-5-5", 0, {"thinking": {"type": "disabled"}}),
        ("claude-nobody-lists", 0, {}),
    ],
)
def test_thinking_is_written_as_the_models_row_says(
    conversation: ChatRequest, model: str, budget: int | None, options: dict[str, Any]
) -> None:
    one = replace(conversation, messages=conversation.messages[:3], model=model)
    asked = replace(one, thinking_budget=budget)
    body = body_of(DIALECT, asked, there("anthropic", model))
    names = ("thinking", "output_config", "temperature")
    assert {name: body[name] for name in names if name in body} == options


def test_a_loop_that_another_model_began_goes_on_without_a_budget(
    conversation: ChatRequest,
) -> None:
    asked = replace(conversation, thinking_budget=1500)
    where = there("anthropic", HAIKU)
    assert "thinking" not in body_of(DIALECT, asked, where)
    assert "thinking" in body_of(DIALECT, asked, replace(where, provider="acme"))


def test_thinking_stays_with_the_model_that_signed_it(
    conversation: ChatRequest,
) -> None:
    for other in (
        replace(conversation, model="claude-opus-5-5"),
        replace(conversation, model="claude-sonnet-5-5"),
    ):
        body = body_of(DIALECT, other)
        kinds = [b["type"] for m in body["messages"] for b in m["content"]]
        assert "thinking" not in kinds
        assert "redacted_thinking" not in kinds
    elsewhere = replace(HERE, provider="other")
    assert "c2ln" not in str(body_of(DIALECT, conversation, elsewhere))


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("claude-opus-5-5", 64_000),
        (HAIKU, 64_000),
        ("claude-opus-4-5", 64_000),
        ("claude-nobody-lists", 8192),
    ],
)
def test_an_answer_that_nobody_limits_has_room_to_think(
    conversation: ChatRequest, model: str, limit: int
) -> None:
    asked = replace(conversation, model=model, max_tokens=None)
    where = there("anthropic", model)
    assert body_of(DIALECT, asked, where)["max_tokens"] == limit
    unknown = ModelFacts(model, "anthropic", model, model)
    bare = body_of(DIALECT, asked, replace(where, model=unknown))
    assert bare["max_tokens"] == 8192


def test_thinking_that_leaves_no_room_for_words_is_off(
    conversation: ChatRequest,
) -> None:
    tight = replace(conversation, max_tokens=500, thinking_budget=5000)
    where = replace(there("anthropic", HAIKU), provider="acme")
    assert "thinking" not in body_of(DIALECT, tight, where)


def test_usage_counts_the_cached_part_of_the_prompt() -> None:
    _, whole = decode(DIALECT, sse(START, ended("end_turn"), STOP))
    assert whole.usage == Usage(12, 3, cached_tokens=7)


def test_redacted_thinking_is_kept_and_signatures_are_joined() -> None:
    def block(index: int, **content: Any) -> dict[str, Any]:
        start = {"type": "content_block_start", "index": index}
        return {**start, "content_block": content}

    def delta(index: int, **content: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": content}

    body = sse(
        START,
        block(0, type="thinking", thinking="", signature=""),
        delta(0, type="signature_delta", signature="ab"),
        delta(0, type="signature_delta", signature="cd"),
        block(1, type="redacted_thinking", data="xyz"),
        block(2, type="server_thing", payload=1),
        block(3, type="text", text="done"),
        ended("end_turn"),
        STOP,
    )
    _, whole = decode(DIALECT, body)
    by = {"provider": "acme", "model": "m"}
    assert whole.message.parts == (
        Reasoning("", {"anthropic-messages": {"signature": "abcd", **by}}),
        Reasoning("", {"anthropic-messages": {"data": "xyz", **by}}),
        Text("done"),
    )


def test_a_refusal_is_content_blocked() -> None:
    _, whole = decode(DIALECT, sse(START, ended("refusal"), STOP))
    assert whole.finish is Finish.CONTENT_BLOCKED


@pytest.mark.parametrize("streamed", [True, False])
def test_the_word_to_stop_before_is_told_if_it_was_asked_for(*, streamed: bool) -> None:
    asked = ChatRequest("m", "", (), stream=streamed, stop=("END",))
    for word, told in (("END", "END"), ("other", ""), (None, ""), (5, "")):
        end = {"stop_reason": "stop_sequence", "stop_sequence": word}
        whole = json.dumps({"type": "message", "content": [], **end}).encode()
        pieces = sse(START, {"type": "message_delta", "delta": end}, STOP)
        _, answer = decode(DIALECT, pieces if streamed else whole, asked)
        assert (answer.finish, answer.stop) == (Finish.STOP, told)


def test_an_end_without_a_reason_is_malformed() -> None:
    with pytest.raises(ProviderError) as caught:
        decode(DIALECT, sse(START, STOP))
    assert caught.value.fault is ProviderFault.MALFORMED


def test_the_version_and_the_path_are_sent_once(conversation: ChatRequest) -> None:
    wire = DIALECT.encode(conversation, HERE)
    assert wire.url == "http://acme/v1/messages"
    assert wire.headers["anthropic-version"] == "2026-10-21"
    assert wire.headers["x-api-key"] == "sk-test"


def test_a_temperature_is_sent_with_the_last_version_that_has_one(
    conversation: ChatRequest,
) -> None:
    wire = DIALECT.encode(conversation, there("anthropic", HAIKU))
    assert b'"temperature"' in wire.body
    assert wire.headers["anthropic-version"] == "2023-06-01"
