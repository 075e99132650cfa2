"""Telegram's Bot API on a loopback port, with one person and one group.

Source: https://core.telegram.org/bots/api.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from typing import Any, Self

from aiohttp import web

TOKEN = "12345:bot-token-of-the-test"  # noqa: S105 # nosec B105 # opens nothing
US = {"id": 12345, "is_bot": True, "first_name": "Bot", "username": "our_bot"}
ADA = {"id": 7, "is_bot": False, "first_name": "Ada", "last_name": "L"}
CHATS = {
    "7": {"id": 7, "type": "private"},
    "-100": {"id": -100, "type": "supergroup"},
}
TAGS = {"b", "i", "s", "code", "pre", "a", "blockquote"}


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.open = "", list[str]()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 # their API
        if tag not in TAGS:
            raise ValueError(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise ValueError(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


def words_of(html: str) -> str:
    """Read Telegram's HTML as strictly as Telegram does."""
    if re.search(r"<(?![/a-z])", html):
        raise ValueError("unescaped")
    parser = _Html()
    parser.feed(html)
    parser.close()
    if parser.open:
        raise ValueError("unclosed")
    return unescape(parser.words)


class TelegramSimulator:
    """What Telegram does; a test plays the person.

    Attributes:
        updates: What the bot was not told of yet, or has not acknowledged.
        said: The arguments of each message of ours, ``words`` what it shows.
        files: What we have sent, by name.
        uploads: What people have sent, by its id.
        calls: Every call, with its arguments.
        next_answer: Status and body of the next answer to what we send.
        losing: Whether the next message is taken, and the connection broken.
        cutting: Whether the poll that waits is broken.
        conflicting: Whether somebody else polls.
    """

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.said: list[dict[str, Any]] = []
        self.files: list[tuple[str, bytes]] = []
        self.edits: list[str] = []
        self.reactions: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.next_answer: tuple[int, dict[str, Any]] | None = None
        self.losing = False
        self.cutting = False
        self.conflicting = False
        self.uploads: dict[str, bytes] = {}
        self._ids = itertools.count(100)
        self._changed = asyncio.Event()
        self.url = ""
        self.last_id = 0

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=60 << 20)
        app.router.add_post("/bot{token}/{method}", self._call)
        app.router.add_get("/file/bot{token}/{name}", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cutting = True
        self.changed()
        await self._runner.cleanup()

    def changed(self) -> None:
        """Wake those who wait."""
        self._changed.set()

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait until it holds, looking at each thing that happens."""
        async with asyncio.timeout(20):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    def update(self, kind: str = "message", **message: Any) -> dict[str, Any]:
        """Write what Ada says, with ids that nothing had before."""
        chat = CHATS[str(message.pop("chat", 7))]
        whole = {"from": ADA, "chat": chat, "date": int(time.time())}
        whole |= {"message_id": next(self._ids)} | message
        return {"update_id": next(self._ids), kind: whole}

    def put(self, update: Any) -> None:
        """Have an update wait for the bot."""
        self.updates.append(update)
        self.changed()

    async def _call(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != TOKEN:
            return _refused(401, "Unauthorized")
        method = request.match_info["method"]
        if request.content_type == "application/json":
            arguments = await request.json()
        else:
            arguments = await self._form(request)
        self.calls.append((method, arguments))
        if method == "getUpdates":
            return await self._updates(arguments)
        if method.startswith(("send", "edit", "set")) and self.next_answer:
            (status, body), self.next_answer = self.next_answer, None
            return web.json_response(body, status=status)
        return self._act(method, arguments, request)

    async def _form(self, request: web.Request) -> dict[str, Any]:
        form = dict(await request.post())
        document = form.pop("document", None)
        if isinstance(document, web.FileField):
            self.files.append((document.filename, document.file.read()))
        if "reply_parameters" in form:
            form["reply_parameters"] = json.loads(str(form["reply_parameters"]))
        return form

    async def _updates(self, arguments: dict[str, Any]) -> web.Response:
        offset = arguments.get("offset", 0)
        if self.conflicting:
            return _refused(409, "Conflict: terminated by other getUpdates request")
        while not (found := self._after(offset)) and not self.cutting:
            self._changed.clear()
            await self._changed.wait()
        if self.cutting:
            self.cutting = False
            return _refused(502, "Bad Gateway")
        return web.json_response({"ok": True, "result": found[:100]})

    def _after(self, offset: int) -> list[Any]:
        if offset:
            self.updates = [u for u in self.updates if u.get("update_id", 0) >= offset]
            self._changed.set()
        return list(self.updates)

    def _act(
        self, method: str, arguments: dict[str, Any], request: web.Request
    ) -> web.Response:
        if method == "getMe":
            return _given(US)
        if method == "getFile":
            name = arguments["file_id"]
            return _given({"file_path": name}) if name in self.uploads else _no_chat()
        if method in {"deleteWebhook", "setWebhook", "sendChatAction"}:
            return _given(result=True)
        if str(arguments.get("chat_id")) not in CHATS:
            return _no_chat()
        if method == "setMessageReaction":
            self.reactions.append(arguments["reaction"][0]["emoji"])
            self.changed()
            return _given(result=True)
        return self._say(method, arguments, request)

    def _say(
        self, method: str, arguments: dict[str, Any], request: web.Request
    ) -> web.Response:
        text = arguments.get("text", arguments.get("caption", ""))
        if arguments.get("parse_mode") == "HTML":
            try:
                text = words_of(text)
            except ValueError as error:
                return _refused(400, f"Bad Request: can't parse entities: {error}")
        if len(text.encode("utf-16-le")) > 4096 * 2:
            return _refused(400, "Bad Request: message is too long")
        if method == "editMessageText":
            self.edits.append(text)
        else:
            self.said.append({**arguments, "words": text})
        self.changed()
        if self.losing:
            self.losing = False
            assert request.transport is not None
            request.transport.abort()
        number = arguments.get("message_id") or next(self._ids)
        self.last_id = number
        return _given({"message_id": number})

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.uploads[request.match_info["name"]])


def _given(result: Any) -> web.Response:
    return web.json_response({"ok": True, "result": result})


def _refused(status: int, reason: str) -> web.Response:
    body = {"ok": False, "error_code": status, "description": reason}
    return web.json_response(body, status=status)


def _no_chat() -> web.Response:
    return _refused(400, "Bad Request: chat not found")
