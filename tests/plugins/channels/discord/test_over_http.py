"""A daemon answers on Discord, through its own ways out, and across breaks."""

from pathlib import Path

import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost.testing.simulators.discord import DiscordSimulator
from agenthost.testing.simulators.discord.world import (
    ADA,
    BOT,
    DIRECT,
    TEXT,
    THREAD,
    TOKEN,
    US,
)

from ..webhook.program import opened
from .running import IDENTIFY, RESUME, beginnings

pytestmark = pytest.mark.conformance
ROWS = "SELECT message_id FROM channel_inbox ORDER BY seq"


async def started(
    daemons: Daemons, server: DiscordSimulator, home: Path | None = None
) -> RunningDaemon:
    config = (
        f'[channels.discord]\nagent = "helper"\nallow_from = ["{ADA["id"]}"]\n'
        f'allowed_hosts = ["127.0.0.1"]\napi_url = "{server.api}"\n'
    )
    environ = {"DISCORD_BOT_TOKEN": TOKEN}
    running = await daemons.start(config=config, environ=environ, home=home)
    if not len(running.daemon.agents):
        await running.agent("helper")
    await opened(running, "discord")
    return running


async def answers(server: DiscordSimulator, count: int) -> list[tuple[str, str]]:
    await server.until(lambda: len(server.said) >= count)
    return [(each["channel"], each["content"]) for each in server.said]


async def test_people_are_answered_once_across_breaks(daemons: Daemons) -> None:
    async with DiscordSimulator() as server:
        first = await started(daemons, server)
        first.model.says("hello *Ada*")
        told = [await server.put(DIRECT, content="hi")]
        await server.put(DIRECT, BOT, content="a stranger")
        await server.put(TEXT, content="not to us")
        assert await answers(server, 1) == [(DIRECT, "hello *Ada*")]
        assert server.said[0]["message_reference"]["message_id"] == told[0]["id"]
        await server.until(lambda: server.typed > 0)
        await first.daemon.stop()
        mention = f"<@{US['id']}> while you were away"
        told.append(await server.put(THREAD, content=mention))
        again = await started(daemons, server, first.daemon.home)
        # It may answer before anybody could tell it what to say.
        echo = "You said: while you were away"
        assert (await answers(server, 2))[1] == (THREAD, echo)
        again.model.says("still here")
        server.cut()
        told.append(await server.put(DIRECT, content="and after a break"))
        assert (await answers(server, 3))[2] == (DIRECT, "still here")
        kept = await again.daemon.store.read(ROWS)
        assert [row[0] for row in kept] == [each["id"] for each in told]
        assert beginnings(server) == [IDENTIFY, RESUME, RESUME]
        await again.daemon.stop()


async def test_a_lost_answer_is_said_once(daemons: Daemons) -> None:
    async with DiscordSimulator() as server:
        running = await started(daemons, server)
        running.model.says("did you get this?")
        server.losing = True
        told = await server.put(DIRECT, content="hi")
        assert await answers(server, 1) == [(DIRECT, "did you get this?")]
        running.model.says("good")
        await server.put(DIRECT, content="yes")
        assert len(await answers(server, 2)) == 2
        rows = await running.daemon.store.read(
            "SELECT state, message_id FROM channel_outbox ORDER BY created_at LIMIT 1"
        )
        names = {each["id"] for each in server.kept[DIRECT]} - {told["id"]}
        assert rows[0][0] == "delivered"
        assert rows[0][1] in names
        await running.daemon.stop()
