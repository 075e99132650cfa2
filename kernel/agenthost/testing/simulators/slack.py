"""Slack on a loopback port: its Web API and Socket Mode, with one workspace.

Sources: https://docs.slack.dev/apis/events-api/using-socket-mode and
https://docs.slack.dev/reference/methods.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from aiohttp import WSCloseCode, web

BOT, APP, US = "xoxb-of-the-test", "xapp-of-the-test", "UBOT"
LONGEST = 40_000


class SlackSimulator:
    """What Slack does; a test plays the people.

    Attributes:
        channels: The channels that there are.
        said: The arguments of each message of ours.
        pending: The envelopes that nobody has acknowledged; each new connection
            gets them again, as Slack sends them again.
    """

    def __init__(self) -> None:
        self.channels = {"D1", "C1"}
        self.said: list[dict[str, Any]] = []
        self.edits: list[str] = []
        self.reactions: list[str] = []
        self.files: list[tuple[str, bytes]] = []
        self.stored: dict[str, bytes] = {}
        self.pending: dict[str, dict[str, Any]] = {}
        self.acknowledged: list[str] = []
        self.limited: int | None = None
        self.losing = False
        self.url = ""
        self._ids = itertools.count(1)
        self._uploads: dict[str, tuple[str, bytes]] = {}
        self._sockets: set[web.WebSocketResponse] = set()
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/link", self._link)
        app.router.add_post("/upload/{name}", self._upload)
        app.router.add_get("/files/{name}", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()
        await self._runner.cleanup()

    # What the test does.

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something has happened here."""
        async with asyncio.timeout(20):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    def stamp(self) -> str:
        """Give the time stamp of a new message."""
        return f"{int(time.time())}.{next(self._ids):06d}"

    async def event(self, event: object, kind: str = "events_api") -> None:
        """Send an event to whoever is connected, or keep it until somebody is."""
        name = f"envelope-{next(self._ids)}"
        payload = {"event_id": f"Ev{name}", "event": event}
        envelope = {"envelope_id": name, "type": kind, "payload": payload}
        self.pending[name] = envelope
        for socket in list(self._sockets):
            # Whoever has just gone gets it when they are back.
            with suppress(ConnectionError):
                await socket.send_json(envelope)

    async def send_raw(self, text: str) -> None:
        """Send any text to whoever is connected."""
        for socket in self._sockets:
            await socket.send_str(text)

    async def cut(self) -> None:
        """Close every connection."""
        for socket in list(self._sockets):
            await socket.close(code=WSCloseCode.GOING_AWAY)

    # What Slack does.

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=True)
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        self._sockets.add(socket)
        try:
            with suppress(ConnectionError):
                for envelope in list(self.pending.values()):
                    await socket.send_json(envelope)
            async for message in socket:
                name = json.loads(message.data)["envelope_id"]
                self.pending.pop(name, None)
                self.acknowledged.append(name)
                self._changed.set()
        finally:
            self._sockets.discard(socket)
        return socket

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        arguments = await _arguments(request)
        token = APP if method == "apps.connections.open" else BOT
        if request.headers.get("authorization") != f"Bearer {token}":
            return _refused("invalid_auth")
        if method.startswith("chat.") and self.limited is not None:
            seconds, self.limited = self.limited, None
            headers = {"retry-after": str(seconds)}
            body = {"ok": False, "error": "ratelimited"}
            return web.json_response(body, status=429, headers=headers)
        answer = self._answer(method, arguments)
        self._changed.set()
        if self.losing and method.startswith("chat."):
            self.losing = False
            assert request.transport is not None
            request.transport.abort()
        return answer

    def _answer(self, method: str, arguments: dict[str, str]) -> web.Response:
        if method == "auth.test":
            return _given(user_id=US, user="bot", team="Test", bot_id="BBOT")
        if method == "apps.connections.open":
            return _given(url=self.url.replace("http", "ws") + "/link?ticket=1")
        if method == "files.getUploadURLExternal":
            name = f"F{next(self._ids)}"
            self._uploads[name] = (arguments["filename"], b"")
            return _given(upload_url=f"{self.url}/upload/{name}", file_id=name)
        peer = arguments.get("channel") or arguments.get("channel_id")
        if peer not in self.channels:
            return _refused("channel_not_found")
        return self._say(method, arguments)

    def _say(self, method: str, arguments: dict[str, str]) -> web.Response:
        if method == "chat.postMessage":
            return self._post(arguments)
        if method == "reactions.add":
            self.reactions.append(arguments["name"])
            return _given()
        if method == "chat.update":
            self.edits.append(arguments["text"])
            return _given(ts=arguments["ts"])
        if method == "files.completeUploadExternal":
            names = [each["id"] for each in json.loads(arguments["files"])]
            self.files += [self._uploads.pop(name) for name in names]
            return _given(files=[{"id": name} for name in names])
        return _refused("unknown_method")

    def _post(self, arguments: dict[str, str]) -> web.Response:
        if not arguments.get("text"):
            return _refused("no_text")
        if len(arguments["text"]) > LONGEST:
            return _refused("msg_too_long")
        self.said.append(arguments)
        return _given(ts=self.stamp(), channel=arguments["channel"])

    async def _upload(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self._uploads[name] = (self._uploads[name][0], await request.read())
        return web.Response(text="OK")

    async def _file(self, request: web.Request) -> web.Response:
        if request.headers.get("authorization") != f"Bearer {BOT}":
            return web.Response(status=302)
        return web.Response(body=self.stored[request.match_info["name"]])


async def _arguments(request: web.Request) -> dict[str, str]:
    """Read a query, a form or JSON: Slack takes each."""
    found: dict[str, object] = dict(request.query)
    if request.content_type == "application/json":
        found |= await request.json()
    else:
        found |= await request.post()
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in found.items()
    }


def _given(**result: object) -> web.Response:
    return web.json_response({"ok": True, **result})


def _refused(error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error})
