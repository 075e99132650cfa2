"""A daemon with a key, a clock moved by hand, and named keys made over its API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.daemons import RunningDaemon

MASTER = "master-key-0123456789"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@dataclass
class Made:
    """A named key as its maker got it."""

    daemon: RunningDaemon
    id: str
    name: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return bearer(self.key)

    async def get(self, path: str) -> httpx.Response:
        return await self.daemon.http.get(path, headers=self.headers)

    async def post(self, path: str, body: object = None) -> httpx.Response:
        return await self.daemon.http.post(path, json=body, headers=self.headers)

    async def revoke(self, by: str = MASTER) -> httpx.Response:
        path = f"/api/keys/{self.id}"
        return await self.daemon.http.delete(path, headers=bearer(by))


Make = Callable[..., Awaitable[Made]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def locked(daemons: Daemons, clock: ManualClock) -> RunningDaemon:
    """A daemon with ``api_key``; its client shows it unless told otherwise."""
    running = await daemons.start(config=f'api_key = "{MASTER}"\n', clock=clock)
    running.http.headers.update(bearer(MASTER))
    return running


async def made(daemon: RunningDaemon, name: str, *scopes: str, **more: Any) -> Made:
    body = {"name": name, "scopes": scopes, **more}
    answer = await daemon.http.post("/api/keys", json=body)
    assert answer.status_code == 201, answer.text
    return Made(daemon, **answer.json())


@pytest.fixture
def make(locked: RunningDaemon) -> Make:
    """Make named keys at the locked daemon."""

    async def one(name: str, *scopes: str, **more: Any) -> Made:
        return await made(locked, name, *scopes, **more)

    return one
