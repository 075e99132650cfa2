"""The one task that owns a server: connects, asks for its tools, connects again."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from agenthost import (
    AgentHostError,
    Conflict,
    Context,
    Host,
    JsonObject,
    OutcomeUnknown,
    ToolContext,
    ToolResult,
    Unavailable,
    describe,
)

from .asking import ROUNDS, answers
from .book import Book
from .connecting import SECONDS, Connection, agree, listed, opened
from .events import McpServerApproved, McpServerPinned
from .inbox import Inbox, Pulse
from .midcall import Midcall
from .pins import (
    LAUNCH,
    Pending,
    Pin,
    definition_of,
    digest_of,
    digest_of_all,
    launch_of,
    pending_of,
)
from .results import result_from
from .settings import McpServer
from .shapes import State
from .wire import Lost, RpcError, carried, repeated

if TYPE_CHECKING:
    from .oauth.door import Door

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LASTED = 30.0
"""A connection that has lasted so many seconds was a good one."""
REFRESH = 60.0
"""Seconds after which an address is asked for its tools, should no news come."""
SETTLE = 0.2
"""Seconds between two lists, however often it says that it has changed."""
CLOSING = 4.0
ROOTS_CHANGED = "notifications/roots/list_changed"
TOOL_NAME_LENGTH = 200
DEFINITION_BYTES = 64 * 1024
REASON_LENGTH = 250


class Owner:
    """A server: its state, what it offers, and the way to call that.

    Args:
        host: The daemon.
        server: What the configuration says of it.
        book: What was agreed to.
        changed: Called when another set of its tools is on offer.

    Attributes:
        state: ``connecting``, ``connected``, ``disconnected`` or ``quarantined``.
        reason: Why it is not connected, in words.
        version: The revision of the protocol that both speak.
        offered: The tools that were agreed to and are there, by their own name.
        pending: What waits for a person.
        added: Whether it was added while the daemon ran, and not by the configuration.
    """

    def __init__(
        self, host: Host, server: McpServer, book: Book, changed: Callable[[], object]
    ) -> None:
        self.state: State = "connecting"
        self.reason = self.version = ""
        self.offered: Mapping[str, Pin] = {}
        self.pending: list[Pending] = []
        self.added = False
        self.server = server
        self._host = host
        self._book = book
        self._tell = changed
        self._launch = launch_of(server)
        self._tools: dict[str, dict[str, Any]] = {}
        self._connection: Connection | None = None
        self._inbox: Inbox | None = None
        self._midcall: Midcall | None = None
        self._door: Door | None = None
        self._news = asyncio.Event()
        self._again = asyncio.Event()

    @property
    def door(self) -> Door | None:
        """What shows the token of a login; None where the server takes none."""
        if self._door is None and self.server.logs_in:
            from .oauth.door import Door

            self._door = Door(self._host, self.server)
        return self._door

    async def live(self) -> None:
        """Keep it connected until this is cancelled; it ends by nothing else."""
        pause = FIRST_PAUSE
        while True:
            began = monotonic()
            self._again.clear()
            try:
                await self._connected()
            except Exception as error:  # noqa: BLE001 - a server may bring about anything
                self._down(_reason(error))
            pause = FIRST_PAUSE if monotonic() - began > LASTED else pause
            with suppress(TimeoutError):
                # Many that died together must not come back together.
                async with asyncio.timeout(pause * random.uniform(0.8, 1.2)):  # noqa: S311  # nosec B311 # a pause
                    await self._again.wait()
                    pause = FIRST_PAUSE
                    continue
            pause = min(pause * 2, LONGEST_PAUSE)

    def reconnect(self) -> None:
        """Connect anew, and now."""
        self._again.set()

    async def approve(self, digest: str, context: Context) -> None:
        """Agree to all that is pending, as it was shown.

        Raises:
            Conflict: Something else is pending by now.
        """
        pending = self.pending
        if not pending or digest_of_all(pending) != digest:
            raise Conflict("something else is pending by now; read it anew")
        await self._book.pin(self.server.name, pending, McpServerApproved, context)
        if any(each.tool == LAUNCH for each in pending):
            self.reconnect()
        self._offer()

    async def move(self, server: McpServer) -> None:
        """Take other roots, and tell a server of an older revision that there are any.

        The modern one asks for them each time that it needs them.
        """
        moved = server.roots != self.server.roots
        self.server = server
        if self._inbox is not None:
            self._inbox.roots = server.told_roots
        if moved and self._connection is not None and not self._connection.modern:
            # One that does not take it is gone, and hears of them when it is back.
            with suppress(Exception):
                async with asyncio.timeout(CLOSING):
                    await self._connection.tell(ROOTS_CHANGED, {})

    async def stop(self) -> None:
        """Let a token that is being renewed be kept."""
        if self._door is not None:
            await self._door.stop()

    async def call(
        self, tool: str, context: ToolContext, call: JsonObject
    ) -> ToolResult:
        """Call a tool.

        Raises:
            Unavailable: It is not there now.
            OutcomeUnknown: It broke off, or gave no sign of life.
        """
        connection, definition = self._connection, self._tools.get(tool)
        if connection is None or definition is None or tool not in self.offered:
            raise Unavailable(self.gone(tool))
        server = self.server
        lasts = server.timeout_secs, server.max_call_secs
        pulse = partial(Pulse, *lasts, context.progress)
        extra = repeated(carried(definition["inputSchema"]), call)
        asked = {"name": tool, "arguments": call}
        try:
            answer = await self._asked(connection, context, asked, pulse, extra)
        except RpcError as error:
            return ToolResult(f"the server refuses: {error}", is_error=True)
        except TimeoutError:
            self._news.set()
            silent = f"no sign of life for {server.timeout_secs:g} s"
            endless = f"no end after {server.max_call_secs:g} s"
            raise OutcomeUnknown(f"{silent}, or {endless}; it may have run") from None
        except Lost as error:
            self._news.set()
            raise OutcomeUnknown(f"{error.message}; it may have run") from error
        except AgentHostError:
            self._news.set()
            raise
        return result_from(answer)

    async def _asked(
        self,
        connection: Connection,
        context: ToolContext,
        call: JsonObject,
        pulse: Callable[[], Pulse],
        extra: Mapping[str, str],
    ) -> dict[str, Any]:
        """Ask until there is a result; what the server asks first, a person answers."""
        if self._midcall is not None:
            lasts = pulse()
            ask = partial(connection.ask, "tools/call", call, lasts, extra)
            return await self._midcall.call(call["name"], context, lasts, ask)
        asked = call
        for _ in range(ROUNDS):
            answer = await connection.ask("tools/call", asked, pulse(), extra)
            requests = answer.get("inputRequests")
            if requests is None or not connection.modern:
                return answer
            said = await answers(self.server, call["name"], context, requests)
            if said is None:
                return answer
            asked = {**call, "inputResponses": said}
            if "requestState" in answer:
                asked["requestState"] = answer["requestState"]
        raise Unavailable(f"the server asks more than {ROUNDS} times; nothing is sent")

    def gone(self, tool: str) -> str:
        """Why one of its tools is not on offer."""
        if self._connection is None:
            return f"the MCP server {self.server.name} is {self.state}: {self.reason}"
        if any(each.tool == tool for each in self.pending):
            return (
                f"the MCP server {self.server.name} changed it; a person must approve"
            )
        return f"the MCP server {self.server.name} no longer offers it"

    async def _connected(self) -> None:
        """Connect, and follow its tools until the connection is lost."""
        await self._check_launch()
        self.state = "connecting"
        self._news.clear()
        may = self.server.capabilities
        inbox = self._inbox = Inbox(self._news.set, may, self.server.told_roots)
        connection = await opened(self._host, self.server, inbox, self.door)
        hearing = asyncio.create_task(connection.run())
        try:
            async with asyncio.timeout(2 * SECONDS):
                self.version = await agree(connection, may)
                await self._list(connection)
            self._connection = connection
            if not connection.modern and may.keys() & {"elicitation", "sampling"}:
                self._midcall = Midcall(self.server, connection, inbox)
            self.state, self.reason = "connected", ""
            self._offer()
            await self._follow(connection, hearing)
        finally:
            self._connection = self._midcall = None
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            with suppress(Exception):
                async with asyncio.timeout(CLOSING):
                    await connection.close()

    async def _check_launch(self) -> None:
        pins = self._book.of(self.server.name)
        self.pending = pending_of(pins, self._launch, [])
        if any(each.change == "first" for each in self.pending):
            name = self.server.name
            await self._book.pin(name, self.pending, McpServerPinned)
            self.pending = []
        while self.pending:
            self._down("its command or address was changed; a person must approve it")
            self.state = "quarantined"
            self._again.clear()
            await self._again.wait()
            self.pending = pending_of(pins, self._launch, [])

    async def _follow(
        self, connection: Connection, hearing: asyncio.Task[None]
    ) -> None:
        wait = None if self.server.transport.type == "stdio" else REFRESH
        news = asyncio.create_task(self._news.wait())
        again = asyncio.create_task(self._again.wait())
        try:
            while True:
                await asyncio.wait(
                    {hearing, news, again},
                    timeout=wait,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if hearing.done():
                    hearing.result()
                    raise Lost("the connection ended")
                if again.done():
                    return
                await asyncio.sleep(SETTLE)
                self._news.clear()
                news.cancel()
                news = asyncio.create_task(self._news.wait())
                await self._list(connection)
                self._offer()
        finally:
            news.cancel()
            again.cancel()
            await asyncio.gather(news, again, return_exceptions=True)

    async def _list(self, connection: Connection) -> None:
        """Ask for its tools; what is met at first is agreed to as it is."""
        tools: dict[str, dict[str, Any]] = {}
        for said in await listed(connection):
            if (tool := readable(said)) and tool["name"] not in tools:
                tools[tool["name"]] = tool
        pins = self._book.of(self.server.name)
        pending = pending_of(pins, self._launch, tools.values())
        first = [each for each in pending if each.change == "first"]
        await self._book.pin(self.server.name, first, McpServerPinned)
        self._tools = tools

    def _offer(self) -> None:
        """Offer what was agreed to, and say what was not."""
        pins, tools = self._book.of(self.server.name), self._tools
        before = {each.digest for each in self.pending}
        self.pending = pending_of(pins, self._launch, tools.values())
        for each in self.pending:
            if each.digest not in before:
                log.warning(
                    "mcp server %s: tool %.100r is %s and waits for approval",
                    *(self.server.name, each.tool, each.change),
                )
        offered = {
            tool: pins[tool]
            for tool, said in tools.items()
            if tool in pins and pins[tool].digest == digest_of(said)
        }
        # A yes may come while the server is away; its tools are not there then.
        offered = offered if self._connection else {}
        if offered != self.offered:
            self.offered = offered
            self._tell()

    def _down(self, reason: str) -> None:
        if reason != self.reason:
            log.warning("mcp server %s: %s", self.server.name, reason)
        self.state, self.reason = "disconnected", reason
        if self.offered:
            self.offered = {}
            self._tell()


def readable(said: JsonObject) -> dict[str, Any] | None:
    """Take what is pinned of a tool; None where no agent could call it."""
    tool = definition_of(said)
    name, schema = tool.get("name"), tool.setdefault("inputSchema", {"type": "object"})
    if not isinstance(name, str) or not 0 < len(name) <= TOOL_NAME_LENGTH:
        return None
    if not isinstance(schema, dict) or not isinstance(tool.get("description", ""), str):
        return None
    try:
        carried(schema)
        size = len(json.dumps(tool))
    except (AgentHostError, ValueError, RecursionError):
        return None
    return tool if size <= DEFINITION_BYTES else None


def _reason(error: Exception) -> str:
    """Say why in one line, without a path or a stack."""
    if isinstance(error, AgentHostError):
        text = error.message
    elif isinstance(error, RpcError):
        text = f"it refuses: {error}"
    elif isinstance(error, TimeoutError):
        text = "it does not answer in time"
    else:
        text = describe(error)
    return " ".join(text.split())[:REASON_LENGTH]
