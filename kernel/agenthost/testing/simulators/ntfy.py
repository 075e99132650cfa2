"""ntfy on a loopback port, as https://docs.ntfy.sh and its server's source have it."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import secrets
import string
import time
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web

TOKEN, USER, PASSWORD = "tk_of-the-test", "helper", "canary-of-ntfy"
MESSAGE_LIMIT = 4096
FILE_LIMIT = 15_000_000
TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
DURATION = re.compile(r"(\d+)([smh])")
SECONDS = {"s": 1, "m": 60, "h": 3600}
NAMES = {
    "message": ("message", "m"),
    "title": ("title", "t"),
    "tags": ("tags", "tag", "ta"),
    "markdown": ("markdown", "md"),
    "filename": ("filename", "file", "f"),
    "sequence": ("sequence-id", "sid"),
}


class NtfySimulator:
    """What a server does that lets nobody in without a login.

    Attributes:
        kept: Every message that was published, oldest first.
        queries: The parameters of every subscription.
        old: Whether it is a server before 2.16, which knows no sequences.
        keeps: Whether it shows later what was published.
        closed: The topics that nobody may read or write.
    """

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.queries: list[dict[str, str]] = []
        self.old = False
        self.keeps = True
        self.closed = {"closed"}
        self.losing = False
        self.refusing: tuple[int, dict[str, Any]] | None = None
        self.url = ""
        self._streams: dict[web.StreamResponse, tuple[set[str], web.Request]] = {}
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_get("/v1/account", self._account)
        app.router.add_get("/file/{name}", self._file)
        app.router.add_get("/{topics}/json", self._subscribe)
        app.router.add_route("PUT", "/{topic}", self._publish)
        app.router.add_route("POST", "/{topic}", self._publish)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        await self._runner.cleanup()

    # What a test does.

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for something to have happened."""
        async with asyncio.timeout(20):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    def cut(self) -> None:
        """Break every stream."""
        for _, request in list(self._streams.values()):
            if request.transport is not None:
                request.transport.abort()

    async def put(self, topic: str, **fields: Any) -> dict[str, Any]:
        """Publish as somebody, past the login."""
        message = {"id": _name(), "time": int(time.time()), "event": "message"}
        message |= {"topic": topic, "message": "triggered"} | fields
        await self._spread(message)
        return message

    async def raw(self, line: bytes) -> None:
        """Send any bytes to whoever is subscribed."""
        for stream in list(self._streams):
            await self._told(stream, line)

    # What ntfy does.

    async def _told(self, stream: web.StreamResponse, line: bytes) -> None:
        try:
            await stream.write(line)
        except ConnectionError:
            self._streams.pop(stream, None)

    async def _spread(self, message: dict[str, Any]) -> None:
        self.kept.append(message)
        for stream, (topics, _) in list(self._streams.items()):
            if message["topic"] in topics:
                await self._told(stream, _line(message))
        self._changed.set()

    def _refused(self, request: web.Request, topics: set[str]) -> web.Response | None:
        if not all(map(TOPIC.fullmatch, topics)):
            return _error(400, 40009, "invalid request: topic invalid")
        given = request.headers.get("authorization", "")
        basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if given and given not in {f"Bearer {TOKEN}", f"Basic {basic}"}:
            return _error(401, 40101, "unauthorized")
        if topics & self.closed or (topics and not given):
            return _error(403, 40301, "forbidden")
        return None

    async def _account(self, request: web.Request) -> web.Response:
        if refused := self._refused(request, set()):
            return refused
        known = "authorization" in request.headers
        return web.json_response({"username": USER if known else "*"})

    async def _file(self, request: web.Request) -> web.Response:
        data = self.files.get(request.match_info["name"])
        return web.Response(body=data) if data is not None else _error(404, 40401, "no")

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        topics = set(request.match_info["topics"].split(","))
        if refused := self._refused(request, topics):
            return refused
        poll = request.query.get("poll") == "1"
        since = request.query.get("since", "all" if poll else "none")
        self.queries.append(dict(request.query))
        stream = web.StreamResponse()
        stream.content_type = "application/x-ndjson"
        await stream.prepare(request)
        if not poll:
            # It hears what is new before what is old has been sent.
            self._streams[stream] = (topics, request)
            opened = {"id": _name(), "time": int(time.time()), "event": "open"}
            await stream.write(_line({**opened, "topic": ",".join(sorted(topics))}))
        try:
            for message in self._since(topics, since):
                await stream.write(_line(message))
            if not poll:
                await asyncio.Event().wait()
        finally:
            self._streams.pop(stream, None)
        return stream

    def _since(self, topics: set[str], since: str) -> list[dict[str, Any]]:
        found = [each for each in self.kept if each["topic"] in topics]
        if since == "none" or not self.keeps:
            return []
        names = [each["id"] for each in self.kept]
        if since in names:
            later = self.kept[names.index(since) + 1 :]
            return [each for each in found if each in later]
        if span := DURATION.fullmatch(since):
            at = time.time() - int(span[1]) * SECONDS[span[2]]
        else:
            at = float(since) if since.isdecimal() else 0.0
        return [each for each in found if each["time"] >= int(at)]

    async def _publish(self, request: web.Request) -> web.Response:
        topic = request.match_info["topic"]
        if refused := self._refused(request, {topic}):
            return refused
        if self.refusing is not None:
            (status, told), self.refusing = self.refusing, None
            return web.json_response(told, status=status)
        said = {name: _parameter(request, *keys) for name, keys in NAMES.items()}
        message: dict[str, Any] = {"id": _name(), "time": int(time.time())}
        message |= {"event": "message", "topic": topic}
        message |= _optional(said, old=self.old)
        body = await request.read()
        if len(body) > FILE_LIMIT:
            return _error(413, 41301, "attachment too large")
        message |= self._text_or_file(body, said)
        await self._spread(message)
        if self.losing:
            self.losing = False
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(message)

    def _text_or_file(self, body: bytes, said: dict[str, str]) -> dict[str, Any]:
        try:
            text = body.decode() if len(body) <= MESSAGE_LIMIT else None
        except UnicodeDecodeError:
            text = None
        if text is not None and not said["filename"]:
            return {"message": text.strip() or "triggered"}
        stored = f"{_name()}.bin"
        self.files[stored] = body
        name = said["filename"] or "attachment.txt"
        file = {"name": name, "url": f"{self.url}/file/{stored}", "size": len(body)}
        told = said["message"].replace("\\n", "\n")
        return {
            "message": told or f"You received a file: {name}",
            "attachment": {**file, "type": "application/octet-stream"},
        }


def _parameter(request: web.Request, *names: str) -> str:
    for name in names:
        for found in (request.headers.get(f"x-{name}"), request.query.get(name)):
            if found:
                return found.strip()
    return ""


def _optional(said: dict[str, str], *, old: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if said["title"]:
        found["title"] = said["title"]
    if said["tags"]:
        found["tags"] = said["tags"].split(",")
    if said["markdown"] in {"yes", "1", "true"}:
        found["content_type"] = "text/markdown"
    if said["sequence"] and not old:
        found["sequence_id"] = said["sequence"]
    return found


def _name() -> str:
    letters = string.ascii_letters + string.digits
    return "".join(secrets.choice(letters) for _ in range(12))


def _line(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"


def _error(status: int, code: int, words: str) -> web.Response:
    body = {"code": code, "http": status, "error": words}
    return web.json_response(body, status=status)
