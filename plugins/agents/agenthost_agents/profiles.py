"""``/api/profiles``: the presets of tools that a manifest's ``profile`` names."""

from __future__ import annotations

from agenthost import Answer, Call, RouteGroup
from typing_extensions import TypedDict

from .facts import PROFILES, TOLD

routes = RouteGroup("profiles")


class ProfileRow(TypedDict):
    """A profile, and the tools that it stands for."""

    name: str
    tier: str
    description: str
    tools: list[str]


class ProfileList(TypedDict):
    """``GET /api/profiles``."""

    profiles: list[ProfileRow]


@routes.get("/api/profiles", scope="agents:read", answer=ProfileList)
async def list_profiles(_: Call) -> Answer:
    """List the profiles that a manifest may name."""
    rows = [{"name": name, **TOLD[name], "tools": PROFILES[name]} for name in PROFILES]
    return {"profiles": rows}
