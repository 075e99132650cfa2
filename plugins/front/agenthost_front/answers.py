"""The one error map, and how an answer becomes bytes."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Protocol

from agenthost import (
    AgentHostError,
    Answer,
    EventStream,
    Host,
    QuotaExceeded,
    RateLimited,
    Refused,
    Reply,
    Route,
    Unauthenticated,
)
from agenthost_values.value_class import value_class
from hypercorn.protocol.events import Body, EndBody, Event, Response
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from .asgi import Headers

JSON_TYPE = (b"content-type", b"application/json")
UPGRADE: Headers = [(b"upgrade", b"websocket"), (b"sec-websocket-version", b"13")]
RETRY_AFTER = (b"retry-after", b"60")
CHALLENGE = (b"www-authenticate", b"Bearer")
NO_FACTS: Mapping[str, str] = MappingProxyType({})
NO_CODING = (b"accept-encoding", b"identity")
INTERNAL = "internal error; the daemon's log has it under this x-request-id"

_SERVER_ERRORS = {
    400: ("bad_request", "the request is not proper HTTP/1.1"),
    426: ("upgrade_required", "this is a WebSocket; ask for it with an upgrade"),
    431: ("headers_too_large", "the headers are over 16 KiB; send fewer"),
    501: ("not_implemented", "transfer-encoding: only chunked is known here"),
}

_log = logging.getLogger("agenthost.front")


@value_class
class Plain:
    """A whole answer: status, headers without its length, and body."""

    status: int
    body: bytes
    headers: Headers = field(default_factory=lambda: [JSON_TYPE])


class Draining(AgentHostError):
    """The daemon is ending and takes no new work."""

    status = 503
    code = "draining"


class BodyTimeout(AgentHostError):
    """The body did not arrive in time."""

    status = 408
    code = "request_timeout"


class Encoded(AgentHostError):
    """The body has a coding that is not read here."""

    status = 415
    code = "unsupported_encoding"


def to_json(value: Any) -> bytes:
    """Write JSON compactly as UTF-8; models by alias, UUIDs and times as text."""
    try:
        return _COMPACT(value).encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form; JSON can still escape it.
        return json.dumps(value, separators=(",", ":"), default=_jsonable).encode()


def _jsonable(value: Any) -> Any:
    return to_jsonable_python(value, by_alias=True)


_COMPACT = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, default=_jsonable
).encode


def encode(answer: Answer, status: int) -> Plain | EventStream:
    """Turn a handler's answer into what is sent; ``status`` unless it names one."""
    if isinstance(answer, EventStream):
        return answer
    if isinstance(answer, Reply):
        return _encode_reply(answer)
    return Plain(status, _body(answer))


def _encode_reply(reply: Reply) -> Plain:
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in reply.headers.items()
    ]
    if isinstance(reply.body, bytes):
        return Plain(reply.status, reply.body, headers)
    if reply.body is None and reply.status in {204, 304}:
        return Plain(reply.status, b"", headers)
    if all(name != b"content-type" for name, _ in headers):
        headers.append(JSON_TYPE)
    return Plain(reply.status, _body(reply.body), headers)


def _body(value: Any) -> bytes:
    if isinstance(value, BaseModel):
        return value.model_dump_json(by_alias=True).encode()
    return to_json(value)


def error_body(
    message: str, code: str, facts: Mapping[str, str | int] = NO_FACTS
) -> bytes:
    """The body that every error has; ``facts`` stand beside its message."""
    return to_json({"error": message, "code": code, **facts})


class ErrorMap:
    """From an exception to the answer that tells of it.

    Args:
        on_panic: Called for every exception that nobody expected.
        host: Its guards are told where a principal had no right.
    """

    def __init__(self, on_panic: Callable[[], None], host: Host) -> None:
        self._on_panic = on_panic
        self._host = host

    def answer(
        self, error: BaseException, request_id: str, route: Route | None = None
    ) -> Plain:
        """Map an error; what is not of our tree is logged and shows nothing.

        Args:
            error: What was raised.
            request_id: Where.
            route: The one that was asked for; it may have words of its own.
        """
        if isinstance(error, Refused):
            self._host.guards.on_refused(error)
        if not isinstance(error, AgentHostError):
            self.panic(error, request_id)
            error = AgentHostError(INTERNAL)
        headers = [JSON_TYPE, *_remedies(error)]
        if route is not None and route.errors is not None:
            told = route.errors(self._host, error)
            if isinstance(told, Reply):
                headers, told = _with(headers, told.headers), told.body
            if route.id_header:
                told = {**told, "request_id": request_id}
            return Plain(error.status, to_json(told), headers)
        body = error_body(error.message, error.code, error.facts)
        return Plain(error.status, body, headers)

    def panic(self, error: BaseException, request_id: str) -> None:
        """Log and count an exception that nobody expected."""
        self._on_panic()
        _log.error("unhandled error in request %s", request_id, exc_info=error)


def _with(headers: Headers, others: Mapping[str, str]) -> Headers:
    """Add headers, in place of those of the same name."""
    added = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in others.items()
    ]
    named = {name for name, _ in added}
    return [*(each for each in headers if each[0] not in named), *added]


def _remedies(error: AgentHostError) -> Headers:
    if isinstance(error, RateLimited) and error.window:
        limit, left, wait = error.window
        return [
            RETRY_AFTER,
            (b"ratelimit-limit", b"%d" % limit),
            (b"ratelimit-remaining", b"%d" % left),
            (b"ratelimit-reset", b"%d" % wait),
        ]
    if isinstance(error, RateLimited | QuotaExceeded):
        return [RETRY_AFTER]
    if isinstance(error, Unauthenticated):
        return [CHALLENGE]
    if error.retry_in is not None:
        return [(b"retry-after", b"%d" % error.retry_in)]
    if isinstance(error, Encoded):
        return [NO_CODING]
    return []


def http_error(status: int, message: str, headers: Mapping[str, str]) -> Plain:
    """An error that Quart found: unknown route, wrong method and their like."""
    code = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}.get(
        status, "http_error"
    )
    pairs = [(k.lower().encode(), v.encode("latin-1")) for k, v in headers.items()]
    return Plain(status, error_body(message, code), [JSON_TYPE, *pairs])


def server_error(status: int, fault: str = "") -> Plain:
    """A whole answer, lengths and all, where no application answers; it is the last."""
    code, text = _SERVER_ERRORS.get(status, ("internal", INTERNAL))
    body = error_body(fault or text, code)
    headers = [JSON_TYPE, (b"content-length", b"%d" % len(body))]
    if status == 426:
        headers += [*UPGRADE, (b"connection", b"upgrade, close")]
    else:
        headers.append((b"connection", b"close"))
    return Plain(status, body, headers)


def socket_only(method: str, path: str) -> Plain:
    """The answer to a plain request where a WebSocket is served."""
    if method in {"GET", "HEAD"}:
        code, text = _SERVER_ERRORS[426]
        headers = [JSON_TYPE, *UPGRADE, (b"connection", b"upgrade")]
        return Plain(426, error_body(text, code), headers)
    text = f"method {method} is not allowed for {path}: it is a WebSocket"
    return http_error(405, text, {"Allow": "GET"})


def other_method(method: str, path: str, methods: Sequence[str]) -> Plain | None:
    """The answer to a method that a path does not have; None where there is no path."""
    if not methods:
        return None
    allowed = ", ".join(methods)
    if method == "OPTIONS":
        return Plain(200, b"", [(b"allow", allowed.encode())])
    text = f"method {method} is not allowed for {path}"
    return http_error(405, text, {"Allow": allowed})


class Sending(Protocol):
    """What of a stream of Hypercorn an answer needs."""

    stream_id: int
    send: Callable[[Event], Awaitable[None]]


async def send_whole(stream: Sending, plain: Plain, *, head: bool = False) -> None:
    """Answer in place of an application."""
    await stream.send(Response(stream.stream_id, plain.headers, plain.status))
    if not head:
        await stream.send(Body(stream.stream_id, plain.body))
    await stream.send(EndBody(stream.stream_id))
