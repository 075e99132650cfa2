"""A server of the first revision: it answers in one stream, and is posted to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from agenthost import JsonObject, OutcomeUnknown, Secret

from .events_stream import events
from .inbox import Inbox, Pulse
from .wire import Lost, cancelled, notification, read, request, result_of

if TYPE_CHECKING:
    import httpx

SECONDS = 10.0


class Sse:
    """A stream that is held open, and the address that it names for requests.

    Args:
        url: The stream's address.
        own: Headers of every request, each ``Name: value``.
        client: What sends them.
        inbox: Where messages go.

    Attributes:
        modern: Always False; this revision is older than any envelope.
    """

    modern = False

    def __init__(
        self, url: str, own: tuple[Secret, ...], client: httpx.AsyncClient, inbox: Inbox
    ) -> None:
        self._url = url
        self._headers = dict(each.reveal().split(": ", 1) for each in own)
        self._client = client
        self._inbox = inbox
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._farewells: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Hear it until the stream ends.

        Raises:
            Lost: It has ended, or says what nobody understands.
        """
        try:
            await self._hear()
        except Exception as error:
            reason = (
                error.message if isinstance(error, Lost) else "its stream broke off"
            )
            self._inbox.lose(reason)
            if not self._endpoint.done():
                self._endpoint.set_exception(Lost(reason))
                self._endpoint.exception()
            raise

    def agreed(self, version: str) -> None:
        """Nothing here depends on it."""

    async def ask(
        self,
        method: str,
        params: JsonObject,
        pulse: Pulse,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 - of the modern alone
    ) -> dict[str, Any]:
        """Ask and wait for the result.

        Raises:
            RpcError: It refuses.
            Lost: Its stream has ended.
            TimeoutError: It does not answer.
        """
        async with pulse:
            ident, answer = self._inbox.open(pulse)
            token = {"_meta": {"progressToken": ident}}
            told = {**params, **token} if method == "tools/call" else params
            try:
                await self._send(request(method, told, ident))
                return result_of(await answer)
            except (asyncio.CancelledError, TimeoutError):
                if method == "tools/call":
                    self._forget(ident)
                raise
            finally:
                self._inbox.close(ident)

    async def tell(self, method: str, params: JsonObject) -> None:
        """Notify it."""
        await self._send(notification(method, params))

    async def reply(self, message: Mapping[str, Any]) -> None:
        """Answer what it has asked."""
        await self._send(message)

    async def close(self) -> None:
        """Let every request fail; the stream ends with who runs it."""
        self._inbox.lose("the connection was closed")
        for task in self._farewells:
            task.cancel()

    def _forget(self, ident: int) -> None:
        """Tell it, without waiting, that nobody waits any more."""
        task = asyncio.create_task(self._tell_quietly(cancelled(ident)))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    async def _tell_quietly(self, message: Mapping[str, Any]) -> None:
        # What it answers, or that it does not, changes nothing any more.
        with suppress(Exception):
            await self._send(message)

    async def _hear(self) -> None:
        said = {**self._headers, "Accept": "text/event-stream"}
        async with self._client.stream("GET", self._url, headers=said) as answer:
            if not answer.is_success:
                raise Lost(f"it answers {answer.status_code} and no stream")
            async for name, data in events(answer.aiter_bytes()):
                await self._take(name, data)
        raise Lost("its stream ended")

    async def _take(self, name: str, data: str) -> None:
        if name == "endpoint" and not self._endpoint.done():
            place = urljoin(self._url, data.strip())
            ours, theirs = urlsplit(self._url), urlsplit(place)
            if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
                raise Lost("it names an address of another server for requests")
            self._endpoint.set_result(place)
        elif name == "message" and data.strip():
            for message in read(data):
                if reply := self._inbox.take(message):
                    await self._send(reply)

    async def _send(self, message: Mapping[str, Any]) -> None:
        # Shielded, lest one who waits in vain takes the address from all others.
        place = await asyncio.shield(self._endpoint)
        said = {**self._headers, "Content-Type": "application/json"}
        async with asyncio.timeout(SECONDS):
            answer = await self._client.post(
                place, content=json.dumps(message), headers=said
            )
        if not answer.is_success:
            raise OutcomeUnknown(f"it answers {answer.status_code} to a request")
