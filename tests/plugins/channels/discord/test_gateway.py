"""Sessions: beaten for, resumed, given up, and begun anew without a loss."""

import asyncio
import json

import pytest
from agenthost import AgentHostError, Unauthenticated, Unavailable
from agenthost.testing.simulators.discord import DiscordSimulator
from agenthost.testing.simulators.discord.world import DIRECT, HIDDEN, TEXT, THREAD
from agenthost_channels.contract import Room
from agenthost_channels.discord import adapter as module
from agenthost_channels.discord.adapter import Discord
from agenthost_channels.discord.gateway import FINAL, Gateway
from agenthost_channels.discord.mapping import Whereabouts
from agenthost_channels.discord.session import CHANNELS, Session

from .running import IDENTIFY, RESUME, beginnings, line_to, running, words


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS", (0.0, 0.0))


async def ended(task: asyncio.Task[None]) -> BaseException | None:
    await asyncio.wait([task], timeout=20)
    return task.exception()


async def test_what_was_said_before_we_came_is_not_heard() -> None:
    async with DiscordSimulator() as server:
        await server.put(DIRECT, content="long ago")
        line = line_to(server)
        async with running(line):
            await server.put(DIRECT, content="now")
            await line.hear(1)
        await line.aclose()
    assert words(line) == ["now"]
    assert server.calls == ["GET /users/@me", "GET /gateway/bot"]


async def test_another_connection_is_made_at_once_where_discord_wants_it() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        async with running(line) as task:
            await server.put(DIRECT, content="before")
            await line.hear(1)
            await server.gateway.order(7)
            await server.put(DIRECT, content="meanwhile")
            await line.until(lambda: line.connections == 2)
            await server.put(DIRECT, content="after")
            await line.hear(3)
            assert not task.done()
        await line.aclose()
    assert words(line) == ["before", "meanwhile", "after"]
    assert beginnings(server) == [IDENTIFY, RESUME]
    assert server.gateway.where == ["/gateway", "/resume"]


async def test_a_start_resumes_the_session_of_the_process_before() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        async with running(line):
            await server.put(DIRECT, content="one")
            await line.hear(1)
        await server.put(DIRECT, content="two")
        await server.put(TEXT, content="<@100000000000000001> three")
        async with running(line):
            await line.hear(3)
        await line.aclose()
    assert words(line) == ["one", "two", "three"]
    assert beginnings(server) == [IDENTIFY, RESUME]


async def test_what_was_said_without_a_session_is_read() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server, message_content=True)
        async with running(line):
            for channel in (DIRECT, TEXT, THREAD):
                await server.put(channel, content="before")
            await line.hear(3)
            places = [each.place for each in line.heard]
        server.gateway.sessions.clear()
        for number in range(150):
            await server.put(DIRECT, content=f"missed {number}")
        await server.put(TEXT, content="missed there")
        await server.put(THREAD, content="missed in the thread")
        async with running(line):
            await line.hear(3 + 152)
            await server.put(DIRECT, content="after")
            await line.hear(3 + 153)
        await line.aclose()
    assert beginnings(server) == [IDENTIFY, RESUME, IDENTIFY]
    direct = [each.text for each in line.heard if each.place == places[0]]
    missed = [f"missed {number}" for number in range(150)]
    assert direct == ["before", *missed, "after"]
    assert [each.text for each in line.heard if each.place == places[1]][1:] == [
        "missed there"
    ]
    assert [each.text for each in line.heard if each.place == places[2]][1:] == [
        "missed in the thread"
    ]
    assert (places[2].peer, places[2].thread) == (TEXT, THREAD)
    assert max(line.batches) <= 100


async def test_a_break_while_it_is_read_loses_nothing() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        async with running(line):
            await server.put(DIRECT, content="before")
            await line.hear(1)
        server.gateway.sessions.clear()
        await server.put(DIRECT, content="missed")
        server.unreadable = 1
        same = Discord(line)
        async with running(line, same) as task:
            assert isinstance(await ended(task), Unavailable)
        async with running(line, same):
            await line.hear(2)
        await line.aclose()
    assert words(line) == ["before", "missed"]
    # The session that could not be caught up with is not resumed.
    assert beginnings(server) == [IDENTIFY, RESUME, IDENTIFY, IDENTIFY]


async def test_a_channel_that_is_gone_is_forgotten() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        session = Session("")
        session.hear(HIDDEN, "1", Whereabouts(HIDDEN))
        await line.received(cursor=session.written())
        async with running(line):
            pass
        await line.aclose()
    assert HIDDEN not in json.loads(line.cursor)["heard"]


async def test_a_session_that_may_still_be_resumed_is() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        async with running(line):
            await server.put(DIRECT, content="before")
            await line.hear(1)
        server.gateway.next_invalid = True
        await server.put(DIRECT, content="meanwhile")
        async with running(line):
            await line.hear(2)
        await line.aclose()
    assert words(line) == ["before", "meanwhile"]
    assert beginnings(server) == [IDENTIFY, RESUME, RESUME]


@pytest.mark.parametrize(
    ("code", "then"),
    [(4000, RESUME), (4008, RESUME), (4007, IDENTIFY), (4009, IDENTIFY)],
)
async def test_a_code_tells_how_to_begin_again(code: int, then: int) -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        same = Discord(line)
        async with running(line, same) as task:
            await server.put(DIRECT, content="before")
            await line.hear(1)
            await server.gateway.close(code)
            assert isinstance(await ended(task), Unavailable)
        await server.put(DIRECT, content="meanwhile")
        async with running(line, same):
            await line.hear(2)
        await line.aclose()
    assert words(line) == ["before", "meanwhile"]
    assert beginnings(server) == [IDENTIFY, then]


@pytest.mark.parametrize("code", sorted(FINAL))
async def test_a_code_that_no_new_try_mends_ends_it(code: int) -> None:
    async with DiscordSimulator() as server:
        server.gateway.next_code = code
        line = line_to(server)
        async with running(line) as task:
            error = await ended(task)
        await line.aclose()
    assert isinstance(error, Unauthenticated)
    assert str(error) == FINAL[code]
    assert len(server.gateway.where) == 1


async def test_an_intent_that_is_not_allowed_is_named_with_its_remedy() -> None:
    async with DiscordSimulator() as server:
        server.gateway.allowed = 0
        line = line_to(server, message_content=True)
        async with running(line) as task:
            error = await ended(task)
        await line.aclose()
        line = line_to(server)
        async with running(line):
            assert line.connections == 1
        await line.aclose()
    assert "message_content = false" in str(error)


async def test_it_beats_and_counts_what_is_on_disk() -> None:
    async with DiscordSimulator() as server:
        server.gateway.interval = 30
        line = line_to(server)
        async with running(line):
            await server.put(DIRECT, content="hello")
            await line.hear(1)
            heard = server.gateway.heard
            await server.until(lambda: (1, 2) in heard)
            line.hold()
            await server.put(DIRECT, content="not yet")
            since = len(heard)
            await server.until(lambda: len(heard) > since + 5)
            # Discord keeps what we have not: nothing later is counted.
            assert {each for each in heard[since:] if each[0] == 1} == {(1, 2)}
            line.release()
            await server.until(lambda: (1, 3) in heard)
            # A slow disk is no silence.
            assert line.connections == 1
        await line.aclose()
    assert words(line) == ["hello", "not yet"]


async def test_a_beat_that_is_asked_for_comes_at_once() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        async with running(line):
            before = server.gateway.operations().count(1)
            await server.gateway.order(1)
            await server.until(lambda: server.gateway.operations().count(1) > before)
        await line.aclose()


async def test_a_gateway_that_answers_no_beat_is_left() -> None:
    async with DiscordSimulator() as server:
        server.gateway.interval = 30
        server.gateway.silent = True
        line = line_to(server)
        same = Discord(line)
        async with running(line, same) as task:
            assert isinstance(await ended(task), Unavailable)
        server.gateway.silent = False
        async with running(line, same):
            await server.put(DIRECT, content="hello")
            await line.hear(1)
        await line.aclose()
    # It was left without a good-bye: the session is still there.
    assert beginnings(server) == [IDENTIFY, RESUME]


async def test_where_a_session_cannot_be_reached_the_gateway_is_asked() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        async with running(line):
            await server.put(DIRECT, content="before")
            await line.hear(1)
        kept = json.loads(line.cursor)
        kept["url"] = "ws://127.0.0.1:1"
        await line.received(cursor=json.dumps(kept))
        same = Discord(line)
        await server.put(DIRECT, content="meanwhile")
        async with running(line, same) as task:
            assert isinstance(await ended(task), Unavailable)
        async with running(line, same):
            await line.hear(2)
        await line.aclose()
    assert beginnings(server) == [IDENTIFY, RESUME]
    assert server.gateway.where == ["/gateway", "/gateway"]


async def test_a_gateway_that_only_sends_us_away_is_trouble() -> None:
    async with DiscordSimulator() as server:
        server.gateway.sends_away = True
        line = line_to(server)
        async with running(line) as task:
            error = await ended(task)
        await line.aclose()
    assert isinstance(error, Unavailable)
    assert len(server.gateway.where) == module.TURNS_WITHOUT_EVENT


@pytest.mark.parametrize(
    "address",
    [
        "ws://gateway.discord.gg",
        "https://gateway.discord.gg",
        "http://127.0.0.1:1",
        "gateway",
        "",
        "wss://a:port",
        "ws://127.0.0.1.evil.example",
    ],
)
async def test_the_token_goes_nowhere_in_the_clear(address: str) -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        gateway = Gateway(line, Session(""), "canary", 0)

        async def take(_: object) -> None:
            raise AssertionError

        with pytest.raises(Unavailable, match="Discord gave an address"):
            await gateway.listen(address, take)
        assert line.left_open() == 0
        await line.aclose()


async def test_no_more_sessions_begin_than_discord_allows() -> None:
    async with DiscordSimulator() as server:
        server.remaining = 0
        line = line_to(server)
        async with running(line) as task:
            error = await ended(task)
        await line.aclose()
    assert "no more sessions" in str(error)
    assert not server.gateway.where


async def test_a_frame_too_large_ends_the_connection() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        same = Discord(line)
        async with running(line, same) as task:
            sending = asyncio.create_task(server.gateway.raw("x" * (5 << 20)))
            assert "over 4 MB" in str(await ended(task))
            await asyncio.wait([sending], timeout=20)
        async with running(line, same):
            await server.put(DIRECT, content="hello")
            await line.hear(1)
        await line.aclose()
    assert beginnings(server) == [IDENTIFY, RESUME]


@pytest.mark.parametrize(
    "cursor", ["", "7", "[]", "{", '{"heard": {"1": 3}}', '{"heard": 3, "id": "x"}']
)
def test_a_cursor_that_makes_no_sense_is_none(cursor: str) -> None:
    session = Session(cursor)
    assert not session.known
    assert not session.heard


def test_a_session_is_written_and_read() -> None:
    session = Session("")
    session.begin({"session_id": "s", "resume_gateway_url": "wss://x"}, 7)
    for number in range(CHANNELS + 5):
        session.hear(str(number), "5", Whereabouts("1", str(number), Room.GROUP))
    session.hear("50", "4", Whereabouts("1", "50"))
    again = Session(session.written())
    assert again.written() == session.written()
    assert again.known
    assert (again.seq, len(again.heard)) == (7, CHANNELS)
    # The last message of a channel is the last one, though an older one came later.
    assert again.heard["50"][0] == "5"
    for wrong in ("8", -1, None, 1 << 60, 7.5):
        again.passed(wrong)
    assert again.seq == 7


async def test_what_breaks_in_the_taking_leaves_nothing_open() -> None:
    async with DiscordSimulator() as server:
        line = line_to(server)
        line.failing = True
        async with running(line) as task:
            assert isinstance(await ended(task), AgentHostError)
        assert line.left_open() == 0
        await line.aclose()
