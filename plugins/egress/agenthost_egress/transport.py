"""An httpx transport over aiohttp: guarded, capped, and honest about what left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, cast

import httpx
from agenthost import (
    CHECK_HOST,
    CONTEXT,
    FINAL_URL,
    EgressPolicy,
    Guard,
    Guards,
    InvalidInput,
    OutcomeUnknown,
    QuotaExceeded,
    TooLarge,
    Unavailable,
    UrlCase,
)

from .client import ENDED
from .decode import Decoder, UnknownCoding
from .faults import broken_body, translated
from .redirects import is_redirect, next_request
from .session import ASKED, limits, open_session
from .target import Target, target_of

if TYPE_CHECKING:
    import aiohttp
    import yarl

    from .traffic import Meter, Traffic

RawHeaders = Sequence[tuple[bytes, bytes]]
_PIECE = 256 * 1024
_SLOWEST = 32 * 1024
_WIRE_ERRORS = (OSError, ValueError, TypeError, RuntimeError)
# Those of the connection are ours to set; the caller's would confuse the wire.
_HOP_HEADERS = frozenset(
    {
        b"host",
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"expect",
    }
)
_UNCHUNKED = _HOP_HEADERS | {b"content-length"}


class EgressTransport(httpx.AsyncBaseTransport):
    """Send requests of one policy through its own aiohttp session.

    Raises, whatever the layer below does: Blocked, InvalidInput, NotSent,
    OutcomeUnknown, QuotaExceeded, TooLarge, Unavailable, and of httpx ConnectTimeout
    (nothing was sent), ReadTimeout, TooManyRedirects and, for a redirect that is handed
    back with a broken place, RemoteProtocolError.
    """

    def __init__(
        self, policy: EgressPolicy, guards: Guards, traffic: Traffic | None = None
    ) -> None:
        self._policy = policy
        self._guards = guards
        self._traffic = traffic
        self._session: aiohttp.ClientSession | None = None
        # Opening takes its time: two requests that come first must not open two.
        self._opening = asyncio.Lock()
        self._closed = False
        self._usual = httpx.Timeout(policy.timeout).as_dict()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, following at most the policy's number of redirects."""
        total, hops = self._policy.total_timeout, self._policy.max_redirects
        if not hops:
            return await self._send(request, total)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + total if total else None
        while True:
            left = None
            if deadline is not None:
                left = max(deadline - loop.time(), 0.001)
            response = await self._send(request, left)
            if not is_redirect(response):
                return response
            await response.aclose()
            if not hops:
                raise httpx.TooManyRedirects("too many redirects", request=request)
            hops -= 1
            request = next_request(request, response)

    async def aclose(self) -> None:
        """Close every connection; requests that still run fail."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _send(
        self, request: httpx.Request, seconds: float | None
    ) -> httpx.Response:
        target = target_of(request.url)
        check_host = request.extensions.get(CHECK_HOST)
        if check_host is not None:
            check_host(target.host)
        context = request.extensions.get(CONTEXT)
        allowed = self._policy.allowed_hosts
        case = UrlCase(target.scheme, target.host, target.port, allowed, context)
        self._guards.check(Guard.URL, case)
        meter = self._traffic.of(context) if self._traffic is not None else None
        whole = isinstance(request.stream, httpx.ByteStream)
        body = request.content if whole else None
        if meter is not None:
            meter.add(len(body or b""))
        session = self._session or await self._open()
        timeout = self._timeout(session, request, seconds)
        patience = _sending_time(request, body)
        token = ASKED.set((target.host, context))
        try:
            asked = session.request(
                request.method,
                _same_place(str(request.url), target),
                headers=_headers(request, body),
                data=_data(request, body),
                allow_redirects=False,
                timeout=timeout,
            )
            if patience is None:
                answer = await asked
            else:
                async with asyncio.timeout(patience):
                    answer = await asked
        except _wire_errors() as error:
            raise translated(error, request) from error
        finally:
            ASKED.reset(token)
        return self._response(answer, request, meter)

    async def _open(self) -> aiohttp.ClientSession:
        async with self._opening:
            if self._closed:
                raise Unavailable(ENDED)
            if self._session is None:
                self._session = await open_session(self._policy, self._guards)
        return self._session

    def _timeout(
        self,
        session: aiohttp.ClientSession,
        request: httpx.Request,
        seconds: float | None,
    ) -> aiohttp.ClientTimeout:
        asked = request.extensions.get("timeout", self._usual)
        if seconds == self._policy.total_timeout and asked == self._usual:
            return session.timeout
        return limits(seconds, asked.get("connect"), asked.get("read"))

    def _response(
        self,
        answer: aiohttp.ClientResponse,
        request: httpx.Request,
        meter: Meter | None,
    ) -> httpx.Response:
        try:
            decoder = Decoder(answer.headers.get("Content-Encoding", ""))
        except UnknownCoding as error:
            answer.close()
            raise OutcomeUnknown(
                f"{request.url.host} answered in a coding that was not asked for"
            ) from error
        headers: RawHeaders = answer.raw_headers
        body = _Body(answer, request, decoder, self._policy.max_bytes)
        body.meter = meter
        if decoder.active:
            coded = (b"content-encoding", b"content-length")
            headers = [h for h in headers if h[0].lower() not in coded]
        response = DecodedResponse(
            answer.status,
            stream=body,
            extensions={
                "http_version": b"HTTP/1.1",
                "reason_phrase": (answer.reason or "").encode("ascii", "replace"),
                FINAL_URL: str(request.url),
            },
        )
        response.raw = headers
        # The empty ones that httpx begins with stand before those that are read.
        del response.headers
        return response


class DecodedResponse(httpx.Response):
    """An answer whose body comes decoded: httpx would hand each piece on twice more.

    Its headers are read when they are asked for: an answer of a model has twenty, of
    which a call that went well reads none.
    """

    raw: RawHeaders = ()

    @cached_property
    def headers(self) -> httpx.Headers:  # type: ignore[override]  # reason: can be set
        """What the answer says of itself."""
        return httpx.Headers(self.raw)

    def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """Give the body, in pieces as they come unless they are to have a size."""
        if chunk_size is not None or self.is_stream_consumed or self.is_closed:
            return super().aiter_bytes(chunk_size)
        self.is_stream_consumed = True
        return cast("_Body", self.stream).__aiter__()

    async def aclose(self) -> None:
        """Close the body; it raises nothing that would have to name the request."""
        if not self.is_closed:
            self.is_closed = True
            await cast("_Body", self.stream).aclose()


class _Body(httpx.AsyncByteStream):
    """The decoded body of an answer, read as it arrives and cut at the cap."""

    def __init__(
        self,
        answer: aiohttp.ClientResponse,
        request: httpx.Request,
        decoder: Decoder,
        limit: int | None,
    ) -> None:
        self._answer = answer
        self._request = request
        self._decoder = decoder
        self._limit = limit
        self.meter: Meter | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read, decoder = 0, self._decoder
        try:
            async for chunk in self._answer.content.iter_any():
                if self.meter is not None:
                    self._count(self.meter, len(chunk))
                for piece in decoder.feed(chunk) if decoder.active else (chunk,):
                    read += len(piece)
                    self._within(read)
                    yield piece
            decoder.finish()
            await self.aclose()
        except _wire_errors() as error:
            self._answer.close()
            raise broken_body(error, self._request) from error

    def _within(self, read: int) -> None:
        if self._limit is not None and read > self._limit:
            self._answer.close()
            raise TooLarge(
                f"the answer of {self._request.url.host} is over {self._limit} bytes"
            )

    def _count(self, meter: Meter, size: int) -> None:
        try:
            meter.add(size)
        except QuotaExceeded:
            self._answer.close()
            raise

    async def aclose(self) -> None:
        if self._answer.content.at_eof():
            self._answer.release()
        else:
            self._answer.close()


def _wire_errors() -> tuple[type[Exception], ...]:
    import aiohttp

    return (aiohttp.ClientError, *_WIRE_ERRORS)


@lru_cache(maxsize=256)
def _same_place(url: str, target: Target) -> yarl.URL:
    """Hand the URL on byte for byte, once the second parser sees the same place.

    Raises:
        InvalidInput: It does not.
    """
    import yarl

    read = yarl.URL(url.partition("#")[0], encoded=True)
    host = (read.raw_host or "").lower().rstrip(".")
    if (read.scheme, host, read.port) != (target.scheme, target.host, target.port):
        raise InvalidInput("url", "it can be read in more than one way")
    return read


def _sending_time(request: httpx.Request, body: bytes | None) -> float | None:
    """Seconds in which a large body must have been taken and answered.

    The wire's own timers watch reading only: a peer that never reads would hold us.
    """
    if body is None or len(body) <= _PIECE:
        return None
    patience: dict[str, float | None] = request.extensions.get("timeout", {})
    connect, read = patience.get("connect"), patience.get("read")
    if connect is None or read is None:
        return None
    return connect + read + len(body) / _SLOWEST


def _headers(request: httpx.Request, body: bytes | None) -> list[tuple[str, str]]:
    whole = body is not None and len(body) <= _PIECE
    dropped = _UNCHUNKED if whole else _HOP_HEADERS
    raw = [each for each in request.headers.raw if each[0].lower() not in dropped]
    try:
        return [(name.decode("ascii"), value.decode("ascii")) for name, value in raw]
    except UnicodeDecodeError:
        # httpx finds out the coding by decoding them all.
        coding = request.headers.encoding
        return [(name.decode(coding), value.decode(coding)) for name, value in raw]


def _data(
    request: httpx.Request, body: bytes | None
) -> bytes | AsyncIterable[bytes] | None:
    if body is not None:
        return _pieces(body) if len(body) > _PIECE else body or None
    if isinstance(request.stream, httpx.AsyncByteStream):
        return request.stream
    raise InvalidInput("body", "an asynchronous client needs an asynchronous body")


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), _PIECE):
        yield content[start : start + _PIECE]
