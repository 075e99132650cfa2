"""dovecot and aiosmtpd with Ada, who writes mails."""

from __future__ import annotations

import asyncio
import imaplib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email import policy
from email.message import EmailMessage
from email.utils import make_msgid
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ...contract import Place, Room
from ...email.adapter import Email, Settings
from ...facts import facts
from ..servers import Cable, found, free_port, serving
from ..stage import Stage
from .email_postman import Postman, taking_mail

ADDRESS = "us@agents.example"
PASSWORD = "canary-of-dovecot"  # noqa: S105 # nosec B105 # opens nothing
CONFIGURATION = """\
base_dir={folder}/run
state_dir={folder}/run
log_path={folder}/log
protocols=imap
listen=127.0.0.1
ssl=no
first_valid_uid=0
disable_plaintext_auth=no
auth_failure_delay=0
mail_location=maildir:{folder}/mail/%u
default_login_user=nobody
default_internal_user=daemon
default_internal_group=daemon
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=8 gid=8 home={folder}/mail/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port={port}
  }}
  inet_listener imaps {{
    port=0
  }}
}}
service anvil {{
  chroot =
}}
"""


class MailStage(Stage):
    """dovecot and aiosmtpd, with Ada who writes."""

    channel = Email
    facts = facts("email")
    keeps = True
    groups = False
    judge = "dovecot and aiosmtpd"
    person = "ada@people.example"

    def __init__(self, cable: Cable, smtp_port: int, postman: Postman) -> None:
        self._cable = cable
        self._smtp_port = smtp_port
        self._postman = postman
        self._box: imaplib.IMAP4
        self._last = b""

    def open_box(self, port: int) -> None:
        """Open our mailbox at its server, as the post office does."""
        self._box = imaplib.IMAP4("127.0.0.1", port)
        self._box.login("us", PASSWORD)
        self._box.select()

    def close_box(self) -> None:
        """Close it."""
        self._box.logout()

    def settings(self) -> Settings:
        return Settings(
            address=ADDRESS,
            user="us",
            imap_host="127.0.0.1",
            imap_port=self._cable.port,
            imap_security="none",
            smtp_host="127.0.0.1",
            smtp_port=self._smtp_port,
            smtp_security="none",
        )

    def secrets(self) -> Mapping[str, str]:
        return {"password": PASSWORD}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"password": "canary-that-is-wrong"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        assert room is Room.DIRECT
        return Place("default", self.person)

    def nowhere(self) -> Place:
        return Place("default", "nobody@people.example")

    async def cut(self) -> None:
        self._cable.pull()

    def lose_answer(self) -> None:
        self._postman.losing = True

    def _mail(self, text: str, **headers: str) -> EmailMessage:
        mail = EmailMessage(policy=policy.SMTP)
        mail["From"] = f"Ada <{self.person}>"
        mail["To"] = ADDRESS
        mail["Message-ID"] = make_msgid(domain="people.example")
        for name, value in headers.items():
            mail[name.replace("_", "-")] = value
        mail.set_content(text)
        return mail

    async def _put(self, raw: bytes) -> None:
        self._last = raw
        await asyncio.to_thread(self._box.append, "INBOX", "", "", raw)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        await self._put(self._mail(text).as_bytes())

    async def say_again(self) -> None:
        await self._put(self._last)

    async def say_in_thread(self, text: str) -> None:
        await self._put(self._mail(text, References="<root@x.example>").as_bytes())

    async def answer(self, text: str) -> None:
        ours = str(self._postman.mails[-1]["Message-ID"])
        headers = {"In_Reply_To": ours, "References": ours}
        await self._put(self._mail(text, **headers).as_bytes())

    async def attach(self, name: str, media_type: str, data: bytes) -> None:
        mail = self._mail("see there")
        main, _, sub = media_type.partition("/")
        mail.add_attachment(data, maintype=main, subtype=sub, filename=name)
        await self._put(mail.as_bytes())

    async def hostile(self) -> None:
        for raw in (
            b"\xff\xfe\x00nothing",
            b"From: =?x?q?=ff?= <@>\r\nMessage-ID: <\r\n <>\r\n\r\nx",
            b"From: a@b.example\r\nContent-Type: multipart/mixed\r\n\r\n--x",
            b"From: a@b.example\r\nContent-Type: text/plain; charset=none\r\n\r\n\xff",
        ):
            await self._put(raw.replace(b"\0", b""))

    async def _mails(self, count: int) -> list[EmailMessage]:
        async with asyncio.timeout(20):
            while len(self._postman.mails) < count:
                self._postman.taken.clear()
                await self._postman.taken.wait()
        return self._postman.mails

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        return [_text(mail) for mail in await self._mails(count)]

    async def threads_seen(self) -> str:
        return str((await self._mails(1))[-1]["References"]).split()[0]

    async def files_seen(self, count: int) -> list[tuple[str, bytes]]:
        mails = 1
        while True:
            seen = await self._mails(mails)
            found = [each for mail in seen for each in mail.iter_attachments()]
            if len(found) >= count:
                break
            mails = len(seen) + 1
        return [(str(each.get_filename()), each.get_content()) for each in found]


def _text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n").rstrip("\n")


def configured(folder: Path, port: int) -> Path:
    """Write its configuration."""
    mail = folder / "mail"
    mail.mkdir()
    os.chown(mail, 8, 8)
    folder.chmod(0o755)
    path = folder / "dovecot.conf"
    path.write_text(CONFIGURATION.format(folder=folder, port=port, password=PASSWORD))
    return path


@asynccontextmanager
async def dovecot() -> AsyncIterator[MailStage]:
    """Open it."""
    if os.geteuid() != 0:
        pytest.skip("dovecot needs root to change its users")
    port, postman = free_port(), Postman()
    program = found("dovecot")
    # Its processes are other users, who may not look into a test's own folder.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        argv = (*program, "-F", "-c", str(configured(Path(folder), port)))
        async with (
            serving(*argv, port=port),
            Cable(port) as cable,
            taking_mail(postman, PASSWORD) as smtp_port,
        ):
            stage = MailStage(cable, smtp_port, postman)
            await asyncio.to_thread(stage.open_box, port)
            try:
                yield stage
            finally:
                await asyncio.to_thread(stage.close_box)


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    async with dovecot() as stage:
        yield stage
