"""What reaches Anthropic through ``/v1/messages`` is what its client would send."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost.testing.daemons import RunningDaemon

from ...judges.test_passthrough import (
    CLAUDE,
    MARKED,
    PARAMETERS,
    PICTURE,
    Upstream,
    aimock,
    anthropic,
    daemon,
    differences,
    pytestmark,
    upstream,
)

__all__ = ["aimock", "daemon", "pytestmark", "upstream"]

HELLO = {"role": "user", "content": "hello"}
PDF = "JVBERi0xLjcgeA=="
TOOL = {"name": "weather", "description": "Tell.", "input_schema": PARAMETERS}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "x"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [*blocks]}]}


def source(kind: str, data: str) -> dict[str, str]:
    return {"type": "base64", "media_type": kind, "data": data}


SEE = {"type": "text", "text": "see"}
UNTHINKING = {"thinking": "said aloud, since who thinks cannot be made to call"}
ASKED: dict[str, dict[str, Any]] = {
    "plain": {"messages": [HELLO]},
    "stream": {"messages": [HELLO], "stream": True},
    "system": {"messages": [HELLO], "system": "Be brief."},
    "system blocks": {
        "messages": [HELLO],
        "system": [{"type": "text", "text": "Be brief."}],
    },
    "image": said(SEE, {"type": "image", "source": source("image/png", PICTURE)}),
    "document": said(
        SEE, {"type": "document", "source": source("application/pdf", PDF)}
    ),
    "own marks": said({**SEE, "cache_control": {"type": "ephemeral"}}),
    "tools": {"messages": [HELLO], "tools": [TOOL]},
    **{
        f"choice {kind}": {
            "messages": [HELLO],
            "tools": [TOOL],
            "tool_choice": {"type": kind},
        }
        for kind in ("auto", "any", "none")
    },
    "named tool": {
        "messages": [HELLO],
        "tools": [TOOL],
        "tool_choice": {
            "type": "tool",
            "name": "weather",
            "disable_parallel_tool_use": True,
        },
    },
    "result": {
        "messages": [
            HELLO,
            {"role": "assistant", "content": [{"type": "text", "text": "I see"}, USE]},
            {"role": "user", "content": [{**RESULT, "is_error": True}]},
        ],
        "tools": [TOOL],
    },
    "thinking": {
        "messages": [HELLO],
        "max_tokens": 4_000,
        "thinking": {"type": "enabled", "budget_tokens": 2_000},
    },
    "display": {
        "messages": [HELLO],
        "max_tokens": 4_000,
        "thinking": {
            "type": "enabled",
            "budget_tokens": 2_000,
            "display": "omitted",
        },
    },
    "signed thoughts": {
        "messages": [
            HELLO,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2lnbg=="},
                    {"type": "redacted_thinking", "data": "c2VhbA=="},
                    USE,
                ],
            },
            {"role": "user", "content": [RESULT]},
        ],
        "max_tokens": 4_000,
        "thinking": {"type": "enabled", "budget_tokens": 2_000},
        "tools": [TOOL],
    },
    "citations": said(
        SEE,
        {
            "type": "document",
            "source": source("application/pdf", PDF),
            "title": "A report",
            "citations": {"enabled": True},
        },
    ),
    "settings": {
        "messages": [HELLO],
        "stop_sequences": ["x"],
        "metadata": {"user_id": "u"},
        "extra_body": {"top_k": 5, "temperature": 0.25},
    },
    "tier": {"messages": [HELLO], "service_tier": "standard_only"},
}
WORDS = {"messages.0.content": MARKED}
TOOLS = {**WORDS, "tools.0.cache_control": MARKED}
SECOND = {"messages.0.content.1.cache_control": MARKED}
DIFFERENCES: dict[str, dict[str, str]] = {
    "plain": WORDS,
    "stream": WORDS,
    "system": {**WORDS, "system": MARKED},
    "system blocks": {**WORDS, "system.0.cache_control": MARKED},
    "image": SECOND,
    "document": {
        **SECOND,
        "messages.0.content.1.title": "a file has a name here, if only `document`",
    },
    "tools": TOOLS,
    "choice auto": TOOLS,
    "choice any": {**TOOLS, **UNTHINKING},
    "choice none": TOOLS,
    "named tool": {**TOOLS, **UNTHINKING},
    "result": {
        **TOOLS,
        "messages.2.content.0.cache_control": MARKED,
    },
    "thinking": WORDS,
    "display": WORDS,
    "signed thoughts": {
        **TOOLS,
        "messages.2.content.0.cache_control": MARKED,
    },
    "citations": SECOND,
    "settings": WORDS,
    "tier": WORDS,
}
"""By case, then by place in the body: why it is not the same."""


@pytest.mark.parametrize("case", ASKED)
async def test_anthropic_is_sent_what_its_client_sends(
    upstream: Upstream,
    daemon: RunningDaemon,
    case: str,
) -> None:
    asked = {"max_tokens": 9, **ASKED[case]}
    for url, model in ((upstream.url, CLAUDE), (daemon.url, f"anthropic/{CLAUDE}")):
        async with anthropic.AsyncAnthropic(
            base_url=url, api_key="x", max_retries=0
        ) as client:
            answer = await client.messages.create(model=model, timeout=30, **asked)
            if asked.get("stream"):
                async for _ in answer:
                    pass
    direct, ours = upstream.sent
    found = sorted(differences(direct, ours))
    assert found == sorted(DIFFERENCES.get(case, {})), (direct, ours)
