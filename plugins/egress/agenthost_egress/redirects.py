"""The next request of a redirect, carrying nothing that was meant for another host."""

from __future__ import annotations

import httpx
from agenthost import Blocked, OutcomeUnknown

STATUSES = frozenset({301, 302, 303, 307, 308})
_TO_STRANGERS = frozenset(
    {"accept", "accept-language", "accept-encoding", "user-agent", "content-type"}
)


def is_redirect(response: httpx.Response) -> bool:
    """Tell whether the answer names another place."""
    return response.status_code in STATUSES and "location" in response.headers


def next_request(request: httpx.Request, response: httpx.Response) -> httpx.Request:
    """Build the request that the redirect asks for.

    A foreign origin gets neither credentials nor any header of the caller's own.

    Raises:
        Blocked: It leads from https to http.
        OutcomeUnknown: The place is not a URL, or the body cannot be sent twice.
    """
    url = _place(request, response)
    if request.url.scheme == "https" and url.scheme == "http":
        raise Blocked(f"{request.url.host} redirects from https to http")
    method = _method(request.method, response.status_code)
    content = None if method != request.method else _replayable(request)
    return httpx.Request(
        method,
        url,
        headers=_headers(request, url),
        content=content or None,
        extensions=request.extensions,
    )


def _place(request: httpx.Request, response: httpx.Response) -> httpx.URL:
    try:
        return request.url.join(response.headers["location"])
    except (httpx.InvalidURL, ValueError) as error:
        raise OutcomeUnknown(
            f"{request.url.host} redirects to something that is not a URL"
        ) from error


def _method(method: str, status: int) -> str:
    if status == 303 and method != "HEAD":
        return "GET"
    if status in (301, 302) and method == "POST":
        return "GET"
    return method


def _replayable(request: httpx.Request) -> bytes:
    if not isinstance(request.stream, httpx.ByteStream):
        raise OutcomeUnknown(
            f"{request.url.host} redirects a request whose body cannot be sent twice"
        )
    return request.content


def _headers(request: httpx.Request, url: httpx.URL) -> list[tuple[str, str]]:
    same = (url.scheme, url.host, url.port) == (
        request.url.scheme,
        request.url.host,
        request.url.port,
    )
    return [
        (name, value)
        for name, value in request.headers.multi_items()
        if name not in ("host", "content-length", "transfer-encoding")
        and (same or name in _TO_STRANGERS)
    ]
