"""What comes from a server: answers, progress, news, and questions of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from time import monotonic
from types import TracebackType
from typing import Any, Protocol, Self

from .wire import NO_METHOD, Lost

FLOOD = 1_000
"""Messages within a second that nobody asked for: more, and the connection ends."""
Report = Callable[[float, float | None, str], object]


class Pulse:
    """The time that a request has: each sign of life begins it anew, up to an end.

    Args:
        seconds: So long it may be silent.
        most: So long it may take in all.
        report: Told of its progress.
    """

    def __init__(
        self, seconds: float, most: float | None = None, report: Report | None = None
    ) -> None:
        self._seconds = seconds
        self._end = asyncio.get_running_loop().time() + (most or seconds)
        self._report = report
        self._timeout = asyncio.timeout(None)
        self._runs = self._over = self._still = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._runs = True
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._runs = False
        await self._timeout.__aexit__(kind, error, trace)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let it be silent while something is done for it; its end stays."""
        self._still = True
        self._begin()
        try:
            yield
        finally:
            self._still = False
            self._begin()

    def end(self) -> None:
        """Have no time left: whoever waits hears :class:`TimeoutError`."""
        self._over = True
        self._begin()

    def beat(self, said: Mapping[str, Any]) -> None:
        """Take a notification of progress."""
        self._begin()
        done, total, text = (said.get(k) for k in ("progress", "total", "message"))
        if self._report is not None and isinstance(done, int | float):
            known = float(total) if isinstance(total, int | float) else None
            words = text[:500] if isinstance(text, str) else ""
            self._report(float(done), known, words)

    def _begin(self) -> None:
        if not self._runs or self._timeout.expired():
            return
        now = asyncio.get_running_loop().time()
        end = self._end if self._still else min(now + self._seconds, self._end)
        self._timeout.reschedule(now if self._over else end)


class Questions(Protocol):
    """Answers what a server asks in the midst of a call."""

    def take(self, message: Mapping[str, Any]) -> bool:
        """Answer a question later; False where the server may not ask for this."""

    def drop(self, said: object) -> None:
        """Answer a question no more: what the server says of which."""


class Inbox:
    """Sorts the messages of one connection.

    Args:
        changed: Called when the server says, or may have said, that it has other tools.
        capabilities: What servers of the modern revision may ask this client for.
        roots: What a server of a revision with sessions hears when it asks for them.

    Attributes:
        questions: Who answers the server's other questions; None while nobody does.
        roots: What the server hears of them from now on.
    """

    def __init__(
        self,
        changed: Callable[[], object],
        capabilities: Mapping[str, Any] | None = None,
        roots: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self.changed = changed
        self.capabilities = dict(capabilities or {})
        self.questions: Questions | None = None
        self.roots = [dict(each) for each in roots]
        self._ids = count(1)
        self._open: dict[int, tuple[asyncio.Future[dict[str, Any]], Pulse]] = {}
        self._lost: str = ""
        self._window, self._unasked = 0.0, 0

    def open(self, pulse: Pulse) -> tuple[int, asyncio.Future[dict[str, Any]]]:
        """Await an answer; its id is the token of its progress too.

        Raises:
            Lost: None will come any more.
        """
        if self._lost:
            raise Lost(self._lost)
        ident = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = (
            asyncio.get_running_loop().create_future()
        )
        self._open[ident] = answer, pulse
        return ident, answer

    def close(self, ident: int) -> None:
        """Await it no more."""
        self._open.pop(ident, None)

    def lose(self, reason: str) -> None:
        """Let every request fail that waits, and those to come."""
        self._lost = self._lost or reason
        for answer, _ in self._open.values():
            if not answer.done():
                answer.set_exception(Lost(self._lost))
                # Who asked may have left, and then nobody would read it.
                answer.exception()

    def take(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """Take a message in; a question of the server's has a reply.

        Raises:
            Lost: It sends more than anybody could want.
        """
        if "method" not in message:
            if not self._answered(message):
                self._count()
            return None
        self._count()
        method, params = message["method"], message.get("params")
        if "id" in message:
            if self.questions is not None and self.questions.take(message):
                return None
            return self._reply(message["id"], method)
        if method == "notifications/tools/list_changed":
            self.changed()
        elif method == "notifications/progress" and isinstance(params, dict):
            token = params.get("progressToken")
            # True is no 1, whatever Python says.
            if type(token) is int and token in self._open:
                self._open[token][1].beat(params)
        elif method == "notifications/cancelled" and self.questions is not None:
            self.questions.drop(params)
        return None

    def _reply(self, ident: object, method: object) -> dict[str, Any]:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": ident}
        if method == "ping":
            return {**answer, "result": {}}
        if method == "roots/list" and self.roots:
            return {**answer, "result": {"roots": self.roots}}
        # Nothing else was offered to it, or not outside of a call.
        return {**answer, "error": {"code": NO_METHOD, "message": "not offered"}}

    def _answered(self, message: Mapping[str, Any]) -> bool:
        ident = message.get("id")
        if type(ident) is not int or ident not in self._open:
            return False
        answer = self._open[ident][0]
        if not answer.done():
            answer.set_result(dict(message))
        return True

    def _count(self) -> None:
        now = monotonic()
        if now - self._window >= 1:
            self._window, self._unasked = now, 0
        self._unasked += 1
        if self._unasked > FLOOD:
            raise Lost(f"it sends over {FLOOD} messages a second that nobody asked for")
