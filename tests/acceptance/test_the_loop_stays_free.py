"""Nothing that a daemon is asked for, the first time too, holds up everybody else."""

from __future__ import annotations

import asyncio
import time

from agenthost import EventStream
from agenthost.testing import RunningDaemon
from agenthost.testing.routes import route_groups

LONGEST = 0.15
"""Seconds of the loop's own CPU in one go: what else a machine does is not counted."""


class Looks:
    """Looks at the CPU time of the loop's thread each time that it comes round."""

    def __init__(self) -> None:
        self._before = time.thread_time()
        self._longest = 0.0
        self._next = asyncio.get_running_loop().call_soon(self._look)

    def end(self) -> float:
        """Give the longest time between two looks."""
        self._next.cancel()
        return self._longest

    def _look(self) -> None:
        now = time.thread_time()
        self._longest = max(self._longest, now - self._before)
        self._before = now
        self._next = asyncio.get_running_loop().call_soon(self._look)


def documents(daemon: RunningDaemon) -> list[str]:
    """Give the paths that are read as they stand, and do not stream."""
    found = [
        route.path
        for _, group in route_groups(daemon)
        for route in group.routes
        if route.method == "GET" and "<" not in route.path
        if route.answer is not EventStream
    ]
    return ["/openapi.json", *found]


async def test_the_first_request_of_no_document_holds_the_loop(
    daemon: RunningDaemon,
) -> None:
    held: dict[str, float] = {}
    for path in documents(daemon):
        looks = Looks()
        answer = await daemon.http.get(path)
        held[path] = looks.end()
        assert answer.status_code < 500, path
    assert len(held) > 40
    assert not {path: took for path, took in held.items() if took > LONGEST}
