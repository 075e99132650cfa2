"""What the front needs to know of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from agenthost import ConfigError, Secret
from agenthost_toml.types import Blankable, Lower, Names, Positive, Table
from agenthost_values.value_class import value_class
from pydantic import AfterValidator, Field

if TYPE_CHECKING:
    from agenthost import Host


def _networks(proxies: tuple[str, ...]) -> tuple[str, ...]:
    if proxies:
        from .forwarded import networks

        networks(proxies)
    return proxies


class Server(Table):
    """``[server]``: who may reach the API besides loopback, and how often at once."""

    allowed_hosts: Names = Field(
        (), description="Names beside the loopback ones that ``Host`` may carry."
    )
    allowed_origins: Names = Field(
        (), description="Other origins that may change state."
    )
    cors_origins: Names = Field(
        (), description="Origins that browsers may let read answers."
    )
    connections_per_address: Positive = Field(
        256,
        description="Open connections from one address, this machine's own apart.",
    )
    trusted_proxies: Annotated[Names, AfterValidator(_networks)] = Field(
        (),
        description="Addresses and networks of proxies whose word on the client's "
        "address is taken, for limits, logs and who is on this machine.",
    )
    forwarded_header: Annotated[Literal["x-forwarded-for", "forwarded"], Lower] = Field(
        "x-forwarded-for",
        description="The header in which they tell it; another one is not read.",
    )
    tls_cert: Blankable = Field(
        None,
        description="File with the certificate of this daemon and those it is signed "
        "by, as PEM; with it the API is served over TLS alone. Relative to the home.",
    )
    tls_key: Blankable = Field(
        None, description="File with its key, which others must not be able to read."
    )
    access_log: Annotated[Literal["off", "text", "json"], Lower] = Field(
        "off",
        description="Whether each request is a line on standard output, and of what; "
        "it has no query, header or body.",
    )


@value_class
class FrontSettings:
    """Who may come in, and the limits that hold for everybody.

    Args:
        api_key: The one key; None opens the API to loopback clients.
        allow_unauthenticated_network: Without a key, also answer other peers.
        allowed_hosts: Names beside the loopback ones that ``Host`` may carry.
        allowed_origins: Other origins that may change state, ``https://ui.example``.
        cors_origins: Origins that browsers may let read answers; all they need.
        body_limit: Bytes of a body where the route names no limit of its own.
        sockets_per_client: Open WebSockets from one address.
        connections: Open connections in all; 0 is most of what the process may open.
        connections_per_address: Open connections from one address, this machine's
            own apart; IPv6 counts by /64.
        connection_idle: Seconds without a whole request before one is closed.
        body_timeout: Seconds for a whole body to arrive; in proportion more where the
            route has a higher limit of its own.
        keep_alive: Seconds of silence before a stream gets a comment.
        socket_idle: Seconds without a message before a WebSocket is closed.
        socket_ping: Seconds between two pings to a WebSocket.
        peer_timeout: Seconds for a peer to read something of what it was sent.
        grace: Seconds for running requests to end when the front stops.
        access_log: The form of the access log, or ``off``.
        trusted_proxies: Whose word on the client's address is taken.
        forwarded_header: The header in which they tell it.
        tls: The files of certificate and key, where TLS is spoken.
    """

    api_key: Secret | None = None
    allow_unauthenticated_network: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    body_limit: int = 1024 * 1024
    sockets_per_client: int = 64
    connections: int = 0
    connections_per_address: int = 256
    connection_idle: float = 20.0
    body_timeout: float = 15.0
    keep_alive: float = 15.0
    socket_idle: float = 1800.0
    socket_ping: float = 20.0
    peer_timeout: float = 20.0
    grace: float = 5.0
    access_log: str = "off"
    trusted_proxies: tuple[str, ...] = ()
    forwarded_header: str = "x-forwarded-for"
    tls: tuple[Path, Path] | None = None

    @property
    def key(self) -> str:
        """The key's text, "" when there is none."""
        return self.api_key.reveal() if self.api_key is not None else ""


def settings_of(host: Host) -> FrontSettings:
    """Take what the daemon's configuration says of the front."""
    config, server = host.config, host.settings(Server)
    return FrontSettings(
        api_key=config.api_key,
        allow_unauthenticated_network=config.allow_unauthenticated_network,
        allowed_hosts=server.allowed_hosts,
        allowed_origins=server.allowed_origins,
        cors_origins=server.cors_origins,
        connections_per_address=server.connections_per_address,
        access_log=server.access_log,
        trusted_proxies=server.trusted_proxies,
        forwarded_header=server.forwarded_header,
        tls=_tls_files(host.home, server),
    )


def _tls_files(home: Path, server: Server) -> tuple[Path, Path] | None:
    if server.tls_cert and server.tls_key:
        return home / server.tls_cert, home / server.tls_key
    if server.tls_cert or server.tls_key:
        lacking = "tls_key" if server.tls_cert else "tls_cert"
        raise ConfigError(f"server.{lacking}: TLS needs certificate and key; give both")
    return None
