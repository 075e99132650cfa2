"""The listening socket, and who is let in by it."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Mapping
from types import MappingProxyType

from agenthost import ConfigError, Conflict

from .connection import Connection, Site

BACKLOG = 1024
# Connections taken in one go, so that those that are open are served between two.
_AT_ONCE = 64
_MANY = 1024 * 1024
_BACK_OFF = 0.25
_TELL_EVERY = 1.0
NO_SECONDS: Mapping[str, float] = MappingProxyType({})
TLS_SECONDS = {"ssl_handshake_timeout": 10.0, "ssl_shutdown_timeout": 2.0}
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_log = logging.getLogger("agenthost.front.server")


def listen(host: str, port: int, peer_timeout: float) -> socket.socket:
    """Open the listening socket; port 0 takes a free one.

    Raises:
        Conflict: The port is taken.
        ConfigError: The address cannot be listened on.
    """
    try:
        found = socket.getaddrinfo(
            host.encode() if host.isascii() else host,
            port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )
    except OSError as error:
        raise ConfigError(f"listen_addr: {host!r} has no address") from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.settimeout(0)
        # Connections of the last process that are still closing must not keep the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Without it a peer that never reads holds its task for ever.
        timeout = int(peer_timeout * 1000)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _refused(error, host, port) from error
    return listener


def _refused(error: OSError, host: str, port: int) -> ConfigError | Conflict:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            f"port {port} of {host} is taken; stop what uses it or set listen_addr"
        )
    reason = errno.errorcode.get(error.errno or 0, "error")
    return ConfigError(f"listen_addr: cannot listen on {host} port {port} ({reason})")


def raise_descriptor_limit() -> int:
    """Let this process open as many files as it may; return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        # Some systems tell a hard limit that they do not grant.
        return soft
    return wanted


class Door:
    """Takes connections from a listening socket while there is room for them.

    asyncio's own way in tries a thousand times in a row when no descriptor is left,
    and logs each.
    """

    def __init__(self, listener: socket.socket, site: Site) -> None:
        self._listener = listener
        self._site = site
        self._loop = asyncio.get_running_loop()
        self._coming: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._refusals = 0
        self._told = -_TELL_EVERY

    def open(self) -> None:
        """Begin to take connections."""
        self._pause = None
        self._loop.add_reader(self._listener, self._accept)

    async def close(self) -> None:
        """Take no more; those that are just coming in are in when this returns."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        if self._coming:
            await asyncio.wait(self._coming, timeout=1)
        for late in self._coming:
            late.cancel()

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                peer, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._back_off(error)
                return
            self._let_in(peer, (str(address[0]), int(address[1])))

    def _let_in(self, peer: socket.socket, client: tuple[str, int]) -> None:
        connections = self._site.connections
        if connections.crowded(client[0]):
            self._refuse(peer, "an address has its [server] connections_per_address")
            return
        if connections.full and not connections.make_room():
            self._refuse(peer, "too many connections are open and none of them rests")
            return
        peer.settimeout(0)
        connection = Connection(self._site, client)
        connections.add(connection)
        coming = self._loop.create_task(self._greet(connection, peer))
        self._coming.add(coming)
        coming.add_done_callback(self._coming.discard)

    async def _greet(self, connection: Connection, peer: socket.socket) -> None:
        """Hand the socket to its connection, after a handshake where TLS is spoken."""
        tls = self._site.tls
        seconds = TLS_SECONDS if tls else NO_SECONDS
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection, peer, ssl=tls, **seconds
            )
        except (OSError, asyncio.CancelledError):
            # It was counted when it came, and nobody else will ever end it.
            self._site.connections.remove(connection)
            peer.close()

    def _refuse(self, peer: socket.socket, reason: str) -> None:
        peer.close()
        self._tell(reason)

    def _back_off(self, error: OSError) -> None:
        if error.errno not in _EXHAUSTED:
            self._tell(f"a connection could not be taken: {error.strerror}")
            return
        self._loop.remove_reader(self._listener)
        # A connection that was ended gives its descriptor back in the next round.
        wait = 0 if self._site.connections.make_room() else _BACK_OFF
        self._pause = self._loop.call_later(wait, self.open)
        self._tell("no file descriptor is left; raise the limit (ulimit -n)")

    def _tell(self, reason: str) -> None:
        self._refusals += 1
        now = self._loop.time()
        if now - self._told >= _TELL_EVERY:
            _log.warning("%s; %d times since last told", reason, self._refusals)
            self._told, self._refusals = now, 0
