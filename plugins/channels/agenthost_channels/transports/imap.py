"""Reading a mailbox by IMAP4rev1 over a stream that is handed in.

Sources: RFC 9051 and 3501, RFC 2177 (IDLE), RFC 4959 (SASL-IR), RFC 7628 (XOAUTH2's
kind of token). A client of our own, as the ones there are open their sockets
themselves, past the guards of what goes out.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from agenthost import TooLarge, Unauthenticated, Unavailable

from .tls import EncryptStream

ANSWER_SECONDS = 60.0
_LITERAL = re.compile(rb"\{(\d+)\}\r?\n$")
_NUMBER = r"{} (\d+)"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the server's: its words, and the literals that stand in it."""

    words: bytes
    literals: tuple[bytes, ...] = ()

    def shown(self) -> str:
        """Give what can be shown to an operator."""
        words = self.words[:200].decode("utf-8", "replace")
        return "".join(sign for sign in words if sign.isprintable())

    def number(self, name: str) -> int | None:
        """Give the number behind a name."""
        pattern = _NUMBER.format(re.escape(name)).encode()
        found = re.search(pattern, self.words, re.IGNORECASE)
        return int(found[1]) if found else None

    def quoted(self, name: str) -> str:
        """Give the quoted string behind a name."""
        found = re.search(name.encode() + rb' "([^"]*)"', self.words, re.IGNORECASE)
        return found[1].decode("ascii", "replace") if found else ""


class Refusal(Unavailable):
    """The server says NO or BAD."""


class Imap:
    """A connection to one mailbox.

    Args:
        reader: What the server says.
        writer: What it is told.
        largest: The longest literal that is read, in bytes.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, largest: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._largest = largest
        self._count = 0
        self.abilities: frozenset[str] = frozenset()
        self.news = False

    async def greet(self) -> None:
        """Wait for the greeting and ask what the server can do."""
        await self._next()
        await self._ask_abilities()

    async def _ask_abilities(self) -> None:
        words = [
            answer.words
            for answer in await self.command("CAPABILITY")
            if answer.words.startswith(b"CAPABILITY")
        ]
        text = b" ".join(words).decode("ascii", "replace").upper()
        self.abilities = frozenset(text.split())

    async def encrypt(self, start: EncryptStream) -> None:
        """Go over to TLS; what came before it is not trusted."""
        await self.command("STARTTLS")
        await start(self._reader, self._writer)
        await self._ask_abilities()

    async def log_in(self, user: str, password: str, *, by_token: bool) -> None:
        """Log in.

        Raises:
            Unauthenticated: The server refuses it.
        """
        try:
            if by_token:
                proof = f"user={user}\1auth=Bearer {password}\1\1"
                await self._authenticate("XOAUTH2", proof)
            elif "AUTH=PLAIN" in self.abilities:
                await self._authenticate("PLAIN", f"\0{user}\0{password}")
            else:
                await self.command("LOGIN", quoted(user), quoted(password))
        except Refusal as error:
            raise Unauthenticated("the mail server refuses user or password") from error
        await self._ask_abilities()

    async def _authenticate(self, mechanism: str, proof: str) -> None:
        encoded = base64.b64encode(proof.encode()).decode()
        if "SASL-IR" in self.abilities:
            tag = self._write("AUTHENTICATE", mechanism, encoded)
        else:
            tag = self._write("AUTHENTICATE", mechanism)
            await self._go_ahead()
            self._writer.write(f"{encoded}\r\n".encode())
        await self._until(tag)

    async def select(self, mailbox: str, *, read_only: bool = False) -> tuple[int, int]:
        """Open a mailbox: its UIDVALIDITY, and the UID that the next mail will have."""
        verb = "EXAMINE" if read_only else "SELECT"
        answers = await self.command(verb, quoted(mailbox))
        found = {
            name: next(filter(None, (answer.number(name) for answer in answers)), 0)
            for name in ("UIDVALIDITY", "UIDNEXT")
        }
        return found["UIDVALIDITY"], found["UIDNEXT"]

    async def sizes(self, first: int) -> list[tuple[int, int]]:
        """List UID and size of the mails from a UID on, in order."""
        self.news = False
        answers = await self.command("UID FETCH", f"{first}:*", "(UID RFC822.SIZE)")
        # The star is the last mail even where that is older than the first asked for.
        found = (
            (answer.number("UID") or 0, answer.number("RFC822.SIZE") or 0)
            for answer in answers
        )
        return sorted(pair for pair in found if pair[0] >= first)

    async def fetch(self, uid: int) -> tuple[bytes, str] | None:
        """Fetch a mail and the time it arrived; None when it is gone."""
        answers = await self.command(
            "UID FETCH", str(uid), "(UID INTERNALDATE BODY.PEEK[])"
        )
        for answer in answers:
            if answer.literals and answer.number("UID") == uid:
                return answer.literals[-1], answer.quoted("INTERNALDATE")
        return None

    async def mark_seen(self, uid: int) -> None:
        """Mark a mail as read."""
        await self.command("UID STORE", str(uid), r"+FLAGS.SILENT (\Seen)")

    async def since(self, day: str) -> int:
        """Give the first UID of a day like ``1-Jan-2026``, 0 for none."""
        answers = await self.command("UID SEARCH", "SINCE", day)
        uids = [int(word) for each in answers for word in each.words.split()[1:]]
        return min(uids, default=0)

    async def wait(self, seconds: float) -> None:
        """Wait until there is news, or the time is over, by IDLE."""
        if self.news:
            return
        tag = self._write("IDLE")
        await self._go_ahead()
        try:
            async with asyncio.timeout(seconds):
                while not self.news:
                    await self._next()
        except TimeoutError:
            pass
        self._writer.write(b"DONE\r\n")
        await self._until(tag)

    async def command(self, *words: str) -> list[Answer]:
        """Send a command and collect what comes until its end.

        Raises:
            Refusal: The server will not.
            Unavailable: The connection ended, or nothing came in time.
        """
        tag = self._write(*words)
        return await self._until(tag)

    def _write(self, *words: str) -> str:
        self._count += 1
        tag = f"a{self._count}"
        self._writer.write(f"{tag} {' '.join(words)}\r\n".encode())
        return tag

    async def _until(self, tag: str) -> list[Answer]:
        return [answer async for answer in self._answers(tag)]

    async def _answers(self, tag: str) -> AsyncIterator[Answer]:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while True:
                    head, answer = await self._next()
                    if head == b"*":
                        yield answer
                    elif head == tag.encode():
                        break
        except TimeoutError:
            raise Unavailable("the mail server does not answer") from None
        if not answer.words.upper().startswith(b"OK"):
            raise Refusal(f"the mail server refuses a command: {answer.shown()}")

    async def _go_ahead(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while (head := (given := await self._next())[0]) != b"+":
                    if head != b"*":
                        words = given[1].shown()
                        raise Refusal(f"the mail server refuses a command: {words}")
        except TimeoutError:
            raise Unavailable("the mail server does not answer") from None

    async def _next(self) -> tuple[bytes, Answer]:
        """Read a response whole, literals included."""
        try:
            words, literals = b"", []
            while True:
                words += await self._reader.readuntil(b"\n")
                literal = _LITERAL.search(words)
                if literal is None:
                    break
                literals.append(await self._literal(int(literal[1])))
                words = words[: literal.start()]
        except asyncio.LimitOverrunError as error:
            raise Unavailable("the mail server's line has no end") from error
        except (asyncio.IncompleteReadError, OSError) as error:
            raise Unavailable("the mail server has hung up") from error
        head, _, rest = words.strip().partition(b" ")
        if head == b"*" and rest.upper().endswith(b" EXISTS"):
            self.news = True
        return head, Answer(rest, tuple(literals))

    async def _literal(self, size: int) -> bytes:
        if size > self._largest:
            raise TooLarge(f"a mail of {size:,} bytes; {self._largest:,} are taken")
        return await self._reader.readexactly(size)

    def close(self) -> None:
        """Say goodbye, where that still goes, and close."""
        if not self._writer.is_closing():
            self._writer.write(b"bye LOGOUT\r\n")
        self._writer.close()


def quoted(text: str) -> str:
    """Write a quoted string: what would end it is escaped or taken out."""
    clean = re.sub(r"[\r\n\0]", "", text)
    return '"' + re.sub(r'([\\"])', r"\\\1", clean) + '"'
