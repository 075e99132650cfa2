"""Trust in a server's certificate: the system's authorities, or one of the operator's.

There is no way to look away: who runs a server of their own names its authority.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from agenthost import ConfigError, Unavailable

EncryptStream = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HANDSHAKE_SECONDS = 30.0


def trusting(ca_file: str = "") -> ssl.SSLContext:
    """Make a context that checks the certificate and the name in it.

    Raises:
        ConfigError: The file is none of certificates.
    """
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError("ca_file holds no certificate; name a PEM file") from error


def encrypting(host: str, context: ssl.SSLContext) -> EncryptStream:
    """Make what takes an open connection to a host over to TLS.

    Raises:
        Unavailable: The certificate is not to be trusted, or something was said before
            it could be.
    """

    async def encrypt(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # Bytes read ahead of the handshake would pass for encrypted ones afterwards:
        # somebody on the way could put answers there. asyncio has no public look.
        if reader._buffer:  # type: ignore[attr-defined]  # noqa: SLF001
            raise Unavailable(f"{host} speaks before it is encrypted")
        try:
            await writer.start_tls(
                context,
                server_hostname=host,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
        except (OSError, ssl.SSLError) as error:
            raise Unavailable(f"{host} has no certificate to trust") from error

    return encrypt
