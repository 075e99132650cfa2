"""Where in a document words of a model itself come from, as its vendor says it."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost.testing.daemons import Daemons, RunningDaemon

from .asking import answered, ask, events_of, user
from .vendor import MODEL, vendor_and_daemon

PDF: dict[str, Any] = {
    "type": "document",
    "source": {
        "type": "base64",
        "media_type": "application/pdf",
        "data": "JVBERi0xLjcgeA==",
    },
    "title": "A report",
    "citations": {"enabled": True},
}
ASK = {"type": "text", "text": "Which colour?"}
PAGE = {
    "type": "page_location",
    "cited_text": "It is green.",
    "document_index": 0,
    "document_title": "A report",
    "start_page_number": 1,
    "end_page_number": 2,
}
PLAIN = {"type": "text", "text": "It says: "}
CITED = {"type": "text", "text": "green", "citations": [PAGE, PAGE]}
MORE = {"type": "text", "text": " and blue", "citations": [PAGE]}
SAID: list[dict[str, Any]] = [PLAIN, CITED, MORE]


def joined(events: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Put the blocks of a stream together, as clients do."""
    blocks: list[dict[str, Any]] = []
    for name, event in events:
        if name == "content_block_start":
            blocks.append(dict(event["content_block"]))
        if name == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            if delta["type"] == "text_delta":
                block["text"] += delta["text"]
            else:
                block.setdefault("citations", []).append(delta["citation"])
    return blocks


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("key", [{}, {"idempotency-key": "k"}])
async def test_a_document_is_cited(
    daemons: Daemons, key: dict[str, str], *, stream: bool
) -> None:
    async with vendor_and_daemon(daemons) as (vendor, daemon):
        vendor.blocks = SAID
        daemon.http.headers.update(key)
        asked = {"model": MODEL, **user(PDF, ASK)}
        for _ in range(2):
            if stream:
                assert joined(await events_of(daemon, **asked)) == SAID
            else:
                assert (await answered(daemon, **asked))["content"] == SAID
        assert len(vendor.sent) == (1 if key else 2)
        document = vendor.sent[0]["messages"][0]["content"][0]
        assert document == PDF
        assert "cites" not in vendor.sent[0]


async def test_nothing_is_cited_unasked(daemons: Daemons) -> None:
    async with vendor_and_daemon(daemons) as (vendor, daemon):
        vendor.blocks = SAID
        plain = {name: value for name, value in PDF.items() if name != "citations"}
        await answered(daemon, model=MODEL, **user(plain, ASK))
        assert vendor.sent[0]["messages"][0]["content"][0] == plain


async def test_what_cannot_be_cited_is_refused(daemons: Daemons) -> None:
    text = {**PDF, "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
    async with vendor_and_daemon(daemons) as (vendor, daemon):
        for blocks in ((text,), (PDF, {**PDF, "citations": {"enabled": False}})):
            answer = await ask(daemon, model=MODEL, **user(*blocks, ASK))
            assert answer.status_code == 400
            assert ".citations" in answer.text
        assert vendor.sent == []


async def test_an_agent_passes_it_over(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    content = (await answered(daemon, **user(PDF, ASK)))["content"]
    assert [set(block) for block in content] == [{"type", "text"}]
