"""Handing in a mail by SMTP over a stream that is handed in.

Sources: RFC 5321, RFC 4954 (AUTH), RFC 3207 (STARTTLS), RFC 6531 (SMTPUTF8).
"""

from __future__ import annotations

import asyncio
import base64
import re

from agenthost import Unavailable

from .tls import EncryptStream

ANSWER_SECONDS = 60.0
# RFC 5321, 4.5.3.2.6: servers may look at a mail for so long before they answer.
TAKEN_SECONDS = 600.0


class Refused(Exception):
    """The server answers with an error; ``code`` is 4xx for one that may pass."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Lost(Exception):
    """The connection ended when the mail was handed in and not answered."""


class Smtp:
    """A connection to a server that takes mails."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._abilities: dict[str, str] = {}

    async def greet(self) -> None:
        """Wait for the greeting and ask what the server can do."""
        await self._expect(await self._answer())
        await self._hello()

    async def _hello(self) -> None:
        text = await self._command("EHLO [127.0.0.1]")
        lines = (line.partition(" ") for line in text.split("\n")[1:])
        self._abilities = {name.upper(): rest.upper() for name, _, rest in lines}

    async def encrypt(self, start: EncryptStream) -> None:
        """Go over to TLS, and ask again."""
        await self._command("STARTTLS")
        await start(self._reader, self._writer)
        await self._hello()

    async def log_in(self, user: str, password: str, *, by_token: bool) -> None:
        """Log in, where the server wants that."""
        offered = self._abilities.get("AUTH", "").split()
        if by_token:
            proof = f"user={user}\1auth=Bearer {password}\1\1"
            await self._command(f"AUTH XOAUTH2 {_base64(proof)}")
        elif "PLAIN" in offered:
            proof = f"\0{user}\0{password}"
            await self._command(f"AUTH PLAIN {_base64(proof)}")
        elif "LOGIN" in offered:
            await self._command("AUTH LOGIN", want=3)
            await self._command(_base64(user), want=3)
            await self._command(_base64(password))

    async def submit(self, sender: str, recipient: str, mail: bytes) -> None:
        """Hand in a mail; it is taken when this returns.

        Raises:
            Refused: It is not.
            Unavailable: The connection ended before the mail was handed in.
            Lost: It ended after that, before the answer.
        """
        options = "" if f"{sender}{recipient}".isascii() else " SMTPUTF8"
        await self._command(f"MAIL FROM:<{sender}>{options}")
        await self._command(f"RCPT TO:<{recipient}>")
        await self._command("DATA", want=3)
        lines = re.sub(rb"\r\n|\r|\n", b"\r\n", mail).rstrip(b"\r\n")
        stuffed = re.sub(rb"(?m)^\.", b"..", lines)
        try:
            self._writer.write(stuffed + b"\r\n.\r\n")
            async with asyncio.timeout(TAKEN_SECONDS):
                await self._writer.drain()
            answer = await self._answer(TAKEN_SECONDS)
        except (Unavailable, TimeoutError, OSError) as error:
            raise Lost(str(error)) from error
        await self._expect(answer)

    async def _command(self, line: str, want: int = 2) -> str:
        if re.search(r"[\r\n\0]", line):
            raise ValueError("a line of SMTP has no line break in it")
        self._writer.write(f"{line}\r\n".encode())
        return await self._expect(await self._answer(), want)

    async def _expect(self, answer: tuple[int, str], want: int = 2) -> str:
        code, text = answer
        if code // 100 != want:
            raise Refused(code, text)
        return text

    async def _answer(self, seconds: float = ANSWER_SECONDS) -> tuple[int, str]:
        lines: list[str] = []
        try:
            async with asyncio.timeout(seconds):
                while len(lines) < 100:
                    line = (await self._reader.readuntil(b"\n")).decode(
                        "utf-8", "replace"
                    )
                    lines.append(line[4:].rstrip("\r\n"))
                    if line[3:4] != "-":
                        return int(line[:3]), "\n".join(lines)
        except TimeoutError:
            raise Unavailable("the mail server does not answer") from None
        except (
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            OSError,
        ) as error:
            raise Unavailable("the mail server has hung up") from error
        except ValueError as error:
            raise Unavailable("the mail server speaks no SMTP") from error
        raise Unavailable("the mail server's answer has no end")

    def close(self) -> None:
        """Say goodbye, where that still goes, and close."""
        if not self._writer.is_closing():
            self._writer.write(b"QUIT\r\n")
        self._writer.close()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
