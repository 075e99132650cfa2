"""The vendors' own types judge results of tools that bring pictures."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from agenthost import ChatRequest, Image, Message, Role, ToolOutput
from pydantic import TypeAdapter

from .conversation import WHY, our_body, ours

pytestmark = pytest.mark.conformance

WORDS = "a map [image: image/png, 5 bytes]"
PICTURE = Image("image/png", "iVBORw0=")


def asked(model: str) -> ChatRequest:
    """The conversation of all judges, with a picture in its first result."""
    request = ours(model, stream=False)
    *before, last = request.messages
    first, second = last.parts
    assert isinstance(first, ToolOutput)
    seen = replace(first, text=WORDS, media=(PICTURE,))
    return replace(request, messages=(*before, Message(Role.TOOL, (seen, second))))


def drain(value: Any) -> None:
    """Walk a validated body: pydantic checks iterables only as they are read."""
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for item in value:
            drain(item)


@pytest.mark.judge("anthropic")
def test_anthropics_types_take_it() -> None:
    anthropic = pytest.importorskip("anthropic", reason=WHY)
    body = our_body("anthropic", asked("claude-haiku-4-5"))
    params = anthropic.types.message_create_params.MessageCreateParamsNonStreaming
    # The adapter must outlive what it made, which reads it lazily.
    whole: TypeAdapter[Any] = TypeAdapter(params)
    drain(whole.validate_python(body))
    blocks = body["messages"][-1]["content"][0]["content"]
    adapter: TypeAdapter[Any] = TypeAdapter(anthropic.types.ImageBlockParam)
    assert adapter.validate_python(blocks[1], extra="forbid") == blocks[1]
    assert blocks[0] == {"type": "text", "text": WORDS}


@pytest.mark.judge("openai")
def test_openais_types_take_it() -> None:
    openai = pytest.importorskip("openai", reason=WHY)
    body = our_body("openai", asked("gpt-5.5-pro"))
    (item,) = [
        i for i in body["input"] if i.get("call_id") == "call_1" and "output" in i
    ]
    kinds = openai.types.responses.response_input_param
    adapter: TypeAdapter[Any] = TypeAdapter(kinds.FunctionCallOutput)
    read = adapter.validate_python(item, extra="forbid")
    drain(read)
    assert [part["type"] for part in item["output"]] == ["input_text", "input_image"]


@pytest.mark.judge("gemini")
def test_googles_types_take_it() -> None:
    types = pytest.importorskip("google.genai.types", reason=WHY)
    body = our_body("gemini", asked("gemini-3.5-flash"))
    read = types.Content.model_validate(body["contents"][-1])
    (part,) = read.parts[0].function_response.parts
    assert part.inline_data.data == base64.b64decode(PICTURE.data)
    assert part.inline_data.mime_type == "image/png"


@pytest.mark.judge("bedrock")
def test_amazons_model_of_the_service_takes_it() -> None:
    session = pytest.importorskip("botocore.session", reason=WHY)
    validate = pytest.importorskip("botocore.validate", reason=WHY)
    body = our_body("bedrock", asked("anthropic.claude-sonnet-5-5"))
    result = body["messages"][-1]["content"][0]["toolResult"]
    result["content"][1]["image"]["source"]["bytes"] = b"bytes"
    service = session.get_session().get_service_model("bedrock-runtime")
    shape = service.shape_for("ToolResultBlock")
    report = validate.ParamValidator().validate(result, shape)
    assert not report.has_errors(), report.generate_report()
