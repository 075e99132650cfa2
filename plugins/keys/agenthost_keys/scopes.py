"""What the scopes of a key mean: one table, from a scope to the rights of routes.

A right that no scope names is left to ``admin``: what comes later is closed until
somebody has decided about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from agenthost import Grants

Scope = Literal["read", "chat", "operate", "admin"]

READ = ("*:read", "keys:own")
CHAT = (
    *READ,
    "agents:message",
    "files:write",
    "mcp:use",
    "sessions:write",
    "workflows:run",
)
OPERATE = (
    *CHAT,
    "agents:write",
    "approvals:write",
    "audit:inspect",
    "desktop:invoke",
    "desktop:operate",
    "events:write",
    "mcp:write",
    "memory:write",
    "models:use",
    "occasions:write",
    "providers:test",
    "schedules:run",
    "schedules:write",
    "triggers:write",
    "workflows:write",
)

ROUTES: Mapping[Scope, tuple[str, ...]] = {
    "read": READ,
    "chat": CHAT,
    "operate": OPERATE,
    "admin": ("*",),
}
"""The rights of routes by scope, each with those of the scopes before it."""

ANY_AGENT: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    (
        "tool",
        "network",
        "memory_read",
        "memory_write",
        "agent_message",
        "agent_spawn",
    ),
    ("*",),
)
"""Who makes agents may give them whatever an agent can have."""


def grants_of(scopes: Iterable[Scope]) -> Grants | None:
    """The rights of a key; None, which is every right, for ``admin``."""
    given = set(scopes)
    if "admin" in given:
        return None
    routes = sorted({pattern for scope in given for pattern in ROUTES[scope]})
    others = ANY_AGENT if "operate" in given else {}
    return Grants({"route": tuple(routes), **others})


def may_hand_out(holder: Grants | None, scopes: Iterable[Scope]) -> bool:
    """Tell whether somebody with these grants may give them to another key."""
    if holder is None:
        return True
    wanted = grants_of(scopes)
    # Pattern by pattern as they are written: a glob that covers another one may be
    # refused, one that does not is never let through.
    return wanted is not None and all(
        set(patterns) <= set(holder.patterns.get(action, ()))
        for action, patterns in wanted.patterns.items()
    )
