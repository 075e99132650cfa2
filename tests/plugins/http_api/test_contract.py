"""Groups of the native surface keep every promise of route groups."""

from __future__ import annotations

from collections.abc import Sequence

from agenthost.testing import RoutesContract, RunningDaemon, Sample

PAIR = "/api/memory/agents/<agent_id>/kv/<path:key>"


class TestTheRoutesOfMemory(RoutesContract):
    """``/api/memory``."""

    plugin = "plugin:http_api"
    group = "memory"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """A pair is set, read, listed and forgotten."""
        agent = {"agent_id": (await daemon.agent()).id}
        pair = {**agent, "key": "a key"}
        return (
            Sample(
                "GET /api/memory/search",
                query={"agent": agent["agent_id"], "q": "blue"},
            ),
            Sample(f"PUT {PAIR}", {"value": {"any": ["JSON"]}}, pair),
            Sample(f"GET {PAIR}", path=pair),
            Sample("GET /api/memory/agents/<agent_id>/kv", path=agent),
            Sample(f"DELETE {PAIR}", path=pair),
        )


class TestTheRoutesOfTheCatalogue(RoutesContract):
    """``/api/models``."""

    plugin = "plugin:http_api"
    group = "catalogue"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """All models, all aliases, one of each."""
        listed = (await daemon.http.get("/api/models")).json()["models"]
        return (
            Sample("GET /api/models", query={"provider": "groq"}),
            Sample("GET /api/models/aliases"),
            Sample(
                "GET /api/models/<path:model_id>", path={"model_id": listed[0]["id"]}
            ),
        )
