"""The headers of every answer, made once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import ContextVar

from .asgi import Event, Headers, Send

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
PERMISSIONS = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer",
        "camera",
        "display-capture",
        "geolocation",
        "gyroscope",
        "microphone",
        "payment",
        "usb",
    )
)

CONSTANT: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"strict-transport-security", b"max-age=63072000; includeSubDomains"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", PERMISSIONS.encode()),
)
ALWAYS = frozenset(CONSTANT)
LINES = b"".join(b"%s: %s\r\n" % pair for pair in CONSTANT)
"""The same as they stand in the head of an answer."""
NO_STORE = (b"cache-control", b"no-store")
PRIVATE = ("/api", "/v1", "/metrics", "/openapi.json", "/mcp", "/a2a")

_OURS = frozenset(name for name, _ in CONSTANT) | {b"x-request-id", b"server"}
STARTS = frozenset(
    {"http.response.start", "websocket.http.response.start", "websocket.accept"}
)

answered_by_layer: ContextVar[bool] = ContextVar("answered_by_layer", default=False)
"""Whether the answer now being written carries our headers already."""


class SendWrapper:
    """The ``send`` of one exchange: it puts our headers on whatever answers."""

    def __init__(self, send: Send, path: str, request_id: str) -> None:
        self.started = False
        self.extra: Headers = [*CONSTANT, (b"x-request-id", request_id.encode())]
        self._target = send
        self._dropped = _OURS
        if path.startswith(PRIVATE):
            self.extra.append(NO_STORE)
            self._dropped = _OURS | {NO_STORE[0]}

    async def __call__(self, message: Event) -> None:
        """Pass a message on; yield once for each chunk or frame that it brings."""
        if message["type"] in STARTS:
            await self._start(message)
            return
        await self._target(message)
        if message.get("more_body") or message["type"] == "websocket.send":
            # A source that never suspends would starve everybody else.
            await asyncio.sleep(0)

    async def _start(self, message: Event) -> None:
        self.started = True
        headers = self._own(message.get("headers", ())) + self.extra
        # Stays set in this exchange's task: a refused upgrade is written later.
        answered_by_layer.set(True)
        try:
            await self._target({**message, "headers": headers})
        except BaseException:
            answered_by_layer.set(False)
            raise

    def _own(self, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        return [pair for pair in headers if pair[0].lower() not in self._dropped]
