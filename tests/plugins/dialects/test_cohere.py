"""Cohere's dialect, without a network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agenthost import ChatRequest, Finish, ProviderError, ProviderFault, Usage
from agenthost_dialects.cohere import Cohere

from .exchange import HERE, body_of, decode, sse

PLAIN = Cohere()


def delta(kind: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, **more, "delta": {"message": message}}


def end(reason: str, **more: Any) -> dict[str, Any]:
    return {"type": "message-end", "delta": {"finish_reason": reason, **more}}


def started(index: int, call_id: str, name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": '{"x":1}'}
    call = {"id": call_id, "type": "function", "function": function}
    return delta("tool-call-start", {"tool_calls": call}, index=index)


PLAN = delta("tool-plan-delta", {"tool_plan": "look first"})
THINKING = delta("content-delta", {"content": {"thinking": "hm"}}, index=0)
SAID = delta("content-delta", {"content": {"text": "ok"}}, index=1)


def loop(asked: ChatRequest, *events: dict[str, Any]) -> dict[str, Any]:
    """Decode an answer and write it back into the conversation's loop."""
    _, whole = decode(PLAIN, sse(*events), asked)
    again = replace(asked, messages=(*asked.messages[:3], whole.message))
    message: dict[str, Any] = body_of(PLAIN, again)["messages"][-1]
    return message


def test_a_plan_goes_back_as_one(conversation: ChatRequest) -> None:
    message = loop(conversation, PLAN, started(0, "c1", "look"), end("TOOL_CALL"))
    assert message["tool_plan"] == "look first"
    assert "content" not in message
    assert message["tool_calls"][0]["id"] == "c1"


def test_thinking_goes_back_as_content(conversation: ChatRequest) -> None:
    events = (THINKING, SAID, started(0, "c1", "look"), end("TOOL_CALL"))
    message = loop(conversation, *events)
    assert message["content"] == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "ok"},
    ]


def test_thoughts_of_others_stay_away(conversation: ChatRequest) -> None:
    messages = body_of(PLAIN, conversation)["messages"]
    assert "tool_plan" not in messages[4]
    assert messages[4]["content"] == "let me see"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("COMPLETE", Finish.STOP),
        ("STOP_SEQUENCE", Finish.STOP),
        ("MAX_TOKENS", Finish.LENGTH),
        ("ERROR_TOXIC", Finish.CONTENT_BLOCKED),
    ],
)
def test_reasons_are_read(reason: str, finish: Finish) -> None:
    _, whole = decode(PLAIN, sse(SAID, end(reason)))
    assert whole.finish is finish


@pytest.mark.parametrize("reason", ["ERROR", "TIMEOUT"])
def test_an_end_may_be_an_error(reason: str) -> None:
    with pytest.raises(ProviderError) as caught:
        decode(PLAIN, sse(SAID, end(reason)))
    assert caught.value.fault is ProviderFault.SERVER


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {
                "tokens": {"input_tokens": 9.0, "output_tokens": 2},
                "billed_units": {"input_tokens": 1, "output_tokens": 1},
                "cached_tokens": 4,
            },
            Usage(1, 1, cached_tokens=4),
        ),
        ({"tokens": {"input_tokens": 9, "output_tokens": 2}}, Usage(9, 2)),
        ({}, Usage()),
    ],
)
def test_usage_is_read(usage: dict[str, Any], expected: Usage) -> None:
    _, whole = decode(PLAIN, sse(SAID, end("COMPLETE", usage=usage)))
    assert whole.usage == expected


def test_thinking_is_written_where_the_model_takes_it(
    conversation: ChatRequest,
) -> None:
    thinks = Cohere.from_quirks({"thinking": True})
    asked = replace(conversation, thinking_budget=900)
    budget = {"type": "enabled", "token_budget": 900}
    assert body_of(thinks, asked)["thinking"] == budget
    off = body_of(thinks, replace(asked, thinking_budget=0))
    assert off["thinking"] == {"type": "disabled"}
    assert "thinking" not in body_of(PLAIN, asked)


def test_the_address_may_bring_its_version(conversation: ChatRequest) -> None:
    here = replace(HERE, base_url="https://api.cohere.com/v2/")
    assert PLAIN.encode(conversation, here).url == "https://api.cohere.com/v2/chat"


def test_an_error_event_without_a_type_is_heard() -> None:
    with pytest.raises(ProviderError, match="too much"):
        decode(PLAIN, sse({"message": "too much"}))
