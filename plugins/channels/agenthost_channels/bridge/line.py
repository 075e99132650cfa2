"""What an adapter is given: its settings, its ways out, and an ear."""

from __future__ import annotations

import asyncio
import logging
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping
from socket import SOCK_STREAM
from typing import TYPE_CHECKING, Any

from agenthost import (
    AddressCase,
    EgressPolicy,
    Guard,
    Host,
    InvalidInput,
    Secret,
    Unavailable,
)
from agenthost_toml.problems import problems, unknown_keys
from pydantic import BaseModel, ValidationError

from ..contract import Adapter, Facts, Inbound
from .settings import ChannelSection

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)
CONNECT_SECONDS = 30.0
BODY_BYTES = 25 * 1024 * 1024

Keep = Callable[[tuple[Inbound, ...], str | None], Awaitable[None]]


class AccountLine:
    """The line of one account.

    Args:
        host: The daemon.
        channel: The channel's id.
        settings: An instance of the adapter's model.
        secrets: The adapter's names of secrets, each with its variable.
        allowed: The hosts that may be local.

    Attributes:
        up: Set while messages come in and go out.
        trouble: What is wrong, in words for the operator, "" for nothing.
        cursor: How far the vendor's messages are on disk.
        keep: Called with what came in; it returns once that is on disk.
    """

    def __init__(
        self,
        host: Host,
        channel: str,
        settings: Any,
        secrets: Mapping[str, str],
        allowed: frozenset[str],
    ) -> None:
        self.account = "default"
        self.settings = settings
        self.clock = host.clock
        self.cursor = ""
        self.up = asyncio.Event()
        self.trouble = ""
        self.keep: Keep | None = None
        self._host = host
        self._channel = channel
        self._variables = secrets
        self._allowed = allowed

    def secret(self, name: str) -> Secret | None:
        """Give a secret from the vault, else from its variable."""
        kept = self._host.vault.get(f"channel.{self._channel}.{name}")
        if kept is not None:
            return kept
        variable = self._variables.get(name)
        said = self._host.environ.get(variable, "") if variable else ""
        return Secret(said) if said else None

    def http(self) -> httpx.AsyncClient:
        """Give the client for the vendor's API."""
        name = f"channel.{self._channel}"
        policy = EgressPolicy(name, self._allowed, max_bytes=BODY_BYTES)
        return self._host.egress.client(policy)

    async def connect(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> tuple[StreamReader, StreamWriter]:
        """Open a TCP connection, to addresses alone that the guards let through.

        Raises:
            Blocked: The host is neither public nor allowed by the configuration.
            Unavailable: Nobody answers there.
        """
        # The very address that was checked is connected to: a name that resolves to
        # another one meanwhile is of no use to anybody.
        for address in await self._addresses(host, port):
            case = AddressCase(host, address, port, self._allowed)
            self._host.guards.check(Guard.ADDRESS, case)
            name = host if tls is not None else None
            opening = asyncio.open_connection(
                address, port, ssl=tls, server_hostname=name
            )
            try:
                return await asyncio.wait_for(opening, CONNECT_SECONDS)
            except OSError:
                continue
        raise Unavailable(f"nobody answers at {host}:{port}")

    async def received(self, *messages: Inbound, cursor: str | None = None) -> None:
        """Keep messages and cursor in one commit."""
        if self.keep is None:
            raise Unavailable("the channel is not open yet")
        await self.keep(messages, cursor)
        if cursor is not None:
            self.cursor = cursor

    def connected(self) -> None:
        """Tell that messages come in and go out from now on."""
        self.trouble = ""
        self.up.set()

    def troubled(self, reason: str) -> None:
        """Tell what is wrong."""
        self.trouble = reason
        self.up.clear()

    async def _addresses(self, host: str, port: int) -> list[str]:
        looking = asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
        try:
            found = await asyncio.wait_for(looking, CONNECT_SECONDS)
        except OSError:
            raise Unavailable(f"{host} has no address") from None
        return [str(place[0]) for *_, place in found]


def opened(
    host: Host, kind: type[Adapter], section: ChannelSection, facts: Facts
) -> AccountLine:
    """Make the line of a channel as it is configured.

    Raises:
        InvalidInput: A secret is missing, or a key of the channel's own is wrong.
    """
    # Before its settings: their model takes memory, and is not built where none is.
    for name in lacking(host, facts.id, kind):
        problem = f"is not set; set the variable {kind.secrets[name]}"
        raise InvalidInput(f"channels.{facts.id}.{name}", problem)
    settings = _settings(kind, section, facts)
    allowed = frozenset(section.allowed_hosts)
    return AccountLine(host, facts.id, settings, kind.secrets, allowed)


def lacking(host: Host, channel: str, kind: type[Adapter]) -> list[str]:
    """Name the secrets that are missing and that the channel cannot work without."""
    line = AccountLine(host, channel, None, kind.secrets, frozenset())
    return [each for each in sorted(kind.needed) if line.secret(each) is None]


def _settings(kind: type[Adapter], section: ChannelSection, facts: Facts) -> BaseModel:
    said = section.model_extra or {}
    for unknown in unknown_keys(kind.settings, said):
        log.warning("channels.%s.%s: %s", facts.id, unknown.key, unknown.text)
    try:
        return kind.settings.model_validate(said)
    except ValidationError as error:
        first = problems(error, said)[0]
        field = f"channels.{facts.id}.{first.key}".rstrip(".")
        raise InvalidInput(field, first.text) from None
