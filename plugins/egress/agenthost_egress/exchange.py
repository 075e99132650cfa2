"""Model calls over HTTP: what a dialect encodes is sent, what comes is decoded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from agenthost import (
    AgentHostError,
    Completion,
    Delta,
    Dialect,
    Driver,
    ModelCall,
    NotSent,
    OutcomeUnknown,
    ProviderError,
    ProviderFault,
    ProviderSpec,
    ReasoningChunk,
    TextChunk,
)

if TYPE_CHECKING:
    from types import TracebackType

    import httpx

ERROR_BYTES = 64 * 1024
DRAIN_BYTES = 64 * 1024
DRAIN_SECONDS = 0.25


class HttpExchange:
    """Runs model calls on the client that each brings along."""

    def open(self, spec: ProviderSpec, call: ModelCall) -> AsyncGenerator[Delta, None]:
        """Start the call with the driver or dialect that serves its model."""
        spoken = spec.spoken_to(call.request.model, call.endpoint.model)
        # Asking a Protocol costs more than the rest of this call's way.
        if hasattr(spoken, "stream"):
            return cast("Driver", spoken).stream(call)
        return self._stream(spoken, call)

    async def _stream(
        self, dialect: Dialect, call: ModelCall
    ) -> AsyncGenerator[Delta, None]:
        """Send what the dialect encodes and yield what it decodes.

        Raises:
            ProviderError: With the fault of the status, the body or the connection.
        """
        wire = dialect.encode(call.request, call.endpoint)
        decoder = dialect.decoder(call.request, call.endpoint)
        async with self.faults(call.endpoint.provider):
            request = call.http.build_request(
                wire.method,
                wire.url,
                headers=dict(wire.headers),
                content=wire.body,
                extensions=call.extensions,
            )
            # Each layer of generators around an answer costs a call a fiftieth.
            answer = await call.http.send(request, stream=True)
            try:
                if not answer.is_success:
                    body = await self.error_body(answer)
                    raise dialect.fault(
                        call.endpoint, answer.status_code, answer.headers, body
                    )
                chunks = answer.aiter_bytes()
                async for chunk in chunks:
                    deltas = decoder.feed(chunk)
                    call.progress(decoder.heard)
                    whole = bool(deltas) and isinstance(deltas[-1], Completion)
                    if whole:
                        # Before the last delta, since who has it asks for no more.
                        await _drain(chunks)
                    for delta in joined(deltas):
                        yield delta
                    if whole:
                        return
            finally:
                await answer.aclose()
            for delta in joined(decoder.close()):
                yield delta

    def faults(self, provider: str) -> AbstractAsyncContextManager[None]:
        """Name what can happen to a connection as faults of the provider.

        Raises:
            ProviderError: TIMEOUT or UNREACHABLE.
        """
        return _Faults(provider)

    async def error_body(self, answer: httpx.Response) -> bytes:
        """Read the beginning of an error answer: an endless one is cut."""
        body = b""
        async for chunk in answer.aiter_bytes():
            body += chunk[: ERROR_BYTES - len(body)]
            if len(body) >= ERROR_BYTES:
                break
        return body


class _Faults(AbstractAsyncContextManager[None]):
    """Names the faults of a connection.

    A class, for every model call comes by here: a generator takes three times as long.
    """

    __slots__ = ("_provider",)

    def __init__(self, provider: str) -> None:
        self._provider = provider

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Who has heard the last word closes us: that is no fault.
        if isinstance(error, Exception) and (fault := _fault(error)) is not None:
            raise ProviderError(fault[0], self._provider, fault[1]) from error


def _fault(error: Exception) -> tuple[ProviderFault, str] | None:
    import httpx

    match error:
        case httpx.TimeoutException():
            return ProviderFault.TIMEOUT, "no answer in time; try again"
        case NotSent() | httpx.ConnectError():
            remedy = "check the base_url and that the service is running"
            told = f"cannot be reached{_why(error)}; {remedy}"
            return ProviderFault.UNREACHABLE, told
        case OutcomeUnknown() | httpx.TransportError():
            return ProviderFault.UNREACHABLE, "the connection broke off"
        case _:
            return None


def _why(error: Exception) -> str:
    """Say what the system said of a connection; a name without an address has none."""
    number = getattr(error.__cause__, "errno", None) or 0
    return f" ({os.strerror(number)})" if number > 0 else ""


def joined(deltas: list[Delta]) -> list[Delta]:
    """Join words that arrived together: each delta costs every layer above."""
    if len(deltas) < 2:
        return deltas
    runs: list[Delta] = []
    for kind, run in groupby(deltas, type):
        alike = [*run]
        if kind is Completion or any(map(_SEALED, alike)):
            runs += alike
        elif kind is TextChunk:
            scores = tuple(chain.from_iterable(map(_SCORES, alike)))
            runs.append(TextChunk("".join(map(_WORDS, alike)), scores))
        else:
            runs.append(ReasoningChunk("".join(map(_WORDS, alike))))
    return runs


_WORDS, _SCORES, _SEALED = map(attrgetter, ("text", "logprobs", "opaque"))


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the rest of a body, within limits, so that its connection is used again."""
    import httpx

    read = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for chunk in chunks:
                read += len(chunk)
                if read > DRAIN_BYTES:
                    return
    except (TimeoutError, AgentHostError, httpx.HTTPError):
        # The answer is whole already; what follows it decides nothing.
        return
