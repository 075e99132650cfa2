"""aiosmtpd, which takes mails for people."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

import pytest

from ..servers import closing

MISSING = "no aiosmtpd here: pip install 'agenthost[judges]'"


class Postman:
    """Takes mails for people, as aiosmtpd hands them on.

    Attributes:
        mails: What it has taken.
        losing: Whether it breaks off instead of saying that it has taken one.
    """

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.taken = asyncio.Event()
        self.losing = False

    async def handle_RCPT(  # noqa: N802
        self, _server: Any, _session: Any, envelope: Any, address: str, *_: Any
    ) -> str:
        """Refuse who is nobody."""
        if address.startswith("nobody@"):
            return "550 no such person"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        """Take a mail."""
        parser = BytesParser(EmailMessage, policy=policy.default)
        self.mails.append(parser.parsebytes(envelope.content))
        self.taken.set()
        if self.losing:
            server.transport.abort()
        return "250 taken"


@asynccontextmanager
async def taking_mail(postman: Postman, password: str) -> AsyncIterator[int]:
    """Serve SMTP for whoever has the password; it gives its port."""
    smtp = pytest.importorskip("aiosmtpd.smtp", reason=MISSING)

    def login(_server: Any, _session: Any, _env: Any, _how: str, data: Any) -> Any:
        return smtp.AuthResult(success=data.password == password.encode())

    served: list[Any] = []

    def serve() -> Any:
        with warnings.catch_warnings():
            # Of a login without TLS, which is right and meant here.
            warnings.filterwarnings("ignore", "Requiring AUTH while not")
            one = smtp.SMTP(
                postman,
                authenticator=login,
                auth_required=True,
                auth_require_tls=False,
                enable_SMTPUTF8=True,
                data_size_limit=30_000_000,
            )
        served.append(one)
        return one

    server = await asyncio.get_running_loop().create_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for each in served:
            if each.transport is not None:
                each.transport.close()
        await closing()
