"""``GET /api/logs``: the newest lines of the log, and those to come."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Literal

from agenthost import (
    Answer,
    Call,
    EventStream,
    Host,
    RouteGroup,
    ServiceSpec,
    Unavailable,
)
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from .log_ring import LogRing

LONGEST_ID = 16
LAST_ID = {"Last-Event-ID": "The last line that the reader has"}


class LogQuery(BaseModel, defer_build=True):
    """``GET /api/logs``."""

    follow: bool = Field(default=False, description="Whether lines to come are told")
    level: Literal["debug", "info", "warning", "error"] = Field(
        "debug", description="The least that is told, of what is logged"
    )


class LogLine(TypedDict):
    """A line; which ids it has, and a traceback, depends on it."""

    time: str
    level: str
    logger: str
    message: str


class LogEvents(TypedDict):
    """The events of the log."""

    log: LogLine


routes = RouteGroup("logs")


@routes.get(
    "/api/logs",
    scope="logs:inspect",
    query=LogQuery,
    answer=EventStream,
    events=LogEvents,
    headers=LAST_ID,
)
async def read_logs(call: Call, query: LogQuery) -> Answer:
    """Read the newest thousand lines of the log, and what comes; no secrets."""
    known = call.headers.get("last-event-id", "")
    after = int(known) if known.isdecimal() and len(known) < LONGEST_ID else 0
    level = logging.getLevelNamesMapping()[query.level.upper()]
    ring = _ring_of(call.host)
    return EventStream(_frames(ring, after, level, follow=query.follow))


def _ring_of(host: Host) -> LogRing:
    """Find what keeps the lines of a daemon.

    Raises:
        Unavailable: Its plugin has failed.
    """
    for _, service in host.registry.offered(ServiceSpec):
        ring = getattr(service.start, "__self__", None)
        if isinstance(ring, LogRing):
            return ring
    raise Unavailable("the log is not kept: the plugin cli has failed")


async def _frames(
    ring: LogRing, after: int, level: int, *, follow: bool
) -> AsyncGenerator[bytes, None]:
    async for number, text in ring.lines(after, level, follow=follow):
        yield f"id: {number}\nevent: log\ndata: {text}\n\n".encode()
