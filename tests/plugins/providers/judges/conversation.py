"""One conversation for all judges, and what our side makes of it."""

from __future__ import annotations

import json
from typing import Any

from agenthost import (
    ChatRequest,
    Endpoint,
    Finish,
    Image,
    Message,
    Reasoning,
    Role,
    Secret,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
    Usage,
)
from agenthost.providers import Driver
from agenthost.testing.installed import provider_of
from agenthost.testing.simulators import ScriptedCall, Turn
from agenthost_models.names import unlisted

WHY = "pip install 'agenthost[judges]' to let the vendors' clients judge"
KEY = "sk-x"

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
JSON = {"Content-Type": "application/json"}
CALL = ScriptedCall("get_weather", '{"city": "Lisbon"}', "call_7")
SAID = Turn(
    "Let me look.",
    "Which city?",
    calls=(CALL,),
    finish=Finish.TOOL_USE,
    usage=Usage(100, 30, cached_tokens=40, reasoning_tokens=12),
)
BROKEN_OFF = Turn("partly", finish=Finish.LENGTH)


def ours(model: str, *, stream: bool) -> ChatRequest:
    """Two turns, an image, two calls of one step with their results, a tool."""
    own = {"provider": "anthropic", "model": model, "signature": "c2ln"}
    thought = Reasoning("hm", {"anthropic-messages": own})
    uses = (
        ToolUse("call_1", "get_weather", {"city": "Lisbon"}),
        ToolUse("call_2", "get_weather", {"city": "Porto"}),
    )
    outputs = (
        ToolOutput("call_1", "get_weather", "20 degrees"),
        ToolOutput("call_2", "get_weather", "no such city", is_error=True),
    )
    return ChatRequest(
        model=model,
        system="Be brief.",
        messages=(
            Message(Role.USER, (Text("hello"),)),
            Message(Role.ASSISTANT, (Text("hi"),)),
            Message(Role.USER, (Text("where?"), Image("image/png", "iVBORw0="))),
            Message(Role.ASSISTANT, (thought, Text("I look."), *uses)),
            Message(Role.TOOL, outputs),
        ),
        tools=(ToolDefinition("get_weather", "Tell the weather.", SCHEMA),),
        max_tokens=2000,
        temperature=0.5,
        stream=stream,
    )


def our_body(slug: str, asked: ChatRequest) -> dict[str, Any]:
    """Write the request of one of our providers."""
    spec = provider_of(slug)
    spoken = spec.spoken_to(asked.model)
    assert not isinstance(spoken, Driver)
    rows = (row for row in spec.facts.models if row.upstream_id == asked.model)
    row = next(rows, None) or unlisted(spec, asked.model)
    where = Endpoint(slug, "http://here/v1", Secret(KEY), row)
    body: dict[str, Any] = json.loads(spoken.encode(asked, where).body)
    return body


def chat_messages() -> list[dict[str, Any]]:
    """The conversation as OpenAI's documentation writes it."""

    def call(call_id: str, city: str) -> dict[str, Any]:
        arguments = json.dumps({"city": city}, separators=(",", ":"))
        function = {"name": "get_weather", "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}

    calls = [call("call_1", "Lisbon"), call("call_2", "Porto")]
    url = {"url": "data:image/png;base64,iVBORw0="}
    picture = {"type": "image_url", "image_url": url}
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "where?"}, picture]},
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": "20 degrees"},
        {"role": "tool", "tool_call_id": "call_2", "content": "no such city"},
    ]


def chat_tools() -> list[dict[str, Any]]:
    """The tool as OpenAI's documentation writes it."""
    function = {
        "name": "get_weather",
        "description": "Tell the weather.",
        "parameters": SCHEMA,
    }
    return [{"type": "function", "function": function}]
