"""What a server of an older revision asks in the midst of a call.

Source: https://modelcontextprotocol.io/specification/2025-11-25, elicitation and
sampling. Such a question does not say which call it belongs to: whoever may ask is
called by one turn at a time, so that no other turn's person or budget answers it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from agenthost import Asked, InvalidInput, ToolContext, Unavailable, describe

from .asking import ELICITATION, responses
from .connecting import Connection
from .inbox import Inbox, Pulse
from .sampling import METHOD as SAMPLING
from .sampling import sampled
from .settings import McpServer
from .wire import BAD_PARAMS, INTERNAL

log = logging.getLogger(__name__)
MOST_QUESTIONS = 32
"""So often a server may ask in one call."""
FAREWELL = 1.0
"""Seconds to tell a server that its questions are answered no more."""


class Exchange:
    """The questions of one call, answered one after the other.

    A person is not waited for: the call is broken off, and made anew once there is an
    answer, which the same question gets then.

    Args:
        server: Who asks, and what it may ask for.
        tool: What is called.
        context: Whose turn calls it.
        pulse: The time that the call has; while a model is asked, silence is none.
        reply: Sends a reply.

    Attributes:
        asked: What a person is to be asked; None while nobody is.
    """

    def __init__(
        self,
        server: McpServer,
        tool: str,
        context: ToolContext,
        pulse: Pulse,
        reply: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        self.asked: Asked | None = None
        self._server, self._tool = server, tool
        self._context, self._pulse = context, pulse
        self._reply = reply
        self._one = asyncio.Lock()
        self._taken = 0
        self._seen: Counter[str] = Counter()
        self._open: dict[asyncio.Task[None], Mapping[str, Any]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Tell the server of each question that nobody answers it any more."""
        left = dict(self._open)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        with suppress(Exception):
            async with asyncio.timeout(FAREWELL):
                for message in left.values():
                    await self._reply(_written(message, _dismissal(message)))

    def take(self, message: Mapping[str, Any]) -> bool:
        """Answer a question later; False where the server may not ask for this."""
        method, server = message["method"], self._server
        may = server.sampling if method == SAMPLING else server.elicitation
        if method not in (SAMPLING, ELICITATION) or not may:
            return False
        self._taken += 1
        if self._taken > MOST_QUESTIONS:
            return False
        task = asyncio.create_task(self._answer(message))
        self._open[task] = message
        task.add_done_callback(lambda done: self._open.pop(done, None))
        return True

    def drop(self, said: object) -> None:
        """Answer a question no more, and spare what its answer costs."""
        for task, message in self._open.items():
            if isinstance(said, Mapping) and said.get("requestId") == message["id"]:
                task.cancel()

    async def _answer(self, message: Mapping[str, Any]) -> None:
        async with self._one:
            told = await self._told(message)
            if told is None:
                # The call has no time left; its end cancels this, and what waits here.
                await asyncio.Event().wait()
            else:
                # A server that does not take it has ended, or its call tells so.
                with suppress(Exception):
                    await self._reply(_written(message, told))

    async def _told(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """Give an answer or an error; None once a person is to be asked."""
        key = json.dumps([message["method"], message.get("params")], sort_keys=True)
        self._seen[key] += 1
        try:
            if message["method"] == SAMPLING:
                with self._pulse.held():
                    return {"result": await sampled(self._context, message)}
            # The same words may be asked twice, and answered differently.
            name = str(self._seen[key])
            said = responses(
                self._server.name, self._tool, self._context, {name: message}
            )
            return {"result": said[name]}
        except Asked as asked:
            self.asked = asked
            self._pulse.end()
            return None
        except InvalidInput as error:
            return _error(BAD_PARAMS, error.message)
        except Exception as error:  # noqa: BLE001 - its words may bring about anything
            # Why is said here: a provider's words are not for a server.
            reason = describe(error)
            log.warning("mcp server %s: no answer: %s", self._server.name, reason)
            return _error(INTERNAL, "there is no answer")


class Midcall:
    """Has the calls of one connection made one after the other, and questions answered.

    Args:
        server: Who is called.
        connection: The way to it.
        inbox: Where its questions arrive.
    """

    def __init__(self, server: McpServer, connection: Connection, inbox: Inbox) -> None:
        self._server = server
        self._connection = connection
        self._inbox = inbox
        self._one = asyncio.Lock()

    async def call(
        self,
        tool: str,
        context: ToolContext,
        pulse: Pulse,
        ask: Callable[[], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]:
        """Make a call; ``ask`` waits for its result, as long as ``pulse`` allows.

        Raises:
            Asked: A person must answer first.
            Unavailable: Other calls took all the time; nothing was sent.
        """
        server, reply = self._server, self._connection.reply
        try:
            async with asyncio.timeout(server.max_call_secs):
                await self._one.acquire()
        except TimeoutError:
            busy = f"the MCP server {server.name} is busy with another call"
            raise Unavailable(f"{busy}; nothing was sent") from None
        exchange = Exchange(server, tool, context, pulse, reply)
        self._inbox.questions = exchange
        try:
            async with exchange:
                return await ask()
        except TimeoutError:
            if exchange.asked is None:
                raise
            raise exchange.asked from None
        finally:
            self._inbox.questions = None
            self._one.release()


def _written(message: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], **told}


def _dismissal(message: Mapping[str, Any]) -> dict[str, Any]:
    if message["method"] == ELICITATION:
        return {"result": {"action": "cancel"}}
    return _error(INTERNAL, "the call has ended")


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
