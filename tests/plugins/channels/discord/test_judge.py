"""discord.py is at home on the simulator: what it is true to, discord.py is too."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yarl
from agenthost.testing.simulators.discord import DiscordSimulator
from agenthost.testing.simulators.discord.world import (
    ADA,
    DIRECT,
    TEXT,
    THREAD,
    TOKEN,
    US,
)

pytestmark = pytest.mark.conformance
discord = pytest.importorskip("discord")


class Listener:
    """A bot of discord.py's that remembers what it hears."""

    def __init__(self, server: DiscordSimulator) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = True
        intents.message_content = True
        self.client = discord.Client(intents=intents, guild_ready_timeout=0.1)
        self.heard: list[Any] = []
        self.edited: list[Any] = []
        self.resumed = 0
        self.begun = 0
        self.changed = asyncio.Event()
        self._server = server
        for handler in (
            self.on_message,
            self.on_message_edit,
            self.on_resumed,
            self.on_ready,
        ):
            self.client.event(handler)

    async def on_message(self, message: Any) -> None:
        self.heard.append(message)
        self.changed.set()

    async def on_message_edit(self, _: Any, after: Any) -> None:
        self.edited.append(after.content)
        self.changed.set()

    async def on_resumed(self) -> None:
        self.resumed += 1
        self.changed.set()

    async def on_ready(self) -> None:
        self.begun += 1
        self.changed.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not happened():
                self.changed.clear()
                await self.changed.wait()

    @property
    def words(self) -> list[str]:
        return [each.content for each in self.heard]


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch) -> Callable[[DiscordSimulator], None]:
    def point(server: DiscordSimulator) -> None:
        gateway = yarl.URL(f"{server.gateway.url}/gateway")
        monkeypatch.setattr(discord.http.Route, "BASE", server.api)
        monkeypatch.setattr(
            discord.gateway.DiscordWebSocket, "DEFAULT_GATEWAY", gateway
        )
        # The compression that the simulator has.
        name = "_ZlibDecompressionContext"
        context = getattr(discord.utils, name)
        monkeypatch.setattr(discord.utils, "_ActiveDecompressionContext", context)

    return point


@asynccontextmanager
async def listening(server: DiscordSimulator) -> AsyncIterator[Listener]:
    listener = Listener(server)
    running = asyncio.create_task(listener.client.start(TOKEN))
    ready = asyncio.create_task(listener.until(lambda: listener.begun > 0))
    try:
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield listener
    finally:
        ready.cancel()
        await listener.client.close()
        await asyncio.wait([running], timeout=20)


async def test_it_hears_what_people_say(at_home: Any) -> None:
    async with DiscordSimulator() as server:
        at_home(server)
        async with listening(server) as bot:
            assert str(bot.client.user.id) == US["id"]
            direct = await server.put(DIRECT, content="between us")
            await server.put(TEXT, content=f"<@{US['id']}> before all")
            await server.put(THREAD, content="in a thread")
            await bot.until(lambda: len(bot.heard) == 3)
            await server.change(direct, content="changed")
            await bot.until(lambda: bot.edited == ["changed"])
            first, second, third = bot.heard
    assert isinstance(first.channel, discord.DMChannel)
    assert str(first.author.id) == ADA["id"]
    assert bot.client.user in second.mentions
    assert str(second.channel.id) == TEXT
    assert str(third.channel.parent_id) == TEXT


async def test_it_says_changes_reads_and_sends_files(at_home: Any) -> None:
    async with DiscordSimulator() as server:
        at_home(server)
        async with listening(server) as bot:
            channel = bot.client.get_channel(int(TEXT))
            told = await server.put(TEXT, content="a question")
            asked = await channel.fetch_message(int(told["id"]))
            nobody = discord.AllowedMentions.none()
            words = f"<@{ADA['id']}> an answer"
            said = await asked.reply(words, allowed_mentions=nobody)
            await said.edit(content="a better answer")
            await asked.add_reaction("\U0001f44d")
            async with channel.typing():
                pass
            file = discord.File(io.BytesIO(b"\0\1\2"), "a.bin")
            with_file = await channel.send("see", file=file, nonce="n-1")
            read = [each.content async for each in channel.history(limit=10)]
            after = [each.content async for each in channel.history(after=asked)]
            assert await with_file.attachments[0].read() == b"\0\1\2"
            with pytest.raises(discord.HTTPException, match="50035"):
                await channel.send("x" * 2001)
            with pytest.raises(discord.HTTPException, match="Unknown Message"):
                await channel.fetch_message(1)
    assert read == ["see", "a better answer", "a question"]
    assert after == ["a better answer", "see"]
    assert str(server.said[0]["message_reference"]["message_id"]) == told["id"]
    assert server.files == [("a.bin", b"\0\1\2")]
    assert (server.reactions, server.pinged) == (["\U0001f44d"], [])
    assert server.typed == 1


async def test_it_waits_as_long_as_a_limit_says(at_home: Any) -> None:
    async with DiscordSimulator() as server:
        at_home(server)
        async with listening(server) as bot:
            body = {"message": "limited", "retry_after": 0.05, "global": False}
            headers = {"retry-after": "1", "x-ratelimit-scope": "user", "via": "1.1"}
            server.next_answer = (429, body, headers)
            channel = bot.client.get_channel(int(TEXT))
            await channel.send("at last")
    assert [each["content"] for each in server.said] == ["at last"]
    assert server.calls.count(f"POST /channels/{TEXT}/messages") == 2


@pytest.mark.parametrize("how", ["op 7", "code 4000", "cut"])
async def test_it_resumes_and_misses_nothing(at_home: Any, how: str) -> None:
    async with DiscordSimulator() as server:
        at_home(server)
        async with listening(server) as bot:
            await server.put(DIRECT, content="before")
            await bot.until(lambda: len(bot.heard) == 1)
            match how:
                case "op 7":
                    await server.gateway.order(7)
                case "code 4000":
                    await server.gateway.close(4000)
                case _:
                    server.cut()
            await server.until(lambda: not server.gateway.links)
            await server.put(DIRECT, content="meanwhile")
            await bot.until(lambda: bot.resumed == 1)
            await server.put(DIRECT, content="after")
            await bot.until(lambda: len(bot.heard) >= 3)
    assert bot.words == ["before", "meanwhile", "after"]
    assert [each for each in server.gateway.operations() if each in {2, 6}] == [2, 6]
    assert server.gateway.where[1].startswith("/resume")


async def test_it_begins_anew_where_the_session_is_gone(at_home: Any) -> None:
    async with DiscordSimulator() as server:
        at_home(server)
        async with listening(server) as bot:
            await server.gateway.order(9, data=False)
            await bot.until(lambda: bot.begun == 2)
            await server.put(DIRECT, content="hello again")
            await bot.until(lambda: len(bot.heard) == 1)
    assert [each for each in server.gateway.operations() if each in {2, 6}] == [2, 2]


async def test_it_does_not_try_again_where_it_may_not(at_home: Any) -> None:
    async with DiscordSimulator() as server:
        at_home(server)
        server.gateway.allowed = 0
        with pytest.raises(discord.PrivilegedIntentsRequired):
            async with listening(server):
                pass
        assert len(server.gateway.where) == 1
