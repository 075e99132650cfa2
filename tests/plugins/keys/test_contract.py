"""The routes of keys and persons keep every promise of route groups."""

from __future__ import annotations

from collections.abc import Sequence

from agenthost.testing import RoutesContract, RunningDaemon, Sample

from .conftest import made

LINKS = "/api/persons/<person_id>/links"


class TestTheRoutesOfKeys(RoutesContract):
    """``/api/keys``."""

    plugin = "plugin:keys"
    group = "keys.keys"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """Make one, list it, revoke it."""
        old = await made(daemon, "old", "read")
        return (
            Sample("POST /api/keys", {"name": "new", "scopes": ["read"]}),
            Sample("GET /api/keys"),
            Sample("DELETE /api/keys/<key_id>", path={"key_id": old.id}),
        )


class TestTheRoutesOfPersons(RoutesContract):
    """``/api/persons``."""

    plugin = "plugin:keys"
    group = "keys.persons"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """Make one, list it, change it, and another goes."""
        answer = await daemon.http.post("/api/persons", json={"name": "Ada"})
        person = {"person_id": answer.json()["id"]}
        link = person | {"kind": "telegram", "external": "42"}
        return (
            Sample("POST /api/persons", {"name": "Grace"}),
            Sample("GET /api/persons"),
            Sample("GET /api/persons/<person_id>", path=person),
            Sample("PATCH /api/persons/<person_id>", {"name": "Ada L."}, person),
            Sample(f"PUT {LINKS}/<kind>/<path:external>", path=link),
            Sample(f"GET {LINKS}", path=person),
            Sample(f"DELETE {LINKS}/<kind>/<path:external>", path=link),
            Sample("DELETE /api/persons/<person_id>", path=person),
        )
