"""A tool loop with signed thoughts, as Anthropic's client goes through it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agenthost.testing.daemons import Daemons

from ..asking import WEATHER, results
from ..test_thoughts import SAID, SEALED, SIGNED, USE
from ..vendor import MODEL, vendor_and_daemon

anthropic = pytest.importorskip("anthropic", reason="needs agenthost[judges]")
pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("stream", [False, True])
async def test_what_the_client_sends_back_is_what_the_vendor_said(
    daemons: Daemons, *, stream: bool
) -> None:
    async with vendor_and_daemon(daemons) as (vendor, daemon):
        vendor.blocks = [SIGNED, SEALED, SAID, USE]
        asked: dict[str, Any] = {
            "model": MODEL,
            "max_tokens": 4_000,
            "thinking": {"type": "enabled", "budget_tokens": 2_000},
            "tools": [WEATHER],
            "messages": [{"role": "user", "content": "hello"}],
        }
        url = str(daemon.http.base_url)
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x") as client:
            if stream:
                async with client.messages.stream(**asked) as told:
                    answer = await told.get_final_message()
            else:
                answer = await client.messages.create(**asked)
            content = [json.loads(each.to_json()) for each in answer.content]
            asked["messages"] = results(content, content="sunny")
            await client.messages.create(**asked)
        (handed,) = [m for m in vendor.sent[-1]["messages"] if m["role"] == "assistant"]
        assert handed["content"] == [SIGNED, SEALED, SAID, USE]
