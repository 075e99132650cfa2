"""Email by IMAP and SMTP.

Every sender is a conversation of their own, every thread of theirs (by ``References``)
a thread in it; an answer goes to the sender alone, never to all. Who sent a mail is
what its ``From`` says: whether that is true (SPF, DKIM, DMARC) is for the server that
takes the mail to judge.

The cursor is UIDVALIDITY and the last UID. A mailbox that is read for the first time
begins with the next mail.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Literal

from agenthost import (
    Blocked,
    ConfigError,
    NotFound,
    Secret,
    Unauthenticated,
    Unavailable,
)
from pydantic import BaseModel, Field, model_validator

from ..contract import (
    Adapter,
    Attachment,
    Fate,
    Inbound,
    Line,
    Outbound,
    Place,
    Sender,
    Sent,
)
from ..transports.addresses import LOOPBACK, MAILBOX, Mailbox
from ..transports.imap import Imap
from ..transports.smtp import Lost, Refused, Smtp
from ..transports.tls import encrypting, trusting

if TYPE_CHECKING:
    from . import mails

log = logging.getLogger(__name__)

CONNECT_SECONDS = 60.0
IDLE_SECONDS = 1_500.0
SUBJECTS = 1_000
LOOK_BACK = timedelta(days=2)

Security = Literal["tls", "starttls", "none"]


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.email]``."""

    address: Mailbox = Field(description="Our address")
    name: str = Field("", description="Name shown with the address")
    user: str = Field("", description="Name to log in with; the address where empty")
    login: Literal["password", "xoauth2"] = Field(
        "password", description="What the secret is: a password, or an access token"
    )
    imap_host: str = Field(description="Server of the mailbox")
    imap_port: int = Field(993, ge=1, le=65535)
    imap_security: Security = "tls"
    mailbox: str = Field("INBOX", pattern=r"^[\x20-\x7e]+$")
    mark_seen: bool = Field(default=True, description="Mark mails as read")
    poll_seconds: float = Field(60, ge=1, description="Where the server has no IDLE")
    smtp_host: str = Field(description="Server that takes our mails")
    smtp_port: int = Field(465, ge=1, le=65535)
    smtp_security: Security = "tls"
    ca_file: str = Field("", description="Authority of servers of your own, as PEM")
    subject: str = Field("A message for you", description="Of a thread that we begin")
    max_bytes: int = Field(
        25_000_000, ge=1_000, description="Largest mail that is read"
    )

    @model_validator(mode="after")
    def _nothing_in_the_clear(self) -> Settings:
        for host, security in (
            (self.imap_host, self.imap_security),
            (self.smtp_host, self.smtp_security),
        ):
            if security == "none" and host not in LOOPBACK:
                raise ValueError(f"the password would go to {host} in the clear")
        return self


class Email(Adapter):
    """One mailbox."""

    settings = Settings
    secrets: ClassVar = {"password": "EMAIL_PASSWORD"}  # nosec B105 # a name
    needed: ClassVar = frozenset({"password"})

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._options: Settings = line.settings
        # Threads whose subject is known, the latest last: an answer has it too.
        self._subjects: OrderedDict[str, str] = OrderedDict()

    # Reading.

    async def run(self) -> None:
        """Read what is new, wait for more, and so on."""
        options = self._options
        imap = await self._reading()
        try:
            validity, following = await imap.select(options.mailbox)
            last = await self._begin(imap, validity, following)
            self.line.connected()
            while True:
                for uid, size in await imap.sizes(last + 1):
                    await self._take(imap, validity, uid, size)
                    last = uid
                if "IDLE" in imap.abilities:
                    await imap.wait(IDLE_SECONDS)
                else:
                    await self.line.clock.sleep(options.poll_seconds)
        finally:
            imap.close()

    async def _reading(self) -> Imap:
        options = self._options
        password = self._password()
        tls = trusting(options.ca_file)
        direct = tls if options.imap_security == "tls" else None
        async with asyncio.timeout(CONNECT_SECONDS):
            streams = await self.line.connect(
                options.imap_host, options.imap_port, direct
            )
        imap = Imap(*streams, largest=options.max_bytes)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await imap.greet()
                if options.imap_security == "starttls":
                    await imap.encrypt(encrypting(options.imap_host, tls))
                await imap.log_in(
                    self._user, password.reveal(), by_token=self._by_token
                )
        except BaseException:
            imap.close()
            raise
        return imap

    @property
    def _user(self) -> str:
        return self._options.user or self._options.address

    @property
    def _by_token(self) -> bool:
        return self._options.login == "xoauth2"

    def _password(self) -> Secret:
        if (password := self.line.secret("password")) is None:
            raise Unauthenticated("email needs its password; set EMAIL_PASSWORD")
        return password

    async def _begin(self, imap: Imap, validity: int, following: int) -> int:
        """Tell the last UID that is on disk here."""
        known, _, last = self.line.cursor.partition(":")
        if known == str(validity) and last.isdecimal():
            return int(last)
        if not known:
            begin = following - 1
        else:
            # The server has numbered its mails anew. Those that were taken are known
            # by their Message-ID, so that it is enough to begin early.
            log.warning("the mailbox has new numbers; two days are read again")
            day = self.line.clock.now() - LOOK_BACK
            first = await imap.since(f"{day.day}-{day:%b-%Y}")
            begin = (first or following) - 1
        await self.line.received(cursor=f"{validity}:{begin}")
        return begin

    async def _take(self, imap: Imap, validity: int, uid: int, size: int) -> None:
        cursor = f"{validity}:{uid}"
        if size > self._options.max_bytes:
            log.warning("a mail of %d bytes was passed over", size)
            await self.line.received(cursor=cursor)
            return
        fetched = await imap.fetch(uid)
        message = self._message(*fetched, cursor) if fetched else None
        await self.line.received(*([message] if message else []), cursor=cursor)
        if message and self._options.mark_seen:
            await imap.mark_seen(uid)

    def _message(self, raw: bytes, arrived: str, cursor: str) -> Inbound | None:
        from . import mails

        try:
            mail = mails.read(raw)
        except mails.UNREADABLE:
            log.warning("a mail that cannot be read was passed over")
            return None
        if mail is None or mail.address == self._options.address.lower():
            return None
        own = mail.id or f"<{cursor.replace(':', '.')}@mailbox.invalid>"
        thread = mail.references[0] if mail.references else own
        self._remember(thread, mail.subject)
        begins = not mail.references and mail.subject
        return Inbound(
            Place(self.line.account, mail.address, thread),
            own,
            Sender(mail.address, mail.name),
            f"{mail.subject}\n\n{mail.text}".strip() if begins else mail.text,
            self._time(arrived),
            tuple(self._attachment(file, cursor) for file in mail.files),
            reply_to=mail.reply_to,
            mentions_us=True,
        )

    @staticmethod
    def _attachment(file: mails.File, cursor: str) -> Attachment:
        reference = {"mail": cursor, "part": file.part}
        return Attachment(file.name, file.media_type, reference, file.size)

    def _remember(self, thread: str, subject: str) -> None:
        self._subjects[thread] = subject
        self._subjects.move_to_end(thread)
        while len(self._subjects) > SUBJECTS:
            self._subjects.popitem(last=False)

    def _time(self, arrived: str) -> datetime:
        with suppress(ValueError):
            return datetime.strptime(arrived.strip(), "%d-%b-%Y %H:%M:%S %z")
        return self.line.clock.now().astimezone(UTC)

    async def download(self, attachment: Attachment) -> bytes:
        """Fetch the mail once more, over a connection of its own."""
        known, _, uid = str(attachment.reference.get("mail", "")).partition(":")
        part = attachment.reference.get("part")
        imap = await self._reading()
        try:
            validity, _ = await imap.select(self._options.mailbox, read_only=True)
            fetched = None
            if str(validity) == known and uid.isdecimal():
                fetched = await imap.fetch(int(uid))
        finally:
            imap.close()
        if fetched and isinstance(part, int):
            from . import mails

            data = mails.file_of(fetched[0], part)
            if data is not None:
                return data
        raise NotFound("file", attachment.name)

    # Sending.

    async def send(self, message: Outbound) -> Sent:
        """Hand in a mail: taken means that the server answers for it from then on."""
        from email.headerregistry import Address

        from . import mails

        options = self._options
        if message.typing or message.reaction or message.edit_of:
            return Sent(Fate.NOT_SENT, reason="a mail is a whole text", final=True)
        if not MAILBOX.fullmatch(message.place.peer):
            reason = "a mail goes to one address"
            return Sent(Fate.NOT_SENT, reason=reason, final=True)
        user, _, domain = options.address.rpartition("@")
        sender = Address(options.name, user, domain)
        subject = self._subject(message.place.thread)
        try:
            raw = mails.composed(message, sender, subject, self.line.clock.now())
        except mails.UNREADABLE:
            reason = "the mail cannot be written"
            return Sent(Fate.NOT_SENT, reason=reason, final=True)
        sent = await self._submit(message.place.peer, raw)
        if sent.fate is Fate.DELIVERED:
            return Sent(Fate.DELIVERED, mails.message_id(message, sender))
        return sent

    def _subject(self, thread: str) -> str:
        if not thread:
            return self._options.subject
        subject = self._subjects.get(thread) or self._options.subject
        return subject if subject.lower().startswith("re:") else f"Re: {subject}"

    async def _submit(self, recipient: str, raw: bytes) -> Sent:
        smtp: Smtp | None = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                smtp = await self._handing_in()
            await smtp.submit(self._options.address, recipient, raw)
        except Refused as error:
            final = error.code // 100 == 5 and error.code not in {530, 534, 535, 538}
            return Sent(Fate.NOT_SENT, reason=_shown(error), final=final)
        except Lost:
            reason = "the mail server hung up before it answered"
            return Sent(Fate.UNKNOWN, reason=reason)
        except (Blocked, ConfigError, Unavailable, Unauthenticated) as error:
            return Sent(Fate.NOT_SENT, reason=str(error))
        except TimeoutError:
            return Sent(Fate.NOT_SENT, reason="the mail server does not answer")
        finally:
            if smtp is not None:
                smtp.close()
        return Sent(Fate.DELIVERED)

    async def _handing_in(self) -> Smtp:
        options = self._options
        password = self._password()
        tls = trusting(options.ca_file)
        direct = tls if options.smtp_security == "tls" else None
        streams = await self.line.connect(options.smtp_host, options.smtp_port, direct)
        smtp = Smtp(*streams)
        try:
            await smtp.greet()
            if options.smtp_security == "starttls":
                await smtp.encrypt(encrypting(options.smtp_host, tls))
            await smtp.log_in(self._user, password.reveal(), by_token=self._by_token)
        except BaseException:
            smtp.close()
            raise
        return smtp

    async def identity(self) -> str:
        """Log in to the mailbox and tell its address."""
        imap = await self._reading()
        imap.close()
        return self._options.address


def _shown(error: Refused) -> str:
    words = " ".join(error.text.split())[:200]
    return f"the mail server refuses it: {error.code} {words}"
