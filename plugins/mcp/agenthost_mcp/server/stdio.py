"""``agenthost mcp``: MCP over standard input and output, for the running daemon.

Each line is a message, and each answer a line. A line is handed to the daemon in a
thread of its own, so that answers may overtake each other, and a client can be asked
something before its call has ended.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from threading import Lock, Semaphore, Thread
from typing import Any, Protocol, TextIO

import click

from ..client.commands import login, logout

SECONDS = 3_600
AT_ONCE = 32
LONGEST = 4 * 1024 * 1024
PATH = "/mcp/stdio"
LISTEN = "subscriptions/listen"
"""It lasts as long as its client."""
PARSE, INVALID_REQUEST, INTERNAL = -32700, -32600, -32603


class Api(Protocol):
    """What the command line hands to commands: it asks the running daemon."""

    def events(
        self, path: str, body: object = None, *, timeout: float
    ) -> Iterable[tuple[str, Any]]:
        """Send JSON and yield the events of the answer."""


class Here(Protocol):
    """What the command line gives to commands."""

    def connect(self) -> Api:
        """Find the running daemon."""


class Bridge:
    """One client at a pipe.

    Args:
        here: Finds the daemon.
        out: Where messages go, and nothing else.
    """

    def __init__(self, here: Here, out: TextIO) -> None:
        self._here = here
        self._out = out
        self._lock = Lock()
        self._room = Semaphore(AT_ONCE)
        self._session = ""

    def run(self, lines: Iterable[str]) -> None:
        """Answer every line, until the input ends and all is answered."""
        answering: list[Thread] = []
        for line in lines:
            message = self._read(line) if line.strip() else None
            if message is None:
                continue
            if _method(message) == "initialize":
                # What follows belongs to the session that this gives.
                self._send(message)
                continue
            self._room.acquire()
            thread = Thread(target=self._answer, args=(message,), daemon=True)
            thread.start()
            answering = [each for each in answering if each.is_alive()]
            if _method(message) != LISTEN:
                answering.append(thread)
        for each in answering:
            each.join()

    def _read(self, line: str) -> Any:
        if len(line) > LONGEST:
            self._fail(None, INVALID_REQUEST, "the line is over 4 MiB")
            return None
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, PARSE, "the line is no JSON; send one JSON-RPC object")
            return None

    def _answer(self, message: Any) -> None:
        try:
            self._send(message)
        finally:
            self._room.release()

    def _send(self, message: Any) -> None:
        number = message.get("id") if isinstance(message, Mapping) else None
        path = f"{PATH}?session={self._session}" if self._session else PATH
        try:
            api = self._here.connect()
            for name, told in api.events(path, message, timeout=SECONDS):
                if name == "session":
                    self._session = told
                else:
                    self._write(told)
        except click.ClickException as error:
            if number is None:
                click.echo(error.message, err=True)
            else:
                self._fail(number, INTERNAL, error.message)

    def _fail(self, number: Any, code: int, problem: str) -> None:
        error = {"code": code, "message": problem}
        self._write({"jsonrpc": "2.0", "id": number, "error": error})

    def _write(self, message: Any) -> None:
        line = json.dumps(message)
        with self._lock:
            self._out.write(f"{line}\n")
            self._out.flush()


@click.group(invoke_without_command=True)
@click.pass_context
def mcp(context: click.Context) -> None:
    """Speak MCP over standard input and output, for the running daemon."""
    if context.invoked_subcommand is None:
        Bridge(context.obj, sys.stdout).run(sys.stdin)


mcp.add_command(login)
mcp.add_command(logout)


def _method(message: Any) -> Any:
    return message.get("method") if isinstance(message, Mapping) else None
