"""Citations of a document, as Anthropic's client reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agenthost.testing.daemons import Daemons

from ..asking import user
from ..test_citations import ASK, PDF, SAID
from ..vendor import MODEL, vendor_and_daemon

anthropic = pytest.importorskip("anthropic", reason="needs agenthost[judges]")
pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("stream", [False, True])
async def test_the_client_reads_what_the_vendor_has_cited(
    daemons: Daemons, *, stream: bool
) -> None:
    async with vendor_and_daemon(daemons) as (vendor, daemon):
        vendor.blocks = SAID
        asked: dict[str, Any] = {"model": MODEL, "max_tokens": 99, **user(PDF, ASK)}
        url = str(daemon.http.base_url)
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x") as client:
            if stream:
                async with client.messages.stream(**asked) as told:
                    answer = await told.get_final_message()
            else:
                answer = await client.messages.create(**asked)
        content = [json.loads(each.to_json()) for each in answer.content]
        for block in content:
            if block.get("citations", 0) is None:
                del block["citations"]
        assert content == SAID
