"""Mails: what a person wrote in one, and one that answers.

Sources: RFC 5322, RFC 2045, RFC 3834 (who must not be answered).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.utils import format_datetime, parseaddr

from ..contract import Outbound
from ..transports.addresses import MAILBOX

_ID = re.compile(r"<[^<>\s\x00-\x1f]{1,500}>")
_MOST_REFERENCES = 50
_KIND = re.compile(r"[a-z]+/[A-Za-z0-9.+-]+")
_BYTES = "application/octet-stream"
_PROGRAMS = re.compile(
    r"(mailer-daemon|postmaster|no-?reply|do-?not-?reply)@", re.IGNORECASE
)
_BULK = {"bulk", "list", "junk", "auto_reply"}
_LISTS = ("List-Id", "List-Post", "List-Unsubscribe", "X-Autoreply", "X-Autorespond")

# What the parser of the standard library raises for mails that are none.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class File:
    """A file in a mail, by its number among the parts."""

    part: int
    name: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail as a person wrote it."""

    id: str
    address: str
    name: str
    subject: str
    text: str
    references: tuple[str, ...]
    reply_to: str
    files: tuple[File, ...]


def read(raw: bytes) -> Mail | None:
    """Read a mail; None for one that no person wrote, which nobody may answer."""
    message = parsed(raw)
    if _of_program(message):
        return None
    name, address = _sender([str(each) for each in message.get_all("From", [])])
    if not address or _PROGRAMS.match(address):
        return None
    own = _ids(message["Message-ID"])
    answered = _ids(message["In-Reply-To"])
    references = _ids(message["References"]) or answered
    return Mail(
        own[0] if own else "",
        address.lower(),
        name,
        _one_line(str(message["Subject"] or "")),
        _text(message),
        tuple(references),
        answered[0] if answered else "",
        tuple(_files(message)),
    )


def _sender(headers: list[str]) -> tuple[str, str]:
    """Give name and address of the one who wrote it, "" where it names two.

    A name that shows another address than the one behind it is there to deceive.
    """
    name, address = parseaddr(headers[0] if headers else "")
    shown = {each.lower() for line in headers for each in MAILBOX.findall(line)}
    return (name, address) if shown == {address.lower()} else ("", "")


def parsed(raw: bytes) -> EmailMessage:
    """Read the form of a mail."""
    return BytesParser(EmailMessage, policy=policy.default).parsebytes(raw)


def _of_program(message: EmailMessage) -> bool:
    automatic = str(message["Auto-Submitted"] or "no").strip().lower()
    return (
        not automatic.startswith("no")
        or str(message["Precedence"] or "").strip().lower() in _BULK
        or any(message[name] is not None for name in _LISTS)
        or str(message["Return-Path"] or "").strip() == "<>"
        or message.get_content_type() == "multipart/report"
    )


def _ids(header: object) -> list[str]:
    return _ID.findall(str(header or ""))[-_MOST_REFERENCES:]


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", text).split())[:200]


def _text(message: EmailMessage) -> str:
    body = message.get_body(("plain", "html"))
    if body is None:
        return ""
    text = _content(body)
    if body.get_content_type() == "text/html":
        from selectolax.lexbor import LexborHTMLParser

        page = LexborHTMLParser(text)
        page.strip_tags(["script", "style", "head", "template"])
        text = (page.body.text(separator="\n", strip=True) if page.body else "") or ""
    return text.replace("\r\n", "\n").strip()


def _content(part: MIMEPart) -> str:
    try:
        return str(part.get_content())
    except LookupError:
        raw = part.get_payload(decode=True)
        return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else ""


def _files(message: EmailMessage) -> list[File]:
    body = message.get_body(("plain", "html"))
    found = []
    for number, part in enumerate(message.walk()):
        if part.is_multipart() or part is body:
            continue
        name = part.get_filename()
        if name is None and part.get_content_maintype() == "text":
            continue
        data = part.get_payload(decode=True)
        size = len(data) if isinstance(data, bytes) else 0
        kind = part.get_content_type()
        found.append(File(number, name or f"part-{number}", kind, size))
    return found


def file_of(raw: bytes, number: int) -> bytes | None:
    """Give the bytes of a file in a mail, None where there is no such part."""
    for at, part in enumerate(parsed(raw).walk()):
        data = part.get_payload(decode=True)
        if at == number and isinstance(data, bytes):
            return data
    return None


def composed(message: Outbound, sender: Address, subject: str, now: datetime) -> bytes:
    """Write a mail that answers a thread, or begins one."""
    mail = EmailMessage(policy=policy.SMTP)
    mail["From"] = sender
    user, _, domain = message.place.peer.rpartition("@")
    mail["To"] = Address("", user, domain)
    mail["Subject"] = _one_line(subject)
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = message_id(message, sender)
    references = _ids(f"{message.place.thread} {message.reply_to}")
    if references:
        mail["In-Reply-To"] = references[-1]
        mail["References"] = " ".join(dict.fromkeys(references))
    # Programs that answer by themselves leave this one alone (RFC 3834).
    mail["Auto-Submitted"] = "auto-replied"
    plain = message.plain or message.text
    mail.set_content(plain)
    if message.text != plain:
        mail.add_alternative(message.text, subtype="html")
    for file in message.files:
        kind = file.media_type if _KIND.fullmatch(file.media_type) else _BYTES
        main, _, sub = kind.partition("/")
        name = _one_line(file.name)
        mail.add_attachment(file.data, maintype=main, subtype=sub, filename=name)
    return mail.as_bytes()


def message_id(message: Outbound, sender: Address) -> str:
    """Name a mail of ours: the same name each time it is tried."""
    key = re.sub(r"[^A-Za-z0-9-]", "", message.key)
    return f"<{key}@{sender.domain}>"
