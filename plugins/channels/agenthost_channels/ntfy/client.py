"""ntfy's HTTP API. Sources: https://docs.ntfy.sh/publish and /subscribe/api."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import httpx
from agenthost import (
    AgentHostError,
    NotFound,
    NotSent,
    OutcomeUnknown,
    Secret,
    Unauthenticated,
    Unavailable,
)

from ..contract import Fate, Line, Sent
from ..transports.calls import as_sent, called, object_of, unlogged

if TYPE_CHECKING:
    from collections.abc import Iterator

OK, UNAUTHORIZED, FORBIDDEN, TOO_MANY, SERVER_ERROR = 200, 401, 403, 429, 500
SECONDS = 30.0
# A server says that it is there every 45 seconds, or as often as it is told to.
QUIET_SECONDS = 300.0
LONGEST_LINE = 1 << 20
BAD_LOGIN = (
    "the ntfy server refuses who we are; set NTFY_TOKEN anew, or user and NTFY_PASSWORD"
)


class Client:
    """One ntfy server with our token, or our name and password, or neither."""

    def __init__(self, line: Line, server: str, user: str, topics: list[str]) -> None:
        self._line = line
        self._server = server.rstrip("/")
        self._user = user
        self._topics = topics

    def _login(self) -> dict[str, str]:
        if (token := self._line.secret("token")) is not None:
            return {"authorization": f"Bearer {token.reveal()}"}
        password = self._line.secret("password")
        if not self._user or password is None:
            return {}
        pair = base64.b64encode(f"{self._user}:{password.reveal()}".encode())
        return {"authorization": f"Basic {pair.decode()}"}

    @contextmanager
    def _unlogged(self) -> Iterator[None]:
        """Keep topics out of httpx's log: on a public server their names are keys."""
        with ExitStack() as stack:
            for topic in self._topics:
                stack.enter_context(unlogged(Secret(f"/{topic}")))
            yield

    async def call(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Call the server.

        Raises:
            NotSent: It never left.
            OutcomeUnknown: It may have arrived, and no answer came.
        """
        url, client = f"{self._server}/{path}", self._line.http()
        with self._unlogged():
            return await called(
                client, method, url, headers=self._login(), timeout=SECONDS, **given
            )

    async def publish(
        self, topic: str, query: dict[str, str], body: bytes
    ) -> tuple[Sent, dict[str, Any]]:
        """Publish to a topic; tell what became of it, and what the server says."""
        try:
            answered = await self.call("PUT", topic, params=query, content=body)
        except AgentHostError as error:
            return as_sent(error), {}
        said = object_of(answered)
        return _fate(answered, said), said

    async def lines(
        self, path: str, query: dict[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Give the lines of a stream until it ends.

        Raises:
            Unauthenticated: We may not read that.
            Unavailable: The server is not there, has fallen silent, or is none.
        """
        client = self._line.http()
        timeout = httpx.Timeout(SECONDS, read=QUIET_SECONDS)
        request = client.build_request(
            "GET",
            f"{self._server}/{path}",
            params=query,
            headers=self._login(),
            timeout=timeout,
        )
        try:
            with self._unlogged():
                answered = await client.send(request, stream=True)
            try:
                await _let_in(answered)
                async for line in _lines(answered):
                    yield line
            finally:
                await answered.aclose()
        except (httpx.TransportError, NotSent, OutcomeUnknown) as error:
            kind = type(error).__name__
            raise Unavailable(f"the connection to ntfy broke: {kind}") from None

    async def account(self) -> str:
        """Ask the server who we are; "" for nobody.

        Raises:
            Unauthenticated: It refuses our token or password.
            Unavailable: It does not answer as it should.
        """
        answered = await self.call("GET", "v1/account")
        await _let_in(answered)
        name = object_of(answered).get("username")
        return name if isinstance(name, str) and name != "*" else ""

    async def file(self, url: str) -> bytes:
        """Fetch a file that the server keeps; others are not asked for.

        Raises:
            NotFound: It is gone, or somewhere else.
        """
        ours = f"{self._server}/file/"
        path = url.removeprefix(ours)
        if not url.startswith(ours) or not path.replace(".", "").isalnum():
            raise NotFound("file", "on the ntfy server")
        answered = await self.call("GET", f"file/{path}")
        if answered.status_code != OK:
            raise NotFound("file", "on the ntfy server")
        return answered.content


async def _let_in(answered: httpx.Response) -> None:
    status = answered.status_code
    if status == OK:
        return
    await answered.aread()
    if status == UNAUTHORIZED:
        raise Unauthenticated(BAD_LOGIN)
    if status == FORBIDDEN:
        raise Unauthenticated(
            "the ntfy server lets us not read one of topics; see its access list"
        )
    raise Unavailable(f"ntfy: {_reason(answered, object_of(answered))}")


async def _lines(answered: httpx.Response) -> AsyncIterator[bytes]:
    """Split at line ends alone: httpx would split at any of Unicode's."""
    rest = b""
    async for chunk in answered.aiter_bytes():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > LONGEST_LINE:
            raise Unavailable("ntfy sent a line over 1 MB")


def _fate(answered: httpx.Response, said: dict[str, Any]) -> Sent:
    status = answered.status_code
    if status == OK and isinstance(said.get("id"), str):
        return Sent(Fate.DELIVERED, str(said.get("sequence_id") or said["id"]))
    reason = f"ntfy: {_reason(answered, said)}"
    if status == OK or status >= SERVER_ERROR:
        return Sent(Fate.UNKNOWN, reason=reason)
    if status == TOO_MANY:
        after = answered.headers.get("retry-after", "")
        seconds = float(after) if after.isdecimal() else None
        return Sent(Fate.NOT_SENT, reason=reason, retry_after=seconds)
    if status == UNAUTHORIZED:
        return Sent(Fate.NOT_SENT, reason=BAD_LOGIN)
    return Sent(Fate.NOT_SENT, reason=reason, final=True)


def _reason(answered: httpx.Response, said: dict[str, Any]) -> str:
    words = f"{answered.status_code} {said.get('code', '')} {said.get('error', '')}"
    return "".join(sign for sign in words if sign.isprintable())[:200].strip()
