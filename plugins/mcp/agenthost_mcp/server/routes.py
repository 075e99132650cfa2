"""``/mcp``: which of the protocol's three forms a request has, and its answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from agenthost import Answer, Call, EventStream, Host, Reply, RouteGroup
from typing_extensions import TypedDict

from . import legacy, modern, rpc
from .answering import Told, answered, frame, outcome_of
from .challenges import written
from .link import Link
from .listening import listen, session_stream
from .methods import METHODS, Inquiry, Method, Server, ping
from .modern import LISTEN, MODERN_METHODS, ModernLink, Signer
from .rpc import Message, RpcError
from .sessions import Sessions
from .stock import Stock
from .tools import ROUTE_COST, Tools, charge

RIGHT = "mcp:use"
BODY_BYTES = 4 * 1024 * 1024
BARE_METHODS: Mapping[str, Method] = {**METHODS, "ping": ping}
ONLY_POST = {"Allow": "POST"}
TAKES: Mapping[str, Any] = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["jsonrpc", "method"],
            "properties": {
                "jsonrpc": {"const": "2.0"},
                "id": {"type": ["string", "integer"]},
                "method": {"type": "string"},
                "params": {"type": "object"},
            },
        }
    }
}


SENT = {
    "MCP-Protocol-Version": "The revision that is spoken",
    "Mcp-Session-Id": "The session of a revision before 2026",
    "Mcp-Method": "The method, from 2026 on",
    "Mcp-Name": "What the method names, from 2026 on",
}


class RpcAnswer(TypedDict, total=False):
    """A JSON-RPC answer: a result or an error."""

    jsonrpc: str
    id: str | int | None
    result: dict[str, Any]
    error: dict[str, Any]


FAILED = dict.fromkeys((400, 401, 403, 404, 405, 409, 413, 429, 500, 503), RpcAnswer)
"""Errors are told as JSON-RPC tells them, whoever found them."""


class McpEvents(TypedDict):
    """What a stream holds: answers, and before them notifications and requests."""

    message: dict[str, Any]


class Endpoint:
    """``/mcp`` of one daemon."""

    def __init__(self) -> None:
        self._server: Server | None = None

    def server(self, host: Host) -> Server:
        """What is kept for it, made at the first request."""
        if self._server is None:
            sessions, signer = Sessions(host.clock), Signer(host.clock)
            self._server = Server(Tools(), Stock(host), sessions, signer)
        return self._server

    async def post(self, call: Call, body: bytes) -> Answer:
        """Answer a message of MCP, in the form that it has."""
        value: Any = None
        try:
            value = rpc.read(body)
            return await self._answer(call, value)
        except RpcError as error:
            told = rpc.error_of(rpc.id_in(value), error)
            return Reply(told, error.status)

    async def stdio(self, call: Call, body: bytes) -> Answer:
        """Answer a message that came over a pipe, always as a stream.

        What headers say of a request is taken from the message itself; the id of a
        session that begins is told in an event of its own.
        """
        headers = {"accept": "text/event-stream"}
        if session := call.query.get("session"):
            headers[legacy.SESSION] = session
        try:
            value = rpc.read(body)
            if is_modern(replace(call, headers=headers), value):
                headers |= _headers_of(call, rpc.message_of(value))
        except RpcError:
            # Whoever answers it finds the same, and says so.
            pass
        answer = await self.post(replace(call, headers=headers), body)
        return answer if isinstance(answer, EventStream) else EventStream(_told(answer))

    async def get(self, call: Call) -> Answer:
        """Open a session's stream."""
        await self.server(call.host).stock.refresh()
        return self._of_session(call, partial(session_stream, call))

    async def delete(self, call: Call) -> Answer:
        """End a session."""

        def end(server: Server, session: Any) -> Answer:
            server.sessions.end(session)
            return Reply(None, 204)

        return self._of_session(call, end)

    def _of_session(self, call: Call, do: Any) -> Answer:
        if legacy.SESSION not in call.headers:
            told = RpcError(
                rpc.INVALID_REQUEST, "without a session there is POST alone"
            )
            return Reply(rpc.error_of(None, told), 405, ONLY_POST)
        server = self.server(call.host)
        try:
            answer: Answer = do(server, legacy.session_of(call, server))
        except RpcError as error:
            return Reply(rpc.error_of(None, error), error.status)
        return answer

    async def _answer(self, call: Call, value: Any) -> Answer:
        server = self.server(call.host)
        if is_modern(call, value):
            return await _modern(call, server, value)
        version, session = _of_version(call), legacy.SESSION in call.headers
        begins = isinstance(value, Mapping) and value.get("method") == "initialize"
        if version or session or begins:
            streams = _takes_streams(call)
            return await legacy.answer(call, server, value, streams=streams)
        return await _bare(call, server, value)


def is_modern(call: Call, value: Any) -> bool:
    """Tell whether a request is one of revision 2026-07-28, or tries to be."""
    message = value if isinstance(value, Mapping) else {}
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    if isinstance(meta, Mapping) and f"{rpc.META}protocolVersion" in meta:
        return True
    if version := _of_version(call):
        return version not in rpc.LEGACY
    return "mcp-method" in call.headers and message.get("method") != "initialize"


async def _bare(call: Call, server: Server, value: Any) -> Answer:
    """Answer a request that says nothing of itself, as it stands."""
    message = rpc.message_of(value)
    if message.id is None or message.answer is not None:
        return Reply(b"", 202)
    method = BARE_METHODS.get(message.method)
    if method is None:
        error = RpcError(rpc.NO_METHOD, f"there is no method {message.method[:128]!r}")
        return Reply(rpc.error_of(message.id, error))
    charge(call, int(message.method == "tools/call"))
    asked = Inquiry(call, server, Link(), message.params or {}, rpc.LEGACY[-1])
    _, told = await outcome_of(asked, message.id, method)
    return Reply(told)


async def _modern(call: Call, server: Server, value: Any) -> Answer:
    message = rpc.message_of(value)
    number, params = message.id, message.params or {}
    if message.answer is not None:
        raise RpcError(rpc.INVALID_REQUEST, "nobody was asked anything here")
    if number is None:
        return Reply(b"", 202)
    modern.check(call, message)
    if message.method == LISTEN:
        await server.stock.refresh()
        return listen(call, server, message)
    method = MODERN_METHODS.get(message.method)
    if method is None:
        told = f"there is no method {message.method[:128]!r}"
        raise RpcError(rpc.NO_METHOD, told, status=404)
    if message.method == "tools/call":
        _check_parameters(call, params)
        charge(call, 1)
    link = ModernLink(call, server.signer, message.method, params)
    asked = Inquiry(call, server, link, params, rpc.MODERN)

    async def run(inquiry: Inquiry) -> dict[str, Any]:
        result = await method(inquiry)
        return modern.completed(inquiry, message.method, result)

    if not _takes_streams(call):
        status, told_whole = await outcome_of(asked, number, run)
        return Reply(told_whole, status)
    link.tell = told_first = Told(streams=True)
    task = asyncio.create_task(outcome_of(asked, number, run))
    return await answered(task, told_first)


def _headers_of(call: Call, message: Message) -> dict[str, str]:
    tool = call.host.toolbox.tools.get(str((message.params or {}).get("name")))
    schema = tool.definition.parameters if tool is not None else {}
    return modern.headers_for(message, schema)


async def _told(answer: Answer) -> AsyncGenerator[bytes, None]:
    if not isinstance(answer, Reply):
        return
    if session := answer.headers.get("Mcp-Session-Id"):
        yield b"event: session\ndata: %s\n\n" % json.dumps(session).encode()
    if answer.body:
        yield frame(answer.body)


def _check_parameters(call: Call, params: Mapping[str, Any]) -> None:
    tool = call.host.toolbox.tools.get(str(params.get("name")))
    arguments = params.get("arguments")
    if tool is not None and isinstance(arguments, Mapping):
        modern.check_parameters(call, tool.definition.parameters, arguments)


def _of_version(call: Call) -> str:
    return call.headers.get("mcp-protocol-version", "").strip()


def _takes_streams(call: Call) -> bool:
    return "text/event-stream" in call.headers.get("accept", "")


def group() -> RouteGroup:
    """The routes of one daemon."""
    routes, endpoint = RouteGroup("mcp.server", errors=written), Endpoint()
    facts: dict[str, Any] = {"scope": RIGHT, "cost": ROUTE_COST, "headers": SENT}

    @routes.post(
        "/mcp",
        body=bytes,
        takes=TAKES,
        answer=RpcAnswer,
        others={202: None, **FAILED},
        events=McpEvents,
        body_limit=BODY_BYTES,
        direct=True,
        **facts,
    )
    async def speak_mcp(call: Call, body: bytes) -> Answer:
        """Answer a message of the Model Context Protocol.

        The answer is an event stream where something is told before it, and where the
        client takes one.
        """
        return await endpoint.post(call, body)

    @routes.get(
        "/mcp",
        answer=EventStream,
        events=McpEvents,
        others=FAILED,
        direct=True,
        **facts,
    )
    async def hear_mcp(call: Call) -> Answer:
        """Open the stream of a session."""
        return await endpoint.get(call)

    @routes.delete("/mcp", answer=None, status=204, others=FAILED, direct=True, **facts)
    async def end_mcp_session(call: Call) -> Answer:
        """End a session."""
        return await endpoint.delete(call)

    @routes.post(
        "/mcp/stdio",
        body=bytes,
        takes=TAKES,
        answer=EventStream,
        events=McpEvents,
        others=FAILED,
        body_limit=BODY_BYTES,
        direct=True,
        scope=RIGHT,
        cost=ROUTE_COST,
    )
    async def speak_mcp_over_a_pipe(call: Call, body: bytes) -> Answer:
        """Answer a message that `agenthost mcp` has read from its input."""
        return await endpoint.stdio(call, body)

    return routes
