"""Revisions before 2026: a client initializes and has a session from then on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from agenthost import Answer, Call, InvalidInput, JsonObject, Reply

from . import rpc
from .answering import Outcome, Told, answered, outcome_of
from .link import LEVELS
from .methods import (
    INSTRUCTIONS,
    METHODS,
    Inquiry,
    Method,
    Server,
    implementation,
    ping,
)
from .rpc import LEGACY, Message, RpcError
from .sessions import MOST_SUBSCRIPTIONS, Session, SessionLink
from .tools import charge

SESSION = "mcp-session-id"
MOST_AT_ONCE = 32
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}


async def set_level(asked: Inquiry) -> dict[str, Any]:
    """Send lines of log from this level on."""
    level = asked.text("level")
    if level not in LEVELS:
        told = f"level must be one of {', '.join(LEVELS)}"
        raise RpcError(rpc.INVALID_PARAMS, told)
    _session(asked).level = level
    return {}


async def subscribe(asked: Inquiry) -> dict[str, Any]:
    """Tell of changes of a resource, on the session's stream."""
    wanted, uri = _session(asked).subscribed, asked.text("uri")
    if len(wanted) >= MOST_SUBSCRIPTIONS and uri not in wanted:
        told = f"at most {MOST_SUBSCRIPTIONS} resources; unsubscribe from some"
        raise RpcError(rpc.INVALID_PARAMS, told)
    wanted.add(uri)
    return {}


async def unsubscribe(asked: Inquiry) -> dict[str, Any]:
    """Tell no more of them."""
    _session(asked).subscribed.discard(asked.text("uri"))
    return {}


LEGACY_METHODS: Mapping[str, Method] = {
    **METHODS,
    "ping": ping,
    "logging/setLevel": set_level,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
}


def initialize(call: Call, server: Server, message: Message) -> Reply:
    """Begin a session.

    Raises:
        RpcError: It is not asked as it should be.
    """
    params = message.params or {}
    wanted, able = params.get("protocolVersion"), params.get("capabilities", {})
    if not isinstance(wanted, str) or not isinstance(able, Mapping):
        told = "initialize takes protocolVersion and capabilities"
        raise RpcError(rpc.INVALID_PARAMS, told)
    version = wanted if wanted in LEGACY else LEGACY[-1]
    session = server.sessions.begin(call.principal, version, _declared(able))
    result = {
        "protocolVersion": version,
        "capabilities": CAPABILITIES,
        "serverInfo": implementation(call.host),
        "instructions": INSTRUCTIONS,
    }
    number = message.id
    return Reply(rpc.result_of(number, result), 200, {"Mcp-Session-Id": session.id})


def session_of(call: Call, server: Server) -> Session:
    """Find the session that a request names.

    Raises:
        RpcError: It names none, or none of the principal's.
    """
    number = call.headers.get(SESSION)
    if number is None:
        told = "initialize first, and send the Mcp-Session-Id that you get"
        raise RpcError(rpc.INVALID_REQUEST, told)
    return server.sessions.find(number, call.principal)


async def answer(call: Call, server: Server, value: Any, *, streams: bool) -> Answer:
    """Answer what is posted in a session.

    Raises:
        RpcError: It is no message, or one of another revision.
        RateLimited: It costs more than there is.
    """
    if isinstance(value, Mapping) and value.get("method") == "initialize":
        message = rpc.message_of(value)
        if message.id is None:
            raise RpcError(rpc.INVALID_REQUEST, "initialize is a request; give an id")
        return initialize(call, server, message)
    session = session_of(call, server)
    messages = _messages(session, value)
    requests = [each for each in messages if _is_request(session, each)]
    charge(call, sum(each.method == "tools/call" for each in requests))
    if not requests:
        return Reply(b"", 202)
    if not isinstance(value, list):
        return await _one(call, server, session, requests[0], streams=streams)
    if len({each.id for each in requests}) < len(requests):
        raise RpcError(rpc.INVALID_REQUEST, "two requests of the batch have one id")
    _check_room(session, requests)
    begun = [
        _begun(call, server, session, each, Told(streams=False)) for each in requests
    ]
    # Of what is cancelled there is no answer; who leaves cancels all of them.
    outcomes = await asyncio.gather(*begun, return_exceptions=True)
    return Reply([each[1] for each in outcomes if not isinstance(each, BaseException)])


async def _one(
    call: Call, server: Server, session: Session, message: Message, *, streams: bool
) -> Answer:
    told = Told(streams=streams)
    _check_room(session, [message])
    task = _begun(call, server, session, message, told)
    return await answered(task, told)


def _check_room(session: Session, requests: Sequence[Message]) -> None:
    if any(each.id in session.calls for each in requests):
        raise RpcError(rpc.INVALID_REQUEST, "a request with this id is under way")
    if len(session.calls) + len(requests) > MOST_AT_ONCE:
        told = f"more than {MOST_AT_ONCE} requests would be under way; wait for some"
        raise RpcError(rpc.INVALID_REQUEST, told)


def _begun(
    call: Call, server: Server, session: Session, message: Message, told: Told
) -> asyncio.Task[Outcome]:
    """Begin what is asked, in a task that the client may cancel by its id."""
    number, params = message.id, message.params or {}
    assert number is not None  # noqa: S101 - a request has an id
    link = SessionLink(session, params)
    link.tell = told if told.streams else None
    asked = Inquiry(call, server, link, params, session.version)
    task = asyncio.create_task(_done(asked, number, message.method))

    def cancel() -> None:
        task.cancel()
        told.end()

    session.calls[number] = cancel
    task.add_done_callback(lambda _: session.calls.pop(number, None))
    return task


async def _done(asked: Inquiry, number: rpc.Id, method: str) -> Outcome:
    status, message = await outcome_of(asked, number, _method(method))
    # What went wrong with a good request is told by the message alone.
    return (status if status >= 500 else 200), message


def _method(name: str) -> Method:
    async def unknown(_: Inquiry) -> dict[str, Any]:
        raise RpcError(rpc.NO_METHOD, f"there is no method {name[:128]!r}")

    return LEGACY_METHODS.get(name, unknown)


def _messages(session: Session, value: Any) -> list[Message]:
    if not isinstance(value, list):
        return [rpc.message_of(value)]
    if session.version not in rpc.BATCHING:
        told = f"revision {session.version} has no batches; send one message"
        raise RpcError(rpc.INVALID_REQUEST, told)
    if not 0 < len(value) <= MOST_AT_ONCE:
        told = f"a batch has 1 to {MOST_AT_ONCE} messages"
        raise RpcError(rpc.INVALID_REQUEST, told)
    return [rpc.message_of(each) for each in value]


def _is_request(session: Session, message: Message) -> bool:
    """Take what is no request; tell whether it is one."""
    if message.answer is not None:
        session.answered(message.answer, message.id)
        return False
    if message.id is not None:
        return True
    if message.method == "notifications/cancelled":
        cancelled: Any = (message.params or {}).get("requestId")
        is_id = isinstance(cancelled, str | int)
        cancel = session.calls.get(cancelled) if is_id else None
        if cancel is not None:
            cancel()
    return False


def _declared(able: JsonObject) -> JsonObject:
    """What a client can do; of more than anybody declares nothing is kept."""
    if len(able) > 64:
        raise InvalidInput("capabilities", "there are more than 64")
    return {str(name)[:64]: {} for name in able}


def _session(asked: Inquiry) -> Session:
    link = asked.link
    assert isinstance(link, SessionLink)  # noqa: S101 - only sessions have these
    return link.session
