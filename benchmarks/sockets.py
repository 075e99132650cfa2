"""Hold many idle WebSockets open, each with its greeting read."""

from __future__ import annotations

import base64
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

SOCKETS_OF_AN_ADDRESS = 50


def allow_many_files() -> None:
    """Raise the soft limit of open files to the hard one, for us and our children."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextmanager
def held_open(port: int, path: str, count: int) -> Iterator[None]:
    """Open ``count`` WebSockets and hold them."""
    with ExitStack() as stack:
        for number in range(count):
            stack.enter_context(_opened(port, path, _address(number)))
        yield


def _address(number: int) -> str:
    """Give each group of sockets a loopback address: the daemon counts by address."""
    return f"127.0.1.{1 + number // SOCKETS_OF_AN_ADDRESS}"


def _opened(port: int, path: str, source: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10, (source, 0))
    key = base64.b64encode(b"sixteen bytes...").decode()
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nupgrade: websocket\r\n"
        f"connection: Upgrade\r\nsec-websocket-key: {key}\r\n"
        "sec-websocket-version: 13\r\n\r\n".encode()
    )
    answer = b""
    while b'"connected"' not in answer:
        more = connection.recv(4096)
        if not more or not answer.startswith(b"HTTP/1.1 101"[: len(answer)]):
            raise ConnectionError(f"the upgrade was answered {answer[:80]!r}")
        answer += more
    return connection
