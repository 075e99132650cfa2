"""The groups of ``/v1`` keep every promise of route groups."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agenthost.testing import RoutesContract, RunningDaemon, Sample

from .test_chat import HELLO

ASKED = {"model": "ada", "messages": HELLO}


@pytest.mark.conformance
class TestTheRoutesOfChat(RoutesContract):
    """``/v1/chat/completions``."""

    plugin = "plugin:openai_compat"
    group = "openai_chat"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """An answer, and the same as a stream."""
        await daemon.agent("ada")
        route = "POST /v1/chat/completions"
        return (Sample(route, ASKED), Sample(route, {**ASKED, "stream": True}))


@pytest.mark.conformance
class TestTheRoutesOfModels(RoutesContract):
    """``/v1/models``."""

    plugin = "plugin:openai_compat"
    group = "openai_models"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """All agents, and one."""
        await daemon.agent("ada")
        return (
            Sample("GET /v1/models"),
            Sample("GET /v1/models/<path:model_id>", path={"model_id": "service:ada"}),
        )


@pytest.mark.conformance
class TestTheRoutesOfEmbeddings(RoutesContract):
    """``/v1/embeddings``."""

    plugin = "plugin:openai_compat"
    group = "openai_embeddings"
    requests = (
        Sample("POST /v1/embeddings", {"model": "default", "input": ["a", "b"]}),
    )


@pytest.mark.conformance
class TestTheRoutesOfResponses(RoutesContract):
    """``/v1/responses``."""

    plugin = "plugin:openai_compat"
    group = "openai_responses"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """One that is made, read and deleted, and one in the background."""
        await daemon.agent("ada")
        asked = {"model": "ada", "input": "hello"}
        known = []
        for more in ({}, {"background": True}):
            made = await daemon.http.post("/v1/responses", json={**asked, **more})
            known.append({"response_id": made.json()["id"]})
        one = "/v1/responses/<response_id>"
        return (
            Sample("POST /v1/responses", asked),
            Sample("POST /v1/responses", {**asked, "stream": True}),
            Sample("POST /v1/responses", {**asked, "background": True}),
            Sample(f"GET {one}", path=known[0]),
            Sample(f"GET {one}/input_items", path=known[0], query={"limit": "1"}),
            Sample(f"POST {one}/cancel", path=known[1]),
            Sample(f"DELETE {one}", path=known[0]),
        )


@pytest.mark.conformance
class TestTheRoutesOfMessages(RoutesContract):
    """``/v1/messages``."""

    plugin = "plugin:openai_compat"
    group = "anthropic_messages"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """An answer, the same as a stream, and a count."""
        await daemon.agent("ada")
        route, asked = "POST /v1/messages", {**ASKED, "max_tokens": 100}
        return (
            Sample(route, asked),
            Sample(route, {**asked, "stream": True}),
            Sample("POST /v1/messages/count_tokens", ASKED),
        )
