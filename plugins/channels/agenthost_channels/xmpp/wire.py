"""The way to the server, encrypted before anything of ours is said (RFC 6120, 5)."""

from __future__ import annotations

import asyncio
import re

from agenthost import Unavailable

from ..contract import Line
from ..transports.tls import encrypting, trusting
from .config import Settings

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
STARTTLS = b"urn:ietf:params:xml:ns:xmpp-tls"
LONGEST_GREETING = 65_536
_FEATURES = re.compile(rb"</[\w:]*features\s*>|<[\w:]*features\s*/>")
_HEADER = (
    "<?xml version='1.0'?><stream:stream to='{}' version='1.0' xmlns='jabber:client'"
    " xmlns:stream='http://etherx.jabber.org/streams'>"
)


async def opened(line: Line, options: Settings) -> Streams:
    """Connect; the certificate is checked for the domain of the account.

    Raises:
        Blocked: The host is neither public nor allowed by the configuration.
        Unavailable: Nobody answers there, or not so that it could be trusted.
    """
    streams = await line.connect(options.host, options.at)
    if options.tls == "none":
        return streams
    try:
        context = trusting(options.ca_file)
        if options.tls == "starttls":
            await _asked_for_tls(streams, options.domain)
        await encrypting(options.domain, context)(*streams)
    except BaseException:
        streams[1].close()
        raise
    return streams


async def _asked_for_tls(streams: Streams, domain: str) -> None:
    reader, writer = streams
    writer.write(_HEADER.format(domain).encode())
    if STARTTLS not in await _until(reader, _FEATURES):
        raise Unavailable(
            "the XMPP server offers no encryption; nothing is said in the open:"
            ' set tls = "direct" in [channels.xmpp] where it has a port for that'
        )
    writer.write(b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
    if not (await _until(reader, re.compile(rb">"))).lstrip().startswith(b"<proceed"):
        raise Unavailable("the XMPP server refuses to be encrypted")


async def _until(reader: asyncio.StreamReader, end: re.Pattern[bytes]) -> bytes:
    """Read until something was said, and nothing behind it is left."""
    said = b""
    while not end.search(said):
        more = await reader.read(4096)
        said += more
        wrong = not said.lstrip().startswith(b"<")
        if not more or wrong or len(said) > LONGEST_GREETING:
            raise Unavailable("what answers there is no XMPP server")
    return said
