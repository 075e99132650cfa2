"""Headers that keep browsers from harm on every answer, and pages of others out.

What sets and checks them is the front. This proves it on a front of its own: each kind
of answer that needs no application behind the layer has all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from uuid import UUID

from agenthost import (
    Answer,
    Call,
    FrontBackend,
    RouteGroup,
    Secret,
    SecuritySystem,
    hookimpl,
)

from .probe import Answered, OpenFront, Probe

EXACT = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "strict-transport-security": "max-age=63072000; includeSubDomains",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
PATH = "/api/probe"
KEY = "a-key-of-the-probe"
RIGHT = {"authorization": f"Bearer {KEY}"}
OURS = {**RIGHT, "origin": "http://localhost"}
ELSEWHERE = "evil.example"
FOREIGN = {**RIGHT, "origin": f"https://{ELSEWHERE}"}


def missing(headers: Mapping[str, str]) -> list[str]:
    """Name the headers of an answer that are not as they must be."""
    wrong = [name for name, value in EXACT.items() if headers.get(name) != value]
    policy = headers.get("content-security-policy", "")
    if not policy.startswith("default-src 'self';") or "unsafe-" in policy:
        wrong.append("content-security-policy")
    if "camera=()" not in headers.get("permissions-policy", ""):
        wrong.append("permissions-policy")
    if "server" in headers:
        wrong.append("server")
    try:
        UUID(headers.get("x-request-id", ""))
    except ValueError:
        wrong.append("x-request-id")
    return wrong


def self_test(open_front: OpenFront) -> None:
    """See every kind of answer with its headers, and pages of others refused.

    Args:
        open_front: Opens the backend that serves the daemon.

    Raises:
        RuntimeError: A header was missing, or somebody was let in.
    """
    asyncio.run(_prove(open_front))


async def _prove(open_front: OpenFront) -> None:
    group = RouteGroup("probe")

    @group.get(PATH, scope="probe:read", direct=True)
    async def found(_: Call) -> Answer:
        """Answer."""
        return {}

    @group.post(PATH, scope="probe:write", direct=True)
    async def changed(_: Call) -> Answer:
        """Answer."""
        return {}

    probe = Probe(open_front, group, Secret(KEY))
    _check(200, await probe.ask(PATH, RIGHT))
    _check(200, await probe.ask(PATH, OURS, "POST"))
    _check(401, await probe.ask(PATH))
    _check(403, await probe.ask(PATH, {**RIGHT, "host": ELSEWHERE}))
    _check(403, await probe.ask(PATH, FOREIGN, "POST"))
    _check(403, await probe.ask(PATH, FOREIGN, socket=True))
    _check(404, await probe.ask(PATH, RIGHT, socket=True))
    _check(400, await probe.ask("*", RIGHT, "OPTIONS"))
    _check(413, await probe.ask(PATH, {**RIGHT, "content-length": f"{10**12}"}, "POST"))


def _check(status: int, answered: Answered) -> None:
    if answered.status != status:
        raise RuntimeError(f"an answer was {answered.status} instead of {status}")
    wrong = missing(answered.headers)
    if answered.headers.get("cache-control") != "no-store" and status != 400:
        wrong.append("cache-control")
    if wrong:
        raise RuntimeError(f"an answer {status} was without a proper {wrong[0]}")


@hookimpl
def security_system() -> SecuritySystem:
    """Offer the headers, and the checks of host and origin."""
    return SecuritySystem("security_headers", {}, self_test, proves_on=FrontBackend)
