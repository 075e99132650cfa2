"""What real servers here cannot show: SASL, echoes, ids, times and lost answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest
from agenthost import Unauthenticated, Unavailable
from agenthost_channels.contract import Fate, Outbound, Place, Room
from agenthost_channels.irc.adapter import Irc, Settings
from agenthost_channels.irc.wire import Wire
from agenthost_channels.testing import FakeLine
from pydantic import ValidationError

from .scripted import HOST, ScriptedServer

ADA = Place("default", "ada")
ALL = ("sasl", "message-tags", "server-time", "echo-message", "account-tag")


def settings(server: ScriptedServer, **more: object) -> Settings:
    given = {"server": "127.0.0.1", "port": server.port, "tls": False, "nick": "bot"}
    return Settings.model_validate({**given, "channels": ["#room"], **more})


@asynccontextmanager
async def connected(server: ScriptedServer, **secrets: str) -> AsyncIterator[Irc]:
    line = FakeLine(settings(server), secrets)
    adapter = Irc(line)
    run = asyncio.create_task(adapter.run())
    try:
        await line.until(lambda: bool(line.connections))
        yield adapter
    finally:
        run.cancel()
        await asyncio.wait([run])
        await line.aclose()


def heard(adapter: Irc) -> FakeLine:
    assert isinstance(adapter.line, FakeLine)
    return adapter.line


async def test_sasl_logs_in() -> None:
    server = ScriptedServer(*ALL, password="hunter2")
    async with server, connected(server, password="hunter2"):
        pass
    assert "AUTHENTICATE PLAIN" in server.got
    assert not any("hunter2" in line for line in server.got)


@pytest.mark.parametrize("abilities", [ALL, ("server-time",)], ids=["wrong", "no-sasl"])
async def test_a_password_that_cannot_be_used_ends_it(abilities: tuple[str]) -> None:
    async with ScriptedServer(*abilities, password="hunter2") as server:
        line = FakeLine(settings(server), {"password": "canary"})
        with pytest.raises(Unauthenticated) as told:
            await Irc(line).run()
    assert "canary" not in str(told.value)
    assert "[channels.irc]" in str(told.value)


async def test_an_echo_gives_the_vendors_id() -> None:
    async with ScriptedServer(*ALL) as server, connected(server) as adapter:
        result = await adapter.send(Outbound("k", ADA, "hello"))
    assert (result.fate, result.message_id) == (Fate.DELIVERED, "id-1")
    assert heard(adapter).heard == []


async def test_a_missing_echo_is_an_unknown_fate() -> None:
    async with ScriptedServer(*ALL) as server, connected(server) as adapter:
        server.dropping = True
        result = await adapter.send(Outbound("k", ADA, "hello"))
    assert result.fate is Fate.UNKNOWN


async def test_a_lost_answer_is_an_unknown_fate() -> None:
    async with ScriptedServer() as server, connected(server) as adapter:
        server.hanging_up = True
        result = await adapter.send(Outbound("k", ADA, "hello"))
    assert result.fate is Fate.UNKNOWN


async def test_a_refused_line_among_several_is_an_unknown_fate() -> None:
    async with ScriptedServer() as server, connected(server) as adapter:
        server.refusing = "404"
        whole = await adapter.send(Outbound("k", ADA, "one"))
        parts = await adapter.send(Outbound("k", ADA, "one\ntwo"))
    assert (whole.fate, whole.final) == (Fate.NOT_SENT, True)
    assert parts.fate is Fate.UNKNOWN


async def test_lines_have_room_for_the_prefix_that_others_see() -> None:
    async with ScriptedServer() as server, connected(server) as adapter:
        await adapter.send(Outbound("k", ADA, "x" * 2000))
    sent = [line for line in server.got if line.startswith("PRIVMSG")]
    seen = [len(f":bot!{HOST} {line}\r\n".encode()) for line in sent]
    assert max(seen) == 512
    assert sum(line.count("x") for line in sent) == 2000


async def test_tags_say_who_when_and_which() -> None:
    async with ScriptedServer(*ALL) as server, connected(server) as adapter:
        server.write(
            "@time=2026-02-03T04:05:06.000Z;msgid=m1;account=Ada"
            " :A!u@h PRIVMSG #Room :bot, hi",
            "@bot :robot!u@h PRIVMSG bot :beep",
        )
        first, second = await heard(adapter).hear(2)
    assert first.message_id == "m1"
    assert first.sent_at == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert (first.sender.id, first.sender.name) == ("account:Ada", "A")
    assert (first.place.peer, first.place.room) == ("#room", Room.PUBLIC)
    assert (first.mentions_us, first.text) == (True, "hi")
    assert second.sender.bot


async def test_the_same_nick_from_elsewhere_is_somebody_else() -> None:
    async with ScriptedServer() as server, connected(server) as adapter:
        server.write(":ada!u@home PRIVMSG bot :me", ":ada!u@evil PRIVMSG bot :me")
        first, second = await heard(adapter).hear(2)
    assert first.sender.id != second.sender.id


async def test_notices_and_questions_of_programs_are_not_heard() -> None:
    async with ScriptedServer() as server, connected(server) as adapter:
        server.write(
            ":ada!u@h NOTICE bot :never answer",
            ":ada!u@h PRIVMSG bot :\x01VERSION\x01",
            ":s PRIVMSG",
            ":ada!u@h PRIVMSG bot :\x01ACTION waves\x01",
        )
        (only,) = await heard(adapter).hear(1)
    assert only.text == "waves"


async def test_hostile_lines_are_passed_over() -> None:
    async with ScriptedServer() as server, connected(server) as adapter:
        server.write(
            b"\xff\xfe\x00" * 50,
            b"@" + b"x" * 200_000 + b" :ada!u@h PRIVMSG bot :from the middle",
            b":",
            b"@time=yesterday :ada!u@h PRIVMSG bot :after",
            b"PONG",
            b"404",
        )
        await heard(adapter).hear(1)
    assert [each.text for each in heard(adapter).heard] == ["after"]


async def test_the_end_of_an_endless_line_is_no_line_of_its_own() -> None:
    reader = asyncio.StreamReader(limit=64)
    reader.feed_data(b"x" * 100)
    reading = asyncio.create_task(Wire(reader, Mock()).read())
    await asyncio.sleep(0)
    reader.feed_data(b":a!b PRIVMSG bot :tail\n:a!b PRIVMSG bot :whole\n")
    assert (await reading).at(1) == "whole"


@pytest.mark.parametrize("channel", ["room", "#a,#b", "#a\r\nQUIT", "#a b", "#"])
def test_what_is_not_one_channel_is_no_setting(channel: str) -> None:
    with pytest.raises(ValidationError):
        Settings(server="x", channels=[channel])


async def test_a_nick_in_use_is_lengthened_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Taken(ScriptedServer):
        def _nick(self, rest: str) -> None:
            if rest == "bot":
                self.write(":s 433 * bot :in use")

    async with Taken() as server, connected(server):
        assert "NICK bot_" in server.got
    assert "in use" in caplog.text


async def test_an_error_of_the_server_ends_it_without_formatting() -> None:
    async with ScriptedServer() as server:
        line = FakeLine(settings(server))
        run = asyncio.create_task(Irc(line).run())
        await line.until(lambda: bool(line.connections))
        server.write("ERROR :\x02Closing\x02 link")
        with pytest.raises(Unavailable, match="Closing link"):
            await run


async def test_a_certificate_nobody_vouches_for_is_refused() -> None:
    async with ScriptedServer() as server:
        line = FakeLine(settings(server, tls=True))
        with pytest.raises(Unavailable):
            await Irc(line).run()
        assert server.got == []


async def test_the_pace_is_held() -> None:
    async with ScriptedServer() as server:
        line = FakeLine(settings(server, burst=2, seconds_per_line=0.2))
        adapter = Irc(line)
        run = asyncio.create_task(adapter.run())
        await line.until(lambda: bool(line.connections))
        began = line.clock.monotonic()
        await adapter.send(Outbound("k", ADA, "1\n2\n3"))
        assert line.clock.monotonic() - began >= 0.19
        run.cancel()
        await asyncio.wait([run])
