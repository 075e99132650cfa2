"""Streams that a client opens to hear of changes, in both of the protocol's ages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from agenthost import Call, EventStream, HeldFrames, JsonObject

from . import rpc
from .answering import frame
from .changes import LISTS, Changes, frames
from .link import Link
from .methods import Server
from .rpc import Message, RpcError
from .sessions import Session
from .source import Visit

MOST_URIS = 256
ID = f"{rpc.META}subscriptionId"


def session_stream(call: Call, server: Server, session: Session) -> EventStream:
    """Open the stream of a session; there is one at a time.

    Raises:
        RpcError: It is open already, or too many listen.
    """
    if session.listening:
        told = "the session's stream is open already"
        raise RpcError(rpc.INVALID_REQUEST, told, status=409)
    visit = Visit(call.host, call.principal, Link())
    changes = Changes(server, visit, LISTS, lambda: session.subscribed)
    give_back = server.sessions.listen()
    session.listening = True

    async def heard() -> AsyncGenerator[bytes, None]:
        yield b": open\n\n"
        async for each in frames(call, changes, lambda m: m, session.ended.is_set):
            yield each

    def leave() -> None:
        session.listening = False
        give_back()

    return EventStream(HeldFrames(heard(), leave))


def listen(call: Call, server: Server, message: Message) -> EventStream:
    """Answer ``subscriptions/listen``: what is told comes in the answer.

    Raises:
        RpcError: It says not what it wants to hear, or too many listen.
    """
    wanted = (message.params or {}).get("notifications")
    if not isinstance(wanted, Mapping):
        raise RpcError(rpc.INVALID_PARAMS, "notifications must be an object")
    lists = [each for each in LISTS if wanted.get(f"{each}ListChanged") is True]
    uris = wanted.get("resourceSubscriptions") or []
    if not isinstance(uris, list) or len(uris) > MOST_URIS:
        told = f"resourceSubscriptions lists at most {MOST_URIS}"
        raise RpcError(rpc.INVALID_PARAMS, told)
    heard: dict[str, Any] = {f"{each}ListChanged": True for each in lists}
    if names := [str(uri) for uri in uris]:
        heard["resourceSubscriptions"] = names
    visit = Visit(call.host, call.principal, Link())
    changes = Changes(server, visit, lists, lambda: names)
    name = "notifications/subscriptions/acknowledged"
    begun = rpc.notification(name, {"notifications": heard})

    def marked(each: JsonObject) -> JsonObject:
        params = {**each["params"], "_meta": {ID: message.id}}
        return {**each, "params": params}

    async def told_of() -> AsyncGenerator[bytes, None]:
        yield frame(marked(begun))
        async for each in frames(call, changes, marked, lambda: False):
            yield each

    return EventStream(HeldFrames(told_of(), server.sessions.listen()))
