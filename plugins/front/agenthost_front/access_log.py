"""The access log: a line for each request, written by a thread of its own.

A line has no query string and nothing of a body or a header. The logger
``agenthost.access`` gets whole lines; where they go is for whoever runs the daemon.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from asyncio import to_thread
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenthost import timestamp

from .asgi import ASGIApp, Event, Receive, Scope, Send
from .headers import STARTS

if TYPE_CHECKING:
    from agenthost import Host, Turn

MOST_WAITING = 10_000
LONGEST_PATH = 1_000
BREATH = 0.05
PATIENCE = 2.0

_log = logging.getLogger("agenthost.access")


@dataclass(slots=True)
class Entry:
    """What is told of a request; ``status`` is 0 where nobody was left to answer."""

    at: float
    client: str
    method: str
    path: str
    status: int = 0
    size: int = 0
    seconds: float = 0.0
    request_id: str = ""
    turn_id: str = ""
    agent_id: str = ""

    def as_json(self) -> str:
        """Write it as an object of JSON."""
        return json.dumps(dict(self._told()))

    def as_text(self) -> str:
        """Write it for people: what it was, what came of it, and the ids."""
        request = json.dumps(f"{self.method} {self.path}")
        ids = "".join(
            f" {name.removesuffix('_id')}={value}"
            for name, value in self._told()
            if name.endswith("_id")
        )
        return (
            f"{timestamp(self.at)} {self.client or '-'} {request} {self.status} "
            f"{self.size} {self.seconds:.3f}{ids}"
        )

    def _told(self) -> Iterator[tuple[str, str | int | float]]:
        yield "time", timestamp(self.at)
        yield "client", self.client
        yield "method", self.method
        yield "path", self.path
        yield "status", self.status
        yield "bytes", self.size
        yield "seconds", round(self.seconds, 6)
        for name in ("request_id", "turn_id", "agent_id"):
            if value := getattr(self, name):
                yield name, value


FORMS: dict[str, Callable[[Entry], str]] = {
    "text": Entry.as_text,
    "json": Entry.as_json,
}
_current: ContextVar[Entry] = ContextVar("access_log_entry")


class AccessLog:
    """The application, with a line written for whatever it was asked.

    Args:
        host: The daemon.
        app: The application.
        form: ``text`` or ``json``.
    """

    def __init__(self, host: Host, app: ASGIApp, form: str) -> None:
        self._host = host
        self._app = app
        self._lines = Lines(FORMS[form])
        self._deaf: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, and write down what was asked and what came of it."""
        entry = self._begin(
            str((scope.get("client") or ("",))[0]),
            scope.get("method", "GET"),
            scope["path"],
        )
        # Inherited by the tasks of the turns that the request starts.
        _current.set(entry)
        begun = self._host.clock.monotonic()

        async def noted(message: Event) -> None:
            if message["type"] in STARTS:
                entry.status = message.get("status", 101)
                names = dict(message.get("headers", ()))
                entry.request_id = names.get(b"x-request-id", b"").decode("latin-1")
            else:
                text = message.get("text") or ""
                entry.size += len(message.get("body", b"")) + len(text.encode())
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            entry.seconds = self._host.clock.monotonic() - begun
            self._lines.add(entry)

    def start(self) -> None:
        """Begin to write."""
        self._lines.start()
        self._deaf = self._host.turns.listen(_note)

    async def stop(self) -> None:
        """Write what waits, for a moment at most."""
        self._deaf()
        await self._lines.stop()

    def refused(self, client: str, method: str, status: int) -> None:
        """Write down what was no proper request."""
        entry = self._begin(client, method, "")
        entry.status = status
        self._lines.add(entry)

    def _begin(self, client: str, method: str, path: str) -> Entry:
        # A question mark that was escaped begins no query, but may be meant to.
        shown = path.partition("?")[0][:LONGEST_PATH]
        return Entry(self._host.clock.time(), client, method, shown)


def _note(turn: Turn) -> None:
    """Note the turn in the line of the request that started it."""
    entry = _current.get(None)
    # Turns that agents start of each other are no request's.
    if entry is not None and len(turn.context.chain) == 1:
        entry.turn_id, entry.agent_id = turn.id, turn.agent.id


class Lines:
    """Entries on their way to the log; when it cannot keep up, some are lost."""

    def __init__(self, form: Callable[[Entry], str]) -> None:
        self._form = form
        self._lost = 0
        self._waiting = queue.SimpleQueue[Entry | None]()
        self._ends = threading.Event()
        # It may stand still for ever behind a pipe that nobody reads.
        self._thread = threading.Thread(
            target=self._write, name="access-log", daemon=True
        )

    def add(self, entry: Entry) -> None:
        """Take an entry; returns at once."""
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(entry)
        else:
            self._lost += 1

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    async def stop(self) -> None:
        """Write what waits, for a moment at most."""
        self._ends.set()
        self._waiting.put(None)
        if self._thread.is_alive():
            await to_thread(self._thread.join, PATIENCE)

    def _write(self) -> None:
        while (entry := self._waiting.get()) is not None:
            _log.info("%s", self._form(entry))
            if self._lost:
                lost, self._lost = self._lost, 0
                logging.getLogger("agenthost.front").warning(
                    "the access log cannot keep up: %d lines were lost", lost
                )
            if self._waiting.empty():
                # To be woken for each request would cost more than to write it.
                self._ends.wait(BREATH)
