"""MCP servers over HTTP, in this process: of the modern, the older, the first kind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from aiohttp import web

NO_METHOD = {"code": -32601, "message": "no such method"}
META = "io.modelcontextprotocol/protocolVersion"


class FakeHttp:
    """A server; ``heard`` are its requests: method, headers, message."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.tools = ["echo"]
        self.heard: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.url = ""
        self._streams: list[asyncio.Queue[str]] = []
        self.cuts: list[str] = []
        """Events before each end of a call's stream; the rest is asked for."""
        self._rest = ""
        self.breaks = False
        self.silent = False
        self.endpoint = "/mcp"
        """Where the first kind wants its requests."""
        self.padding = 0
        """Letters that no answer in JSON needs."""
        self.forgetful = False
        """Whether the session has ended when a tool is called."""

    async def _post(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.heard.append(("POST", headers, message))
        if "id" not in message:
            return web.Response(status=202)
        answer = self._answer(message)
        if self.kind == "sse":
            if message["method"] != "tools/call" or not self.silent:
                event = f"event: message\ndata: {json.dumps(answer)}"
                self._streams[-1].put_nowait(event)
            return web.Response(status=202)
        if message["method"] == "subscriptions/listen" and "result" in answer:
            return await self._stream(request, "")
        if message["method"] == "tools/call":
            return await self._called(request, answer)
        known = self.kind == "older" and message["method"] == "initialize"
        session = {"Mcp-Session-Id": "s1"} if known else {}
        status = 404 if answer.get("error") == NO_METHOD else 200
        answer["padding"] = "x" * self.padding
        return web.json_response(answer, status=status, headers=session)

    async def _called(
        self, request: web.Request, answer: dict[str, Any]
    ) -> web.StreamResponse:
        if self.forgetful:
            return web.Response(status=404)
        if self.cuts:
            self._rest = f"data: {json.dumps(answer)}"
            return await self._cut(request)
        return web.Response(
            text=f": hello\r\n\r\ndata: {json.dumps(answer)}\r\n\r\n",
            content_type="text/event-stream",
        )

    async def _get(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.heard.append(("GET", headers, {}))
        if "last-event-id" in headers:
            return await self._cut(request)
        return await self._stream(request, f"event: endpoint\ndata: {self.endpoint}")

    async def _cut(self, request: web.Request) -> web.StreamResponse:
        """Send a part of a call's stream, or in the end the rest."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        event = self.cuts.pop(0) if self.cuts else self._rest
        await response.write(f"{event}\n\n".encode())
        if self.breaks and event != self._rest and request.transport is not None:
            await asyncio.sleep(0.05)
            request.transport.abort()
        return response

    async def _delete(self, request: web.Request) -> web.Response:
        self.heard.append(("DELETE", dict(request.headers), {}))
        return web.Response()

    async def _stream(self, request: web.Request, first: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        news: asyncio.Queue[str] = asyncio.Queue()
        self._streams.append(news)
        while True:
            event = first or await news.get()
            first = ""
            await response.write(f"{event}\n\n".encode())

    def tell(self, method: str) -> None:
        """Send a notification to who listens."""
        said = json.dumps({"jsonrpc": "2.0", "method": method})
        for stream in self._streams:
            stream.put_nowait(f"data: {said}")

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        results: dict[str, Any] = {
            "tools/list": lambda: {"tools": [self._tool(each) for each in self.tools]},
            "tools/call": lambda: {
                "content": [
                    {"type": "text", "text": json.dumps(message["params"]["arguments"])}
                ]
            },
        }
        if self.kind == "modern":
            results["server/discover"] = lambda: {"supportedVersions": ["2026-07-28"]}
            results["subscriptions/listen"] = dict
        else:
            version = "2024-11-05" if self.kind == "sse" else "2025-06-18"
            results["initialize"] = lambda: {"protocolVersion": version}
        told = {"jsonrpc": "2.0", "id": message["id"]}
        make = results.get(message["method"])
        return {**told, "result": make()} if make else {**told, "error": NO_METHOD}

    def _tool(self, name: str) -> dict[str, Any]:
        city = {"type": "string", "x-mcp-header": "City"}
        return {"name": name, "inputSchema": {"properties": {"city": city}}}

    def app(self) -> web.Application:
        """What serves it."""
        app = web.Application()
        app.router.add_post("/mcp", self._post)
        app.router.add_get("/mcp", self._get)
        app.router.add_delete("/mcp", self._delete)
        return app

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Serve until the block ends."""
        runner = web.AppRunner(
            self.app(), shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        try:
            yield self
        finally:
            await runner.cleanup()
