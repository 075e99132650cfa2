"""Discord on a loopback port: its API, version 10, and its gateway.

Sources: https://docs.discord.com/developers/resources/message, /topics/rate-limits,
/events/gateway and /topics/opcodes-and-status-codes. discord.py is at home here:
tests try it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import unquote

from aiohttp import BodyPartReader, web

from . import world
from .gateway import GatewaySimulator, Link, patiently
from .world import ADA, CHANNELS, DIRECT, GUILD, MEMBER, TOKEN, US

LONGEST = 2000
LONGEST_NONCE = 25
FLAGS = 1 << 2 | 1 << 12 | 1 << 13 | 1 << 15
Object = dict[str, Any]


class DiscordSimulator:
    """What Discord does; a test plays the people.

    Attributes:
        gateway: Where bots listen.
        kept: The messages of each channel, oldest first.
        said: Ours, in their order.
        pinged: Whom our messages have called.
        shows_nonce: Whether a message that is read has its nonce.
        may_read: Whether we have the right to read what was said before.
        unreadable: How often reading messages fails from now on.
        tells_type: Whether the gateway says what kind of channel a message is of.
        remaining: How many sessions may still begin today.
    """

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self.gateway = GatewaySimulator(self._changed.set)
        self.kept: dict[str, list[Object]] = {name: [] for name in CHANNELS}
        self.said: list[Object] = []
        self.edits: list[str] = []
        self.reactions: list[str] = []
        self.typed = 0
        self.pinged: list[str] = []
        self.stored: dict[str, bytes] = {}
        self.files: list[tuple[str, bytes]] = []
        self.calls: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.next_answer: tuple[int, Object, dict[str, str]] | None = None
        self.losing = False
        self.shows_nonce = False
        self.may_read = True
        self.unreadable = 0
        self.tells_type = True
        self.remaining = 1000
        self.url = ""
        self._nonces: dict[str, Object] = {}
        self._requests: dict[Link, web.Request] = {}

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        for path in ("/gateway", "/gateway/", "/resume", "/resume/"):
            app.router.add_get(path, self._link)
        app.router.add_get("/files/{name}", self._file)
        app.router.add_route("*", "/api/v10/{path:.*}", self._call)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.gateway.url = self.url.replace("http", "ws")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        await self._runner.cleanup()

    @property
    def api(self) -> str:
        """The address of the API."""
        return f"{self.url}/api/v10"

    # What a test does.

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for something to have happened."""
        await patiently(happened, self._changed)

    def cut(self) -> None:
        """Break every connection to the gateway."""
        self.gateway.cut(self._requests)

    async def put(self, channel: str, author: Object = ADA, **fields: Any) -> Object:
        """Let somebody say something."""
        said = world.message(channel, author, **fields)
        self.kept[channel].append(said)
        await self.gateway.say("MESSAGE_CREATE", self._event(said))
        return said

    async def change(self, said: Object, **fields: Any) -> None:
        """Let its author change a message."""
        said |= {"edited_timestamp": world.now(), **fields}
        await self.gateway.say("MESSAGE_UPDATE", self._event(said))

    def _event(self, said: Object) -> Object:
        """Give what the gateway says more of a message than the API."""
        channel = CHANNELS[said["channel_id"]]
        found = dict(said)
        if self.tells_type:
            found["channel_type"] = channel["type"]
        if "guild_id" in channel:
            found |= {"guild_id": GUILD, "member": MEMBER}
        return found

    # What Discord does.

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=True)
        await socket.prepare(request)
        link = Link(socket, request.query.get("compress", ""))
        self._requests[link] = request
        await self.gateway.serve(request, link)
        return socket

    async def _call(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        self.calls.append(f"{request.method} /{path}")
        self.headers.append(dict(request.headers))
        if request.headers.get("authorization") != f"Bot {TOKEN}":
            return _error(401, 0, "401: Unauthorized")
        if not request.headers.get("user-agent", "").startswith("DiscordBot ("):
            return _error(403, 40333, "internal network error")
        writes = request.method != "GET" and path != "users/@me/channels"
        if writes and self.next_answer is not None:
            (status, body, headers), self.next_answer = self.next_answer, None
            return _given(body, status=status, headers=headers)
        answer = await self._act(request, path.split("/"))
        self._changed.set()
        if writes and self.losing:
            self.losing = False
            assert request.transport is not None
            request.transport.abort()
        answer.headers.update(_limits(path))
        return answer

    async def _act(self, request: web.Request, path: list[str]) -> web.Response:
        match request.method, path:
            case "GET", ["users", "@me"]:
                return _given(US)
            case "GET", ["gateway", "bot"]:
                limit = {"total": 1000, "remaining": self.remaining, "reset_after": 1}
                limit |= {"max_concurrency": 1}
                url = f"{self.gateway.url}/gateway"
                body = {"url": url, "shards": 1, "session_start_limit": limit}
                return _given(body)
            case "GET", [*_, "applications", "@me"]:
                return _given(_application())
            case "POST", ["users", "@me", "channels"]:
                return _given(CHANNELS[DIRECT])
            case _, ["channels", channel, *rest] if channel in CHANNELS:
                return await self._in_channel(request, channel, rest)
        return _error(404, 10003, "Unknown Channel")

    async def _in_channel(
        self, request: web.Request, channel: str, path: list[str]
    ) -> web.Response:
        match request.method, path:
            case "GET", []:
                return _given(CHANNELS[channel])
            case "POST", ["typing"]:
                self.typed += 1
                return web.Response(status=204)
            case "GET", ["messages"]:
                return self._read(request, channel)
            case "POST", ["messages"]:
                return await self._say(request, channel)
            case _, ["messages", name, *rest]:
                return await self._with(request, self._find(channel, name), rest)
        return _error(404, 0, "404: Not Found")

    def _find(self, channel: str, name: str) -> Object | None:
        named = {each["id"]: each for each in self.kept[channel]}
        return named.get(name)

    async def _with(
        self, request: web.Request, said: Object | None, path: list[str]
    ) -> web.Response:
        if said is None:
            return _error(404, 10008, "Unknown Message")
        match request.method, path:
            case "GET", []:
                return _given(said)
            case "PATCH", [] if said["author"] == US:
                body = await request.json()
                self.edits.append(body["content"])
                await self.change(said, content=body["content"])
                return _given(said)
            case "PATCH", []:
                return _error(403, 50005, "Cannot edit a message of another user")
            case "PUT", ["reactions", emoji, "@me"]:
                self.reactions.append(unquote(emoji))
                return web.Response(status=204)
        return _error(405, 0, "405: Method Not Allowed")

    def _read(self, request: web.Request, channel: str) -> web.Response:
        if self.unreadable:
            self.unreadable -= 1
            return _error(500, 0, "internal server error")
        limit = int(request.query.get("limit", "50"))
        if not 1 <= limit <= 100:
            return _invalid("limit", "int value should be between 1 and 100")
        kept = self.kept[channel] if self.may_read else []
        if after := request.query.get("after"):
            found = [each for each in kept if int(each["id"]) > int(after)][:limit]
        elif before := request.query.get("before"):
            found = [each for each in kept if int(each["id"]) < int(before)][-limit:]
        else:
            found = kept[-limit:]
        if not self.shows_nonce:
            found = [
                {key: value for key, value in each.items() if key != "nonce"}
                for each in found
            ]
        return _given(found[::-1])

    async def _say(self, request: web.Request, channel: str) -> web.Response:
        body, files = await self._body(request)
        nonce = body.get("nonce")
        if refused := _refused(body, files):
            return refused
        if body.get("enforce_nonce") and nonce in self._nonces:
            return _given(self._nonces[nonce])
        fields = self._answered(body, channel)
        if fields is None:
            return _invalid("message_reference", "Unknown message")
        fields |= {"content": body.get("content") or "", "flags": body.get("flags", 0)}
        said = world.message(channel, US, **fields)
        self.pinged += _called(said, body.get("allowed_mentions"))
        said["attachments"] = [self._store(*file) for file in files]
        if nonce is not None:
            said["nonce"] = nonce
            self._nonces[nonce] = said
        self.kept[channel].append(said)
        self.said.append({**body, "channel": channel})
        await self.gateway.say("MESSAGE_CREATE", self._event(said))
        return _given(said)

    def _answered(self, body: Object, channel: str) -> Object | None:
        """Give what a message has of the one that it answers; None to refuse it."""
        if (reference := body.get("message_reference")) is None:
            return {}
        answered = self._find(channel, str(reference["message_id"]))
        if answered is None:
            return None if reference.get("fail_if_not_exists", True) else {}
        found = {"type": 0, "message_id": answered["id"], "channel_id": channel}
        return {
            "type": 19,
            "referenced_message": answered,
            "message_reference": found,
        }

    async def _body(
        self, request: web.Request
    ) -> tuple[Object, list[tuple[str, bytes]]]:
        if request.content_type == "application/json":
            return await request.json(), []
        body: Object = {}
        files = []
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            data = bytes(await part.read())
            if part.name == "payload_json":
                body = json.loads(data)
            else:
                files.append((part.filename or "", data))
        return body, files

    def _store(self, name: str, data: bytes) -> Object:
        self.files.append((name, data))
        return self.attachment(name, "application/octet-stream", data)

    def attachment(self, name: str, media_type: str, data: bytes) -> Object:
        """Keep a file, and give what a message says of it."""
        number = world.snowflake()
        self.stored[number] = data
        address = f"{self.url}/files/{number}"
        found = {"id": number, "filename": name, "size": len(data), "url": address}
        return {**found, "proxy_url": address, "content_type": media_type}

    async def _file(self, request: web.Request) -> web.Response:
        # A token sent along with an address of anybody's would be a token lost.
        assert "authorization" not in request.headers
        data = self.stored.get(request.match_info["name"])
        return web.Response(body=data, status=404 if data is None else 200)


def _refused(body: Object, files: list[Any]) -> web.Response | None:
    if len(str(body.get("content") or "")) > LONGEST:
        return _invalid("content", "Must be 2000 or fewer in length.")
    if not body.get("content") and not files:
        return _error(400, 50006, "Cannot send an empty message")
    if len(str(body.get("nonce") or "")) > LONGEST_NONCE:
        return _invalid("nonce", "Must be 25 or fewer in length.")
    if int(body.get("flags") or 0) & ~FLAGS:
        return _invalid("flags", "Invalid flags")
    return None


def _called(said: Object, allowed: Object | None) -> list[str]:
    if allowed is None:
        allowed = {"parse": ["users", "roles", "everyone"]}
    users = allowed.get("users") or []
    every = "users" in allowed.get("parse", ())
    names = [each["id"] for each in said["mentions"]]
    return [name for name in names if every or name in users]


def _limits(path: str) -> dict[str, str]:
    bucket = path.partition("/")[0]
    told = {"limit": "50", "remaining": "49", "reset": "1", "reset-after": "1.0"}
    told["bucket"] = f"bucket-of-{bucket}"
    return {f"x-ratelimit-{name}": value for name, value in told.items()}


def _application() -> Object:
    found: Object = {"id": US["id"], "name": "our bot", "description": "", "icon": None}
    found |= {"bot_public": False, "bot_require_code_grant": False, "flags": 0}
    return {**found, "verify_key": "0" * 64, "owner": ADA, "team": None, "summary": ""}


def _given(
    body: Any, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Answer as Discord does: the content type has no charset."""
    raw = json.dumps(body).encode()
    kind = "application/json"
    return web.Response(body=raw, status=status, headers=headers, content_type=kind)


def _error(status: int, code: int, words: str) -> web.Response:
    return _given({"code": code, "message": words}, status=status)


def _invalid(field: str, words: str) -> web.Response:
    body = {
        "code": 50035,
        "message": "Invalid Form Body",
        "errors": {field: {"_errors": [{"message": words}]}},
    }
    return _given(body, status=400)
