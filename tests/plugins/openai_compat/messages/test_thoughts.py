"""Thoughts that their vendor has signed or sealed come and go as they are."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost.testing.daemons import Daemons

from .asking import WEATHER, answered, events_of, results
from .vendor import MODEL, vendor_and_daemon

SIGNED = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk=="}
SEALED = {"type": "redacted_thinking", "data": "c2VhbGVk"}
SAID = {"type": "text", "text": "I look."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "x"}}
THINK: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 4_000,
    "thinking": {"type": "enabled", "budget_tokens": 2_000},
    "tools": [WEATHER],
}


def joined(events: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Put the blocks of a stream together, as clients do."""
    blocks: list[dict[str, Any]] = []
    for name, event in events:
        if name == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append(dict(event["content_block"]))
        if name == "content_block_delta":
            delta = event["delta"]
            kind = {"thinking_delta": "thinking", "signature_delta": "signature"}
            part = kind.get(delta["type"], "text")
            if part in delta:
                blocks[event["index"]][part] += delta[part]
    return blocks


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("again", [False, True])
async def test_they_come_back_and_are_handed_on_unchanged(
    daemons: Daemons, *, stream: bool, again: bool
) -> None:
    async with vendor_and_daemon(daemons) as (vendor, daemon):
        vendor.blocks = [SIGNED, SEALED, SAID, USE]
        if again:
            daemon.http.headers["idempotency-key"] = "k"
            await answered(daemon, **THINK)
        if stream and not again:
            content = joined(await events_of(daemon, **THINK))
            content[-1]["input"] = USE["input"]
        else:
            content = (await answered(daemon, **THINK))["content"]
        assert content == [SIGNED, SEALED, SAID, USE]
        daemon.http.headers.pop("idempotency-key", None)
        vendor.blocks = [SAID]
        await answered(daemon, **THINK, messages=results(content, content="sunny"))
        (handed,) = [m for m in vendor.sent[-1]["messages"] if m["role"] == "assistant"]
        assert handed["content"] == [SIGNED, SEALED, SAID, USE]
        assert vendor.sent[-1]["thinking"] == THINK["thinking"]


@pytest.mark.parametrize("stream", [False, True])
async def test_thoughts_that_are_omitted_keep_their_signature(
    daemons: Daemons, *, stream: bool
) -> None:
    async with vendor_and_daemon(daemons) as (vendor, daemon):
        omitted = {**SIGNED, "thinking": ""}
        vendor.blocks = [omitted, SAID]
        asked = {**THINK, "thinking": {**THINK["thinking"], "display": "omitted"}}
        if stream:
            content = joined(await events_of(daemon, **asked))
        else:
            content = (await answered(daemon, **asked))["content"]
        assert content == [omitted, SAID]
        assert vendor.sent[-1]["thinking"] == asked["thinking"]
