"""What a provider calls an answer is known, and of a bounded length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from agenthost import ChatRequest, Dialect
from agenthost_dialects.anthropic_messages import AnthropicMessages
from agenthost_dialects.cohere import Cohere
from agenthost_dialects.gemini import Gemini
from agenthost_dialects.openai_chat import OpenAIChat
from agenthost_dialects.openai_responses import OpenAIResponses

from .exchange import decode, sse

ID = "answer-17"


def openai(id_: object) -> bytes:
    delta = {"role": "assistant", "content": "hi"}
    ended = {"index": 0, "delta": {}, "finish_reason": "stop"}
    first = {"id": id_, "choices": [{"index": 0, "delta": delta}]}
    return sse(first, {"id": id_, "choices": [ended]}, "[DONE]")


def responses(id_: object) -> bytes:
    said = [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]
    answer = {"id": id_, "status": "completed", "output": said}
    return sse({"type": "response.completed", "response": answer})


def anthropic(id_: object) -> bytes:
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    start = {"type": "message_start", "message": {"id": id_}}
    return sse(start, ended, {"type": "message_stop"})


def gemini(id_: object) -> bytes:
    content = {"parts": [{"text": "hi"}]}
    candidate = {"content": content, "finishReason": "STOP"}
    return sse({"responseId": id_, "candidates": [candidate]})


def cohere(id_: object) -> bytes:
    ended = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
    return sse({"type": "message-start", "id": id_}, ended)


DIALECTS = [
    (OpenAIChat(), openai),
    (OpenAIResponses(), responses),
    (AnthropicMessages(), anthropic),
    (Gemini(), gemini),
    (Cohere(), cohere),
]


@pytest.mark.parametrize(("dialect", "body"), DIALECTS)
def test_the_id_of_an_answer_is_read(dialect: Dialect, body: Any) -> None:
    assert decode(dialect, body(ID))[1].id == ID


@pytest.mark.parametrize(("dialect", "body"), DIALECTS)
@pytest.mark.parametrize("id_", [None, 7, ["x"], {"a": 1}])
def test_what_is_no_text_is_no_id(dialect: Dialect, body: Any, id_: object) -> None:
    assert decode(dialect, body(id_))[1].id == ""


@pytest.mark.parametrize(("dialect", "body"), DIALECTS)
def test_a_long_id_is_cut(dialect: Dialect, body: Any) -> None:
    assert decode(dialect, body("x" * 10_000))[1].id == "x" * 200


@pytest.mark.parametrize(
    ("dialect", "whole"),
    [
        (AnthropicMessages(), {"content": [], "stop_reason": "end_turn"}),
        (Cohere(), {"message": {"content": []}, "finish_reason": "COMPLETE"}),
    ],
)
def test_an_answer_in_one_piece_has_its_id_too(
    dialect: Dialect, whole: Mapping[str, Any]
) -> None:
    body = json.dumps({"id": ID, "type": "message", **whole}).encode()
    asked = ChatRequest("m", "", (), stream=False)
    assert decode(dialect, body, asked)[1].id == ID
