"""A server behind streamable HTTP: of the modern revision, or one with a session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agenthost import JsonObject, NotSent, OutcomeUnknown, Secret

from .events_stream import Cursor, events
from .inbox import Inbox, Pulse
from .wire import (
    FRAME_BYTES,
    LoginWanted,
    Lost,
    RpcError,
    cancelled,
    headers,
    modern,
    notification,
    read,
    request,
    result_of,
)

if TYPE_CHECKING:
    import httpx

    from .oauth.door import Door

ACCEPT = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}
SESSION = "Mcp-Session-Id"
SECONDS = 10.0
AGAIN = 5.0
"""Seconds until the stream of news is asked for again."""


class Http:
    """An address that requests are posted to.

    Args:
        url: The address.
        own: Headers of every request, each ``Name: value``.
        client: What sends them.
        inbox: Where messages go.
        door: What shows the token of a login; None where there are none.

    Attributes:
        modern: Whether requests carry the envelope of the modern revision.
    """

    def __init__(
        self,
        url: str,
        own: tuple[Secret, ...],
        client: httpx.AsyncClient,
        inbox: Inbox,
        door: Door | None = None,
    ) -> None:
        self.modern = True
        self._door = door
        # Also None, which httpx takes and types in some places only.
        self._auth: Any = door
        self._version = ""
        self._url = url
        self._own = own
        self._client = client
        self._inbox = inbox
        self._session = ""
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ready = asyncio.Event()
        self._farewells: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Hear its news, where it has a stream of them, until it is gone.

        Raises:
            Lost: It is gone.
        """
        news = asyncio.create_task(self._follow())
        try:
            await self._gone
        finally:
            news.cancel()
            await asyncio.gather(news, return_exceptions=True)

    def agreed(self, version: str) -> None:
        """Name the revision with every request from now on, and hear news."""
        self._version = version
        self._ready.set()

    async def ask(
        self,
        method: str,
        params: JsonObject,
        pulse: Pulse,
        extra: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Ask and wait for the result.

        Raises:
            RpcError: It refuses.
            Lost: It cannot be reached, or its session has ended.
            OutcomeUnknown: It broke off.
            TimeoutError: It does not answer.
        """
        async with pulse:
            ident, _ = self._inbox.open(pulse)
            told = dict(params)
            if method == "tools/call":
                told["_meta"] = {"progressToken": ident}
            told = modern(told, self._inbox.capabilities) if self.modern else told
            named = headers(method, params) if self.modern else {}
            message = request(method, told, ident)
            try:
                return await self._post(message, {**named, **(extra or {})})
            except (asyncio.CancelledError, TimeoutError):
                # Of the modern revision, the end of the stream itself says so.
                if method == "tools/call" and not self.modern:
                    self._forget(ident)
                raise
            finally:
                self._inbox.close(ident)

    async def tell(self, method: str, params: JsonObject) -> None:
        """Notify it; the modern revision knows no notifications to a server."""
        if not self.modern:
            await self._notify(notification(method, params))

    async def reply(self, message: Mapping[str, Any]) -> None:
        """Answer what it has asked."""
        await self._notify(message)

    async def close(self) -> None:
        """End the session, where there is one."""
        self.lose("the connection was closed")
        for task in self._farewells:
            task.cancel()
        session, self._session = self._session, ""
        if session:
            said = {**self._headers(), SESSION: session}
            with suppress(Exception):
                async with asyncio.timeout(1):
                    await self._client.delete(self._url, headers=said, auth=self._auth)

    def lose(self, reason: str) -> None:
        """Let all requests fail, and whoever runs this know."""
        self._inbox.lose(reason)
        if not self._gone.done():
            self._gone.set_exception(Lost(reason))
            self._gone.exception()

    async def _post(
        self, message: dict[str, Any], extra: Mapping[str, str]
    ) -> dict[str, Any]:
        initial = message["method"] == "initialize"
        said = {**self._headers(), **ACCEPT, **extra}
        try:
            async with self._client.stream(
                "POST",
                self._url,
                content=json.dumps(message),
                headers=said,
                auth=self._auth,
            ) as answer:
                if initial:
                    self._session = answer.headers.get(SESSION, "")[:1_000]
                return await self._answer(answer, message["id"])
        except NotSent as error:
            self.lose(error.message)
            raise Lost(error.message) from error

    async def _answer(self, answer: httpx.Response, ident: int) -> dict[str, Any]:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and answer.is_success:
            cursor = Cursor()
            found = await self._found(answer, ident, cursor)
            return result_of(found or await self._resumed(ident, cursor))
        if self._door and (reason := self._door.refusal(answer.status_code)):
            raise LoginWanted(reason)
        body = await _body(answer)
        if kind == "application/json":
            with suppress(Lost):
                for message in read(body):
                    if "result" in message or "error" in message:
                        return result_of(message)
        if answer.status_code == 404 and self._session:
            self.lose("its session has ended")
        raise _refusal(answer)

    async def _found(
        self, answer: httpx.Response, ident: int, cursor: Cursor
    ) -> dict[str, Any] | None:
        """Read a stream up to an answer; None where it ends before, but can go on."""
        try:
            async for message in self._messages(answer, cursor):
                if message.get("id") == ident and "method" not in message:
                    return message
        except OutcomeUnknown:
            if not cursor.last:
                raise
        return None

    async def _resumed(self, ident: int, cursor: Cursor) -> dict[str, Any]:
        """Read the rest of an older server's stream, however often it ends.

        Source: https://modelcontextprotocol.io/specification/2025-11-25, resumability.
        """
        while cursor.last and not self.modern:
            await asyncio.sleep(cursor.pause)
            said = {"Last-Event-ID": cursor.last, "Accept": "text/event-stream"}
            async with self._client.stream(
                "GET", self._url, headers={**self._headers(), **said}, auth=self._auth
            ) as answer:
                if not answer.is_success:
                    break
                if found := await self._found(answer, ident, cursor):
                    return found
        raise OutcomeUnknown("its stream ended without an answer")

    async def _messages(
        self, answer: httpx.Response, cursor: Cursor
    ) -> AsyncIterator[dict[str, Any]]:
        async for name, data in events(answer.aiter_bytes(), cursor):
            if name != "message" or not data.strip():
                continue
            for message in read(data):
                yield message
                if reply := self._inbox.take(message):
                    await self._notify(reply)

    async def _notify(self, message: Mapping[str, Any]) -> None:
        async with asyncio.timeout(SECONDS):
            answer = await self._client.post(
                self._url,
                content=json.dumps(message),
                headers={**self._headers(), **ACCEPT},
                auth=self._auth,
            )
        if answer.status_code == 404 and self._session:
            self.lose("its session has ended")

    def _forget(self, ident: int) -> None:
        """Tell it, without waiting, that nobody waits any more."""
        task = asyncio.create_task(self._notify_quietly(cancelled(ident)))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    async def _notify_quietly(self, message: Mapping[str, Any]) -> None:
        # What it answers, or that it does not, changes nothing any more.
        with suppress(Exception):
            await self._notify(message)

    def _headers(self) -> dict[str, str]:
        said = dict(each.reveal().split(": ", 1) for each in self._own)
        if self._version:
            said["MCP-Protocol-Version"] = self._version
        if self._session:
            said[SESSION] = self._session
        return said

    async def _follow(self) -> None:
        """Hear news, as long as it offers any; its tools are asked for now and then."""
        await self._ready.wait()
        cursor = Cursor()
        while True:
            heard = True
            # Errors of httpx among them, which is not imported here.
            with suppress(Exception):
                heard = await (self._listen if self.modern else self._hear)(cursor)
            if not heard:
                return
            # What it said meanwhile nobody heard; perhaps it is gone.
            self._inbox.changed()
            await asyncio.sleep(max(AGAIN, cursor.pause))

    async def _hear(self, cursor: Cursor) -> bool:
        """Read the stream of news of an older server; False where there is none."""
        said = {**self._headers(), "Accept": "text/event-stream"}
        async with self._client.stream(
            "GET", self._url, headers=said, auth=self._auth
        ) as answer:
            if not answer.is_success:
                return False
            async for _ in self._messages(answer, cursor):
                pass
        return True

    async def _listen(self, cursor: Cursor) -> bool:
        """Subscribe to news of tools; False where that is not known."""
        params = modern({"notifications": {"toolsListChanged": True}})
        method = "subscriptions/listen"
        message = {**request(method, params, 0), "id": "news"}
        said = {**self._headers(), **ACCEPT, **headers(method, params)}
        async with self._client.stream(
            "POST",
            self._url,
            content=json.dumps(message),
            headers=said,
            auth=self._auth,
        ) as answer:
            if not answer.headers.get("content-type", "").startswith("text/event"):
                return False
            async for each in self._messages(answer, cursor):
                if each.get("id") == "news" and "error" in each:
                    return False
        return True


async def _body(answer: httpx.Response) -> bytes:
    parts, size = [], 0
    async for chunk in answer.aiter_bytes():
        size += len(chunk)
        if size > FRAME_BYTES:
            raise OutcomeUnknown("it sends an answer of over 8 MiB")
        parts.append(chunk)
    return b"".join(parts)


def _refusal(answer: httpx.Response) -> Exception:
    if answer.status_code in (401, 403):
        return RpcError(
            0, f"it answers {answer.status_code}: see headers in its [[mcp_servers]]"
        )
    if answer.is_redirect:
        return RpcError(0, "it redirects elsewhere; write the address it leads to")
    return RpcError(0, f"it answers {answer.status_code} and no JSON-RPC")
