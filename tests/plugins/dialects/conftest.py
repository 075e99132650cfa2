"""A conversation that uses everything a dialect can carry."""

from __future__ import annotations

import pytest
from agenthost import (
    ChatRequest,
    Image,
    Message,
    Reasoning,
    Role,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)

MODEL = "claude-haiku-4-5-20251001"
BY = {"provider": "acme", "model": MODEL}
SIGNED = Reasoning("hm", {"anthropic-messages": {"signature": "c2ln", **BY}})
REDACTED = Reasoning("", {"anthropic-messages": {"data": "ZGF0YQ==", **BY}})


@pytest.fixture
def conversation() -> ChatRequest:
    """Two turns: an old one, and a tool loop with two calls of one step."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    return ChatRequest(
        model=MODEL,
        system="Be brief.",
        messages=(
            Message(Role.USER, (Text("hello"),)),
            Message(Role.ASSISTANT, (Reasoning("greet"), Text("hi"))),
            Message(Role.USER, (Text("where?"), Image("image/png", "iVBORw0="))),
            Message(
                Role.ASSISTANT,
                (
                    SIGNED,
                    REDACTED,
                    Text("let me see"),
                    ToolUse("a1", "look", {"city": "Évora"}),
                    ToolUse("b:2", "look", {}),
                ),
            ),
            Message(
                Role.TOOL,
                (
                    ToolOutput("a1", "look", "white walls"),
                    ToolOutput("b:2", "look", "no city", is_error=True),
                ),
            ),
        ),
        tools=(ToolDefinition("look", "Look at it.", schema),),
        max_tokens=2000,
        temperature=0.5,
    )
