"""Every error of the wire, told as what the caller needs: did anything leave?"""

from __future__ import annotations

import httpx
from agenthost import AgentHostError, InvalidInput, NotSent, OutcomeUnknown, Unavailable

from .client import ENDED

Fault = AgentHostError | httpx.TimeoutException
_UNSENDABLE = "the URL, a header or the body cannot be sent"


def translated(error: Exception, request: httpx.Request) -> Fault:
    """Map an error of aiohttp or the socket below it.

    Args:
        error: What came up while connecting, sending or waiting for the answer.
        request: The request it belongs to.
    """
    import aiohttp

    host = request.url.host
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return httpx.ConnectTimeout(f"no connection to {host} in time", request=request)
    if isinstance(error, TimeoutError):
        return httpx.ReadTimeout(f"no answer from {host} in time", request=request)
    kinds: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Fault], ...] = (
        (aiohttp.ClientConnectorDNSError, NotSent(f"{host} has no address")),
        (aiohttp.ClientConnectorError, NotSent(f"{host} cannot be reached")),
        ((ValueError, TypeError), InvalidInput("request", _UNSENDABLE)),
        (RuntimeError, Unavailable(ENDED)),
    )
    unknown = OutcomeUnknown(f"{host} broke off; whether it acted is not known")
    return next((fault for kind, fault in kinds if isinstance(error, kind)), unknown)


def broken_body(error: Exception, request: httpx.Request) -> Fault:
    """Map an error that came up while the body of an answer was being read."""
    host = request.url.host
    if isinstance(error, TimeoutError):
        return httpx.ReadTimeout(f"{host} stopped sending", request=request)
    return OutcomeUnknown(f"the answer of {host} broke off")
