"""Request bodies: bounded in size and time, read before anything is served."""

from __future__ import annotations

import asyncio

from agenthost import TooLarge

from .answers import BodyTimeout, Encoded
from .asgi import Event, Receive
from .dispatch import WRITES, Exchange
from .inbox import Inbox
from .settings import FrontSettings

_LINGER_BYTES = 32 * 1024 * 1024
_LINGER_SECONDS = 1.0


def has_body(exchange: Exchange) -> bool:
    """Tell whether a body may come."""
    headers = exchange.headers
    return (
        exchange.method in WRITES
        or headers.get("content-length", "0") != "0"
        or "transfer-encoding" in headers
    )


def check_length(exchange: Exchange, limit: int) -> None:
    """Refuse a body by what its headers say of it.

    Raises:
        TooLarge: It is announced to be over the limit.
    """
    length = exchange.headers.get("content-length", "0")
    if length.isdigit() and int(length) > limit:
        raise _too_large(limit)


def check_coding(exchange: Exchange) -> None:
    """Refuse a body that is compressed.

    Raises:
        Encoded: It is.
    """
    coding = exchange.headers.get("content-encoding", "identity")
    if coding.lower() not in {"identity", ""}:
        raise Encoded(f"content-encoding: {coding[:64]!r} is not read here; send none")


def patience(settings: FrontSettings, exchange: Exchange, limit: int) -> float:
    """Seconds for a body to arrive: more where it is announced to be longer.

    Who announces little gets no more of them, however much the route would take.
    """
    length = exchange.headers.get("content-length", "")
    size = min(int(length), limit) if length.isdigit() else limit
    return settings.body_timeout * max(size / settings.body_limit, 1.0)


async def read(receive: Receive, limit: int, seconds: float) -> bytes | None:
    """Read a whole body; None when the client left before its end.

    Raises:
        TooLarge: It grew over the limit.
        BodyTimeout: It did not arrive in time.
    """
    body = _Body(limit)
    # Most bodies come with their heads: a timer would be made for nothing.
    while isinstance(receive, Inbox) and receive.some:
        if body.ends_with(await receive()):
            return body.whole
    try:
        async with asyncio.timeout(seconds):
            while not body.ends_with(await receive()):
                pass
    except TimeoutError as error:
        raise BodyTimeout(f"the body did not arrive within {seconds:g} s") from error
    return body.whole


class _Body:
    """A body as it comes; ``whole`` is None while it is not there."""

    def __init__(self, limit: int) -> None:
        self.whole: bytes | None = None
        self._limit = limit
        self._chunks: list[bytes] = []
        self._size = 0

    def ends_with(self, message: Event) -> bool:
        """Take a message; True where nothing comes after it.

        Raises:
            TooLarge: The body grew over the limit.
        """
        if message["type"] == "http.disconnect":
            return True
        chunk = message.get("body", b"")
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > self._limit:
            raise _too_large(self._limit)
        if message.get("more_body"):
            return False
        self.whole = b"".join(self._chunks)
        return True


async def discard(receive: Receive) -> None:
    """Read on for a moment after a refusal, so that a reset does not overtake it."""
    size = 0
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while size < _LINGER_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body"):
                    return
    except TimeoutError:
        return


class BufferedReceive:
    """A ``receive`` that gives a body already read, then what comes after it."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.gone = False
        self._body: bytes | None = body
        self._receive = receive
        self._left = False
        self._waiting: asyncio.Task[object] | None = None

    async def __call__(self) -> Event:
        """The next message."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        try:
            self._waiting = asyncio.current_task()
            message = await self._receive()
        except asyncio.CancelledError:
            # Our own cancelling, to wake it, is taken back; one that somebody else
            # asked for meanwhile still counts, and goes on.
            if not self._left or self._waiting is None or self._waiting.uncancel():
                raise
            message = {"type": "http.disconnect"}
        finally:
            self._waiting = None
        self.gone = self.gone or message["type"] == "http.disconnect"
        return message

    def leave(self) -> None:
        """Tell who receives that the client has left.

        Quart, when cancelled, leaves its handler running; told this, it does not.
        """
        if not self._left and self._waiting is not None:
            self._left = True
            self._waiting.cancel()


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body is over the limit of {limit} bytes")
