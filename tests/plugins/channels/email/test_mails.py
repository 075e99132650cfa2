"""Only what a person wrote is read, and what we write is one mail and no more."""

from contextlib import suppress
from datetime import UTC, datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.parser import BytesParser

import pytest
from agenthost_channels.contract import Outbound, OutFile, Place
from agenthost_channels.email import mails
from agenthost_channels.email.adapter import Settings
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

US = Address("Agents", "us", "agents.example")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
HEAD = b"From: Ada <Ada@people.example>\r\nMessage-ID: <1@x>\r\n"


@pytest.mark.parametrize(
    "header",
    [
        b"Auto-Submitted: auto-replied",
        b"Auto-Submitted: auto-generated",
        b"Precedence: bulk",
        b"Precedence: LIST",
        b"List-Id: <people.example>",
        b"List-Unsubscribe: <mailto:x@y>",
        b"Return-Path: <>",
        b"X-Autoreply: yes",
        b"Content-Type: multipart/report; boundary=x",
    ],
)
def test_programs_are_never_answered(header: bytes) -> None:
    assert mails.read(HEAD + b"\r\nhi") is not None
    assert mails.read(HEAD + header + b"\r\n\r\nhi") is None


@pytest.mark.parametrize(
    "address",
    [b"MAILER-DAEMON@x.example", b"no-reply@x.example", b"", b"<@>", b"<>"],
)
def test_senders_that_no_answer_reaches_are_passed_over(address: bytes) -> None:
    assert mails.read(b"From: " + address + b"\r\n\r\nhi") is None


@pytest.mark.parametrize(
    "senders",
    [
        b'From: "boss@corp.example" <eve@x.example>',
        b"From: boss@corp.example, eve@x.example",
        b"From: boss@corp.example\r\nFrom: eve@x.example",
    ],
)
def test_who_shows_two_addresses_is_nobody(senders: bytes) -> None:
    assert mails.read(senders + b"\r\n\r\nhi") is None


def test_a_mail_of_ours_is_never_answered_by_another_agent() -> None:
    ours = mails.composed(
        Outbound("k", Place("a", "ada@x.example"), "hi"), US, "s", NOW
    )
    assert mails.read(ours) is None


def test_html_is_read_as_text_without_its_programs() -> None:
    page = b"<style>p{}</style><p>one</p><p>two</p><script>x"
    mail = mails.read(HEAD + b"Content-Type: text/html\r\n\r\n" + page)
    assert mail is not None
    assert mail.text == "one\ntwo"


def test_the_thread_is_the_first_reference() -> None:
    raw = b"References: <root@x> <2@x>\r\nIn-Reply-To: <2@x>\r\n"
    raw += b"Subject: Re: a\r\n b\r\n\r\nhi"
    mail = mails.read(HEAD + raw)
    assert mail is not None
    assert (mail.address, mail.id, mail.subject) == (
        "ada@people.example",
        "<1@x>",
        "Re: a b",
    )
    assert (mail.references, mail.reply_to) == (("<root@x>", "<2@x>"), "<2@x>")


@given(st.binary(max_size=400))
@example(b"From: =?utf-8?b?/w==?= <a@b.example>\r\n\r\n")
@example(b"From: a@b.example\r\nContent-Type: text/plain; charset=\xff\r\n\r\nx")
@example(b"From: a@b.example\r\nContent-Transfer-Encoding: base64\r\n\r\n\xff")
@example(b"From: a@b.c\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n--x")
def test_any_bytes_are_a_mail_or_none(raw: bytes) -> None:
    with suppress(*mails.UNREADABLE):
        mails.read(raw)


def written(message: Outbound, subject: str = "Hello") -> EmailMessage:
    raw = mails.composed(message, US, subject, NOW)
    return BytesParser(EmailMessage, policy=policy.default).parsebytes(raw)


def test_words_never_become_headers() -> None:
    message = Outbound(
        "k\r\nBcc: x@y",
        Place("a", "ada@x.example", "<root@x>\r\nBcc: x@y"),
        "a\r\n.\r\nQUIT\r\n",
        files=(OutFile("a\r\nBcc: x@y.txt", "text/plain", b"x"),),
    )
    mail = written(message, "hi\r\nBcc: x@y")
    assert mail["Bcc"] is None
    assert mail["Subject"] == "hi Bcc: x@y"
    assert mail["References"] == "<root@x>"
    assert len(mail.get_all("To") or []) == 1


def test_markup_goes_beside_the_plain_text() -> None:
    mail = written(Outbound("k", Place("a", "ada@x.example"), "<b>hi</b>", plain="hi"))
    html, plain = mail.get_body(("html",)), mail.get_body(("plain",))
    assert html is not None
    assert plain is not None
    assert html.get_content().strip() == "<b>hi</b>"
    assert plain.get_content().strip() == "hi"


def test_the_same_key_is_the_same_mail() -> None:
    message = Outbound("key-1", Place("a", "ada@x.example"), "hi")
    assert written(message)["Message-ID"] == "<key-1@agents.example>"


def test_a_password_goes_nowhere_in_the_clear() -> None:
    given = {"address": "us@x.example", "imap_host": "mail.example", "smtp_host": "m"}
    Settings.model_validate(given)
    with pytest.raises(ValidationError, match="in the clear"):
        Settings.model_validate({**given, "imap_security": "none"})
