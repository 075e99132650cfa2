"""The httpx client that plugins get: straight from its surface to our transport."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import httpx

_UNSAID = (None, httpx.USE_CLIENT_DEFAULT)
_SIMPLE = frozenset({"headers", "content", "extensions"})


class DirectClient(httpx.AsyncClient):
    """Sends without httpx's own redirects, cookies and credentials.

    The transport follows redirects itself, and the other two are switched off; what
    httpx does for them would cost half of its time a call (``make bench`` shows it on
    a message). A caller that asks for credentials or redirects gets httpx's own way.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, **settings: Any) -> None:
        super().__init__(transport=transport, **settings)
        self._way = transport
        own = [_line(*each) for each in self.headers.raw]
        self._own = {line[1]: line for line in own}
        self._patience = self.timeout.as_dict()

    def build_request(
        self, method: str, url: httpx.URL | str, **facts: Any
    ) -> httpx.Request:
        """Build a request; a URL that comes often is read once."""
        if isinstance(url, str):
            url = _read(url)
        headers, content = facts.get("headers"), facts.get("content") or b""
        simple = facts.keys() <= _SIMPLE or _SIMPLE.issuperset(
            name for name, fact in facts.items() if fact not in _UNSAID
        )
        simple = simple and not url.is_relative_url
        if not (simple and isinstance(headers, dict) and isinstance(content, bytes)):
            return super().build_request(method, url, **facts)
        named = {b"host": (b"Host", b"host", url.netloc), **self._own}
        if content:
            length = b"%d" % len(content)
            named[b"content-length"] = (b"Content-Length", b"content-length", length)
        for line in map(_line, headers, headers.values()):
            named[line[1]] = line
        request = httpx.Request(
            method,
            url,
            stream=httpx.ByteStream(content),
            extensions={
                "timeout": dict(self._patience),
                **(facts.get("extensions") or {}),
            },
        )
        # httpx would look at each line again, and read the body that is there.
        request.headers._list = list(named.values())  # noqa: SLF001 - as above
        request._content = content  # noqa: SLF001 - likewise
        return request

    async def send(
        self, request: httpx.Request, *, stream: bool = False, **wishes: Any
    ) -> httpx.Response:
        """Send a request; its body is read unless it streams."""
        if wishes and any(
            wish is not httpx.USE_CLIENT_DEFAULT for wish in wishes.values()
        ):
            return await super().send(request, stream=stream, **wishes)
        response = await self._way.handle_async_request(request)
        response.request = request
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response


def _line(name: str | bytes, value: str | bytes) -> tuple[bytes, bytes, bytes]:
    """Write a header as httpx keeps it."""
    name = name if isinstance(name, bytes) else name.encode("ascii")
    value = value if isinstance(value, bytes) else value.encode("ascii")
    return name, name.lower(), value


@lru_cache(maxsize=256)
def _read(url: str) -> httpx.URL:
    return httpx.URL(url)
