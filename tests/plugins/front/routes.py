"""Routes for tests: each plain and direct, good and bad."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import UUID

from agenthost import (
    Answer,
    Call,
    Conflict,
    EventStream,
    NotFound,
    QuotaExceeded,
    Reply,
    RouteGroup,
    Socket,
)
from pydantic import BaseModel


@dataclass
class Seen:
    """What the handlers noticed."""

    opened: int = 0
    closed: int = 0
    cancelled: int = 0
    calls: list[Call] = field(default_factory=list)
    sockets_ended: int = 0
    release: asyncio.Event = field(default_factory=asyncio.Event)


class Greeting(BaseModel):
    """A body."""

    message: str
    times: int = 1


class Paging(BaseModel):
    """A query."""

    page: int = 1


class Greeted(BaseModel):
    """An answer."""

    said: str


def everything(seen: Seen) -> list[RouteGroup]:
    """The whole set, served by Quart under /api and directly under /v1."""
    group, directly = RouteGroup("everything"), RouteGroup("directly")
    add_routes(group, seen, "/api", direct=False)
    add_routes(directly, seen, "/v1", direct=True)
    add_sockets(group, seen)

    @group.get("/", scope="ui:read", public=True)
    async def page(call: Call) -> Answer:
        return Reply(b"<p>hello", headers={"content-type": "text/html"})

    return [group, directly]


def add_routes(group: RouteGroup, seen: Seen, at: str, *, direct: bool) -> None:
    """Add the HTTP routes below a prefix."""
    add_reads(group, seen, at, direct=direct)
    add_writes(group, at, direct=direct)
    add_things(group, at, direct=direct)
    add_endings(group, seen, at, direct=direct)


def add_reads(group: RouteGroup, seen: Seen, at: str, *, direct: bool) -> None:
    """Add what only reads."""

    @group.get(f"{at}/health", scope="system:read", public=True, cost=1, direct=direct)
    async def health(call: Call) -> Answer:
        seen.calls.append(call)
        return {"status": "ok"}

    @group.get(f"{at}/private", scope="system:read", direct=direct, query=Paging)
    async def private(call: Call, query: Paging) -> Answer:
        seen.calls.append(call)
        return {"who": call.principal.kind, "page": query.page}


def add_writes(group: RouteGroup, at: str, *, direct: bool) -> None:
    """Add what takes bodies."""

    @group.post(
        f"{at}/greet",
        scope="x:write",
        body=Greeting,
        answer=Greeted,
        status=201,
        direct=direct,
        cost=30,
    )
    async def greet(call: Call, body: Greeting) -> Answer:
        """Say it."""
        return Greeted(said=body.message * body.times)

    @group.post(f"{at}/raw", scope="x:write", body=bytes, direct=direct, body_limit=9)
    async def raw(call: Call, body: bytes) -> Answer:
        return {"size": len(body)}

    @group.post(f"{at}/touch", scope="x:write", direct=direct)
    async def touch(call: Call) -> Answer:
        return {"touched": True}


def add_things(group: RouteGroup, at: str, *, direct: bool) -> None:
    """Add what has parameters in its path."""

    @group.get(f"{at}/things/<thing_id>", scope="x:read", direct=direct)
    async def thing(call: Call, thing_id: UUID) -> Answer:
        return {"id": str(thing_id)}

    @group.delete(f"{at}/things/<thing_id>", scope="x:write", direct=direct)
    async def forget(call: Call, thing_id: UUID) -> Answer:
        return Reply(None, status=204)

    @group.get(f"{at}/keys/<path:key>", scope="x:read", direct=direct)
    async def key(call: Call, key: str) -> Answer:
        return [key]


def add_endings(group: RouteGroup, seen: Seen, at: str, *, direct: bool) -> None:
    """Add what fails, waits and streams."""

    @group.get(f"{at}/fail/<kind>", scope="x:read", direct=direct)
    async def fail(call: Call, kind: str) -> Answer:
        if kind == "header":
            return Reply(b"", headers={"x-odd": "a\nb"})
        raise {
            "missing": NotFound("thing", "x"),
            "conflict": Conflict("it is there already"),
            "quota": QuotaExceeded("no tokens left"),
            "bug": RuntimeError("secret /etc/path SELECT 1"),
            "cancel": asyncio.CancelledError(),
        }[kind]

    @group.get(f"{at}/wait", scope="x:read", direct=direct)
    async def wait(call: Call) -> Answer:
        seen.opened += 1
        try:
            await seen.release.wait()
        except asyncio.CancelledError:
            seen.cancelled += 1
            raise
        return {"waited": True}

    @group.post(f"{at}/stream/<kind>", scope="x:read", direct=direct)
    async def post_stream(call: Call, kind: str) -> Answer:
        return EventStream(frames(seen, kind))

    @group.get(f"{at}/stream/<kind>", scope="x:read", direct=direct)
    async def stream(call: Call, kind: str) -> Answer:
        return EventStream(frames(seen, kind))


async def frames(seen: Seen, kind: str) -> AsyncIterator[bytes]:
    """Frames: three, endless, endless without a pause, silent, or broken."""
    seen.opened += 1
    try:
        number = 0
        while kind != "three" or number < 3:
            yield b"data: %d\n\n" % number
            number += 1
            if kind == "endless":
                await asyncio.sleep(0.001)
            elif kind == "silent":
                await seen.release.wait()
                return
            elif kind == "broken":
                raise RuntimeError("secret in the middle")
    finally:
        seen.closed += 1


def add_sockets(group: RouteGroup, seen: Seen) -> None:
    """Add the WebSockets."""

    @group.socket("/api/echo/<thing_id>", scope="x:read", cost=3)
    async def echo(socket: Socket, thing_id: UUID) -> None:
        if thing_id.int == 0:
            raise NotFound("thing", str(thing_id))
        await socket.accept()
        await socket.send(f"hello {socket.call.principal.kind}")
        while (text := await socket.receive()) is not None:
            if text == "bug":
                raise RuntimeError("secret")
            if text == "bye":
                return
            await socket.send(text)
        seen.sockets_ended += 1

    @group.socket("/api/flood", scope="x:read")
    async def flood(socket: Socket) -> None:
        await socket.accept()
        try:
            while True:
                await socket.send("x" * 50_000)
        finally:
            seen.sockets_ended += 1

    @group.socket("/api/deaf", scope="x:read")
    async def deaf(socket: Socket) -> None:
        await socket.accept()
        try:
            await seen.release.wait()
        finally:
            seen.sockets_ended += 1
