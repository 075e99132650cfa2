"""A connection goes over to TLS for a certificate of that name, and for no other."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from agenthost import ConfigError, Unavailable
from agenthost_channels.testing import FakeLine
from agenthost_channels.transports.smtp import Smtp
from agenthost_channels.transports.tls import encrypting, trusting

from ...security.certificate import self_signed


@asynccontextmanager
async def mail_server(folder: Path, name: str) -> AsyncIterator[tuple[int, Path]]:
    """Speak SMTP as far as STARTTLS, and greet once more behind it."""
    certificate, key = self_signed(folder, name)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        writer.write(b"220 hello\r\n")
        await reader.readline()
        writer.write(b"250 STARTTLS\r\n")
        await reader.readline()
        writer.write(b"220 go\r\n")
        try:
            await writer.start_tls(context)
            await reader.readline()
            writer.write(b"250 ENCRYPTED\r\n")
            await reader.readline()
        except OSError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], certificate
    finally:
        server.close()
        await asyncio.wait(tasks)


async def encrypted(port: int, ca_file: str) -> None:
    line = FakeLine(None)
    reader, writer = await line.connect("127.0.0.1", port)
    smtp = Smtp(reader, writer)
    try:
        await smtp.greet()
        await smtp.encrypt(encrypting("localhost", trusting(ca_file)))
        assert writer.get_extra_info("ssl_object") is not None
    finally:
        smtp.close()
        await asyncio.wait([asyncio.ensure_future(_closed(writer))])


async def _closed(writer: asyncio.StreamWriter) -> None:
    try:
        await writer.wait_closed()
    except OSError:
        return


async def test_a_trusted_certificate_of_that_name_is_taken(tmp_path: Path) -> None:
    async with mail_server(tmp_path, "localhost") as (port, certificate):
        await encrypted(port, str(certificate))


async def test_a_certificate_of_another_name_is_refused(tmp_path: Path) -> None:
    async with mail_server(tmp_path, "other.example") as (port, certificate):
        with pytest.raises(Unavailable, match="no certificate to trust"):
            await encrypted(port, str(certificate))


async def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    async with mail_server(tmp_path, "localhost") as (port, _):
        with pytest.raises(Unavailable, match="no certificate to trust"):
            await encrypted(port, "")


def test_a_file_that_is_no_authority_is_told(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    for path in (tmp_path / "ca.pem", tmp_path / "none.pem"):
        with pytest.raises(ConfigError, match="ca_file"):
            trusting(str(path))
