"""Why an answer ended: a reason that nobody listed is no good end in any dialect."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from agenthost import ChatRequest, Dialect, Finish, ProviderError, ProviderFault
from agenthost.testing.simulators.bedrock import frame
from agenthost_dialects.anthropic_messages import AnthropicMessages
from agenthost_dialects.bedrock import Bedrock
from agenthost_dialects.cohere import Cohere
from agenthost_dialects.gemini import Gemini
from agenthost_dialects.ollama import Ollama
from agenthost_dialects.openai_chat import OpenAIChat
from agenthost_dialects.openai_responses import OpenAIResponses

from .exchange import decode, sse

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"'}}


def bedrock_event(kind: str, payload: Any) -> bytes:
    headers = {":event-type": kind, ":message-type": "event"}
    return frame(headers, json.dumps(payload).encode())


def anthropic(reason: str) -> bytes:
    delta = {"type": "message_delta", "delta": {"stop_reason": reason}}
    return sse(delta, {"type": "message_stop"})


def openai(reason: str) -> bytes:
    said = {"index": 0, "delta": {"content": "x"}, "finish_reason": reason}
    return sse({"choices": [said]}, "[DONE]")


def gemini(reason: str) -> bytes:
    return sse({"candidates": [{"finishReason": reason}]})


def cohere(reason: str) -> bytes:
    return sse({"type": "message-end", "delta": {"finish_reason": reason}})


def bedrock(reason: str) -> bytes:
    stop = bedrock_event("messageStop", {"stopReason": reason})
    return stop + bedrock_event("metadata", {})


def responses(reason: str) -> bytes:
    details = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return sse({"type": "response.incomplete", "response": details})


def ollama(reason: str | None) -> bytes:
    return json.dumps({"done": True, "done_reason": reason}).encode() + b"\n"


DIALECTS: dict[str, tuple[Dialect, Callable[[str], bytes]]] = {
    "anthropic": (AnthropicMessages(), anthropic),
    "openai": (OpenAIChat(), openai),
    "gemini": (Gemini(), gemini),
    "cohere": (Cohere(), cohere),
    "bedrock": (Bedrock(), bedrock),
    "responses": (OpenAIResponses(), responses),
    "ollama": (Ollama(), ollama),
}


def fault_of(name: str, reason: str) -> ProviderError:
    dialect, body = DIALECTS[name]
    with pytest.raises(ProviderError) as caught:
        decode(dialect, body(reason))
    return caught.value


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("reason", ["something_new", "STOPPED?" * 10_000])
def test_an_unknown_reason_is_no_good_end(name: str, reason: str) -> None:
    error = fault_of(name, reason)
    assert error.fault is ProviderFault.MALFORMED
    assert reason[:200] in error.message
    assert len(error.message) < 400


@pytest.mark.parametrize(
    ("reason", "fault"),
    [
        ("insufficient_system_resource", ProviderFault.OVERLOADED),
        ("error", ProviderFault.SERVER),
    ],
)
def test_a_reason_that_is_a_failure_of_the_service_is_one(
    reason: str, fault: ProviderFault
) -> None:
    error = fault_of("openai", reason)
    assert error.fault is fault
    assert reason in error.message


@pytest.mark.parametrize("reason", ["stop", "eos", "eos_token", "stop_sequence"])
def test_servers_of_the_chat_dialect_name_a_good_end_in_their_way(reason: str) -> None:
    _, whole = decode(OpenAIChat(), openai(reason))
    assert whole.finish is Finish.STOP


def test_an_older_ollama_names_no_reason() -> None:
    _, whole = decode(Ollama(), ollama(None))
    assert whole.finish is Finish.STOP


@pytest.mark.parametrize("reason", ["IMAGE_PROHIBITED_CONTENT", "MODEL_ARMOR"])
def test_newer_blocks_of_gemini_are_blocks(reason: str) -> None:
    _, whole = decode(Gemini(), gemini(reason))
    assert whole.finish is Finish.CONTENT_BLOCKED


@pytest.mark.parametrize(
    ("delta", "reason", "cut"),
    [
        ({"tool_calls": [{**CALL, "index": 0}]}, "length", True),
        ({"content": "I will"}, "length", False),
        ({"tool_calls": [{**CALL, "index": 0}]}, "content_filter", False),
    ],
)
def test_a_call_that_was_cut_off_is_told_of(
    delta: dict[str, Any], reason: str, cut: bool
) -> None:
    said = {"index": 0, "delta": delta, "finish_reason": reason}
    request = ChatRequest("m", "", ())
    _, whole = decode(OpenAIChat(), sse({"choices": [said]}, "[DONE]"), request)
    assert whole.cut_call is cut
    assert whole.message.tool_uses == ()
