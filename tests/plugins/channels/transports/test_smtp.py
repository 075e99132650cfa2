"""It is known when a mail was taken, when it was not, and when nobody knows."""

import pytest
from agenthost import Unavailable
from agenthost_channels.transports.smtp import Lost, Refused, Smtp
from agenthost_channels.transports.tls import encrypting, trusting

from .wire import answering

HELLO = b"220 hello\r\n"
ABLE = b"250-there\r\n250 AUTH PLAIN\r\n"
OK = b"250 OK\r\n"
GO_ON = b"354 go on\r\n"


async def submit(*answers: bytes) -> None:
    async with answering(HELLO, [ABLE, *answers]) as streams:
        smtp = Smtp(*streams)
        await smtp.greet()
        await smtp.submit("us@x.example", "ada@x.example", b"line")


async def test_a_mail_that_is_taken_is_taken() -> None:
    await submit(OK, OK, GO_ON, b"", OK)


@pytest.mark.parametrize("at", range(3))
async def test_a_refusal_tells_its_code(at: int) -> None:
    answers = [OK, OK, GO_ON][:at]
    with pytest.raises(Refused) as told:
        await submit(*answers, b"451-not\r\n451 now\r\n")
    assert told.value.code == 451


async def test_hanging_up_before_the_mail_is_no_mail() -> None:
    with pytest.raises(Unavailable):
        await submit(OK)


async def test_hanging_up_after_the_mail_is_not_known() -> None:
    with pytest.raises(Lost):
        await submit(OK, OK, GO_ON, b"")


async def test_an_address_with_a_line_break_is_never_sent() -> None:
    async with answering(HELLO, [ABLE, OK]) as streams:
        smtp = Smtp(*streams)
        await smtp.greet()
        with pytest.raises(ValueError, match="line break"):
            await smtp.submit("us@x.example", "a@b>\r\nDATA", b"")


async def test_what_was_said_before_encryption_is_refused() -> None:
    async with answering(HELLO, [ABLE, b"220 go\r\n250 injected\r\n"]) as streams:
        smtp = Smtp(*streams)
        await smtp.greet()
        with pytest.raises(Unavailable, match="before it is encrypted"):
            await smtp.encrypt(encrypting("localhost", trusting()))


@pytest.mark.parametrize("greeting", [b"hello\r\n", b"220-x\r\n" * 200])
async def test_what_is_no_smtp_is_trouble(greeting: bytes) -> None:
    async with answering(greeting, []) as streams:
        with pytest.raises(Unavailable):
            await Smtp(*streams).greet()
