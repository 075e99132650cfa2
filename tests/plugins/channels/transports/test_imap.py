"""What a mailbox says is measured before it is read, and never trusted too early."""

import pytest
from agenthost import TooLarge, Unauthenticated, Unavailable
from agenthost_channels.transports.imap import Imap, quoted
from agenthost_channels.transports.tls import encrypting, trusting

from .wire import answering

HELLO = b"* OK hello\r\n"
ABLE = b"* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR\r\nTAG OK\r\n"


async def test_what_was_said_before_encryption_is_refused() -> None:
    early = b"TAG OK go on\r\n* CAPABILITY NOTHING\r\n"
    async with answering(HELLO, [ABLE, early]) as streams:
        imap = Imap(*streams, largest=100)
        await imap.greet()
        with pytest.raises(Unavailable, match="before it is encrypted"):
            await imap.encrypt(encrypting("localhost", trusting()))


async def test_a_literal_beyond_the_limit_is_not_read() -> None:
    huge = b"* 1 FETCH (UID 7 BODY[] {9999999999}\r\n"
    async with answering(HELLO, [ABLE, huge]) as streams:
        imap = Imap(*streams, largest=100)
        await imap.greet()
        with pytest.raises(TooLarge):
            await imap.fetch(7)


async def test_a_mail_is_read_with_its_literals() -> None:
    mail = (
        b'* 1 FETCH (UID 7 INTERNALDATE " 1-Jan-2026 00:00:00 +0000" BODY[] {5}\r\n'
        b"a\r\nb))\r\nTAG OK\r\n"
    )
    async with answering(HELLO, [ABLE, mail]) as streams:
        imap = Imap(*streams, largest=100)
        await imap.greet()
        assert await imap.fetch(7) == (b"a\r\nb)", " 1-Jan-2026 00:00:00 +0000")


async def test_a_refused_login_shows_no_password() -> None:
    async with answering(HELLO, [ABLE, b"TAG NO bad canary\r\n"]) as streams:
        imap = Imap(*streams, largest=100)
        await imap.greet()
        with pytest.raises(Unauthenticated) as told:
            await imap.log_in("us", "canary", by_token=False)
    assert "canary" not in str(told.value)


async def test_a_line_without_an_end_is_trouble() -> None:
    async with answering(b"* " + b"x" * 200_000, []) as streams:
        with pytest.raises(Unavailable, match="no end"):
            await Imap(*streams, largest=100).greet()


def test_a_quoted_string_stays_one() -> None:
    assert quoted('a"b\\c\r\nd') == '"a\\"b\\\\cd"'
