"""The vendors' own types judge documents in messages."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from agenthost import ChatRequest, File, Message, Role
from pydantic import TypeAdapter

from .conversation import WHY, our_body, ours
from .test_pictures import drain

pytestmark = pytest.mark.conformance

PDF = File("notes.pdf", "application/pdf", "JVBERi0xLjcK")


def asked(model: str) -> ChatRequest:
    """The conversation of all judges, and a last message with a document alone."""
    request = ours(model, stream=False)
    last = Message(Role.USER, (PDF,))
    return replace(request, messages=(*request.messages, last))


def test_anthropics_types_take_it() -> None:
    anthropic = pytest.importorskip("anthropic", reason=WHY)
    body = our_body("anthropic", asked("claude-haiku-4-5"))
    params = anthropic.types.message_create_params.MessageCreateParamsNonStreaming
    # The adapter must outlive what it made, which reads it lazily.
    whole: TypeAdapter[Any] = TypeAdapter(params)
    drain(whole.validate_python(body))
    block = body["messages"][-1]["content"][-1]
    block.pop("cache_control", None)
    adapter: TypeAdapter[Any] = TypeAdapter(anthropic.types.DocumentBlockParam)
    assert adapter.validate_python(block, extra="forbid") == block


def test_openais_types_take_it() -> None:
    openai = pytest.importorskip("openai", reason=WHY)
    body = our_body("openai", asked("gpt-5.5-pro"))
    (part,) = body["input"][-1]["content"]
    kinds = openai.types.responses
    adapter: TypeAdapter[Any] = TypeAdapter(kinds.ResponseInputFileParam)
    assert adapter.validate_python(part, extra="forbid") == part


def test_openais_chat_types_take_it() -> None:
    chat = pytest.importorskip("openai.types.chat", reason=WHY)
    body = our_body("openai", asked("gpt-4o"))
    (part,) = body["messages"][-1]["content"]
    adapter: TypeAdapter[Any] = TypeAdapter(chat.ChatCompletionContentPartParam)
    drain(adapter.validate_python(part, extra="forbid"))
    assert part["type"] == "file"


def test_googles_types_take_it() -> None:
    types = pytest.importorskip("google.genai.types", reason=WHY)
    body = our_body("gemini", asked("gemini-3.5-flash"))
    *_, part = types.Content.model_validate(body["contents"][-1]).parts
    assert part.inline_data.data == base64.b64decode(PDF.data)
    assert part.inline_data.mime_type == PDF.media_type


def test_amazons_model_of_the_service_takes_it() -> None:
    session = pytest.importorskip("botocore.session", reason=WHY)
    validate = pytest.importorskip("botocore.validate", reason=WHY)
    body = our_body("bedrock", asked("anthropic.claude-sonnet-5-5"))
    blocks = body["messages"][-1]["content"]
    (document,) = [block for block in blocks if "document" in block]
    document["document"]["source"]["bytes"] = b"bytes"
    service = session.get_session().get_service_model("bedrock-runtime")
    report = validate.ParamValidator().validate(
        document, service.shape_for("ContentBlock")
    )
    assert not report.has_errors(), report.generate_report()
