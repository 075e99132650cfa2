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
