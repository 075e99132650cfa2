"""A program that calls the webhook, and hears what it is answered."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Self

import httpx
from agenthost import ServiceSpec
from agenthost.testing import RunningDaemon
from agenthost_channels.bridge.bridge import ChannelService
from agenthost_channels.webhook.signing import signed, verified
from aiohttp import web

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
ENVIRON = {"WEBHOOK_SECRET": SECRET}
KEY = "a key of the operator"
PATH = "/channels/webhook/in"
CALL = {"conversation": "desk", "sender": "ada", "text": "hello"}
JSON = {"content-type": "application/json"}


class Program:
    """Listens on a loopback port; what is not signed it would not believe."""

    def __init__(self) -> None:
        self.heard: list[dict[str, str]] = []
        self.url = ""
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/hook", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def config(self) -> str:
        """What the daemon's configuration says of it."""
        return (
            f'api_key = "{KEY}"\n[channels.webhook]\nagent = "helper"\n'
            f'allow_from = ["ada"]\nallowed_hosts = ["127.0.0.1"]\nurl = "{self.url}"\n'
        )

    async def until(self, count: int) -> list[str]:
        """Wait for so many answers."""
        async with asyncio.timeout(60):
            while len(self.heard) < count:
                self._changed.clear()
                await self._changed.wait()
        return [each["text"] for each in self.heard]

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        verified(SECRET, headers, body, time.time())
        self.heard.append(json.loads(body))
        self._changed.set()
        return web.Response(status=204)


async def opened(running: RunningDaemon, channel: str = "webhook") -> None:
    """Wait until the channel is connected: channels begin behind the start."""
    offered = running.daemon.registry.offered(ServiceSpec)
    [bridge] = [each.bridge for _, each in offered if isinstance(each, ChannelService)]
    # Not by a route: that would use up what an address may ask.
    async with asyncio.timeout(60):
        while not (standing := bridge.standing(channel))[0]:
            assert not standing[1], standing
            await asyncio.sleep(0.005)


def bearer() -> dict[str, str]:
    """Show the operator's key."""
    return {"authorization": f"Bearer {KEY}"}


def written(body: object = CALL) -> bytes:
    """Write a body; bytes stay as they are."""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


async def call(
    http: httpx.AsyncClient,
    body: object = CALL,
    name: str = "msg_1",
    at: float | None = None,
    **headers: str,
) -> httpx.Response:
    """Call the webhook, signed; ``headers`` are put over the right ones."""
    raw = written(body)
    seconds = int(time.time() if at is None else at)
    given = {**JSON, **signed(SECRET, name, seconds, raw)}
    given |= {key.replace("_", "-"): value for key, value in headers.items()}
    return await http.post(PATH, content=raw, headers=given)
