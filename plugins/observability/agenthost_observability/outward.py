"""What an exporter's own thread sends goes out by the daemon's one client.

The exporters of OTLP bring ``requests``; its sessions let another adapter do the
sending. Redirects are not followed, and proxies of the environment not used.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from agenthost import AgentHostError, Egress, EgressPolicy
from httpx import HTTPError
from requests import ConnectionError as NotConnected
from requests import PreparedRequest, Response, Session, Timeout
from requests.adapters import BaseAdapter

LONGEST = 10.0
"""Seconds for one sending, which an exporter may shorten."""
ANSWER_BYTES = 2**20


class Outward(BaseAdapter):
    """Sends the requests of a session, once it is open."""

    def __init__(self) -> None:
        super().__init__()
        self._way: tuple[asyncio.AbstractEventLoop, Egress] | None = None

    def session(self) -> Session:
        """Make a session that has no other way out."""
        made = Session()
        made.trust_env = False
        for scheme in ("http://", "https://"):
            made.mount(scheme, self)
        return made

    def open(self, egress: Egress) -> None:
        """Let requests go out; called on the loop that the client belongs to."""
        self._way = asyncio.get_running_loop(), egress

    def close(self) -> None:
        """The client is the daemon's, and is closed by it."""

    def send(
        self, request: PreparedRequest, *_: Any, timeout: Any = None, **__: Any
    ) -> Response:
        """Send what a thread wants sent, and wait for the answer.

        Raises:
            requests.ConnectionError: It could not be sent, or may not be.
            requests.Timeout: There was no answer in time.
        """
        if self._way is None:
            raise NotConnected("the daemon does not serve yet", request=request)
        loop, egress = self._way
        seconds = timeout if isinstance(timeout, int | float) else LONGEST
        sending = asyncio.run_coroutine_threadsafe(_sent(egress, request), loop)
        try:
            return sending.result(seconds)
        except TimeoutError as error:
            sending.cancel()
            raise Timeout("no answer in time", request=request) from error
        except (AgentHostError, HTTPError) as error:
            raise NotConnected(str(error), request=request) from error


async def _sent(egress: Egress, request: PreparedRequest) -> Response:
    url = str(request.url)
    # The operator wrote this address into the daemon's environment; it may be local.
    host = frozenset({urlsplit(url).hostname or ""})
    policy = EgressPolicy(
        "opentelemetry", host, LONGEST, total_timeout=LONGEST, max_bytes=ANSWER_BYTES
    )
    body = request.body or b""
    answer = await egress.client(policy).request(
        str(request.method),
        url,
        headers=dict(request.headers),
        content=body if isinstance(body, bytes) else str(body).encode(),
    )
    told = Response()
    told.status_code, told.reason = answer.status_code, answer.reason_phrase
    told.headers.update(answer.headers)
    told.url, told.request = url, request
    told._content = answer.content  # noqa: SLF001 what requests' own adapters fill in
    return told
