"""kill -9 while people speak over all channels: each is answered once, in order.

The services keep what is said while nobody is there, break connections and send some
messages twice. What may have been sent when the daemon was killed, and cannot be looked
up, is told as unknown and never sent again.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from agenthost.testing.processes import DaemonProcess
from agenthost.testing.simulators.discord import DiscordSimulator
from agenthost.testing.simulators.slack import SlackSimulator
from agenthost.testing.simulators.telegram import TelegramSimulator
from agenthost_channels.contract import Room
from agenthost_channels.testing import Stage
from agenthost_channels.testing.stages.discord import DiscordStage
from agenthost_channels.testing.stages.email import dovecot
from agenthost_channels.testing.stages.matrix import homeserver
from agenthost_channels.testing.stages.matrix import staged as in_matrix
from agenthost_channels.testing.stages.mqtt import mosquitto
from agenthost_channels.testing.stages.nostr import relaying
from agenthost_channels.testing.stages.nostr import staged as on_relay
from agenthost_channels.testing.stages.slack import SlackStage
from agenthost_channels.testing.stages.telegram import TelegramStage
from agenthost_channels.testing.stages.xmpp import prosody

from tests.plugins.channels.webhook.program import ENVIRON

from .talks import (
    ANSWER,
    MatrixTalk,
    Service,
    Talk,
    WebhookTalk,
    environ_of,
    section_of,
)

EAGER = "tests.faults.eager"
MANIFEST = """
name = "helper"
[capabilities]
tools = ["calculate"]
[resources]
max_tool_calls_per_minute = 1_000_000
max_llm_tokens_per_hour = 1_000_000_000
"""
LONGEST_LIFE = 60.0
ROOT = Path(__file__).parents[2]
REPEATED = frozenset({"matrix", "webhook"})
"""Their services know a message that they have taken: nothing is unknown there."""
IN_ORDER = frozenset({"discord", "telegram", "mqtt", "matrix", "webhook", "xmpp"})
"""They hand on in the order in which it was said, also what waited for us.

A mail that answers none begins a conversation of its own: those know no order.
"""
ROWS = """
SELECT i.channel, o.plain, i.seq, i.state, o.state, i.peer, i.thread
FROM channel_inbox AS i
LEFT JOIN channel_outbox AS o ON o.id = substr(i.key, 1, 28) || '-0'
"""
UNKNOWN = f"{ROWS} WHERE o.state = 'unknown'"
UNSENT = f"{ROWS} WHERE o.state NOT IN ('unknown', 'delivered')"


class World:
    """The services, who speaks there, and one daemon after another."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.talks: list[Talk] = []
        self.config = ""
        self.environ: dict[str, str] = {"PYTHONPATH": str(ROOT), **ENVIRON}
        self.address = "http://127.0.0.1:9"
        self._next = 1_000_000
        self._unknown, self._looked = set[int](), 0.0

    def numbers(self, count: int) -> range:
        """Give numbers that nobody else says."""
        start, self._next = self._next, self._next + 1_000_000
        return range(start, start + count)

    def add(self, stage: Stage, *talks: Talk) -> None:
        """Let people speak on a stage."""
        self.config += section_of(stage)
        self.environ |= environ_of(stage)
        self.talks += talks

    def furnish(self) -> None:
        """Make the home, or configure it anew."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        path = self.home / "config.toml"
        path.write_text(self.config)
        path.chmod(0o600)

    def rows(self, query: str = ROWS) -> Sequence[Any]:
        """Read what came in, and what became of its answer."""
        url = f"file:{self.home / 'data/agenthost.db'}?mode=ro"
        with closing(sqlite3.connect(url, uri=True, timeout=10)) as connection:
            return connection.execute(query).fetchall()

    def unknown(self) -> set[int]:
        """Tell which answers the daemon says may not have arrived."""
        with suppress(sqlite3.OperationalError):
            if time.monotonic() > self._looked + 1:
                self._looked = time.monotonic()
                self._unknown = {_number(row) for row in self.rows(UNKNOWN)}
        return self._unknown

    async def live(self) -> DaemonProcess:
        """Start the daemon."""
        daemon = await asyncio.to_thread(DaemonProcess, self.home, self.environ, EAGER)
        self.address = str(daemon.http.base_url)
        return daemon


def _number(row: Any) -> int:
    found = ANSWER.search(row[1] or "")
    return int(found[1]) if found else 0


@asynccontextmanager
async def crowd(home: Path, count: int) -> AsyncIterator[World]:
    """Eight services, with people who say about so many messages in all."""
    world = World(home)
    folder = home.parent
    async with AsyncExitStack() as stack:
        entered = stack.enter_async_context
        few, many = count // 20, count * 5 // 40
        telegram = TelegramStage(await entered(TelegramSimulator()))
        group = Talk(telegram, world.numbers(few), Room.GROUP)
        world.add(telegram, Talk(telegram, world.numbers(many)), group)
        discord = DiscordStage(await entered(DiscordSimulator()))
        group = Talk(discord, world.numbers(few), Room.GROUP)
        world.add(discord, Talk(discord, world.numbers(few), again=True), group)
        slack = SlackStage(await entered(SlackSimulator()))
        group = Talk(slack, world.numbers(few), Room.GROUP)
        world.add(slack, Talk(slack, world.numbers(many), again=True), group)
        mqtt = await entered(mosquitto(folder))
        world.add(mqtt, Talk(mqtt, world.numbers(many)))
        mail = await entered(dovecot())
        world.add(mail, Talk(mail, world.numbers(few), again=True))
        (folder / "matrix").mkdir()
        port = await entered(homeserver(folder / "matrix"))
        matrix = await entered(in_matrix(port, 1))
        group = MatrixTalk(matrix, world.numbers(few), Room.GROUP)
        world.add(matrix, MatrixTalk(matrix, world.numbers(few * 2)), group)
        (folder / "nostr").mkdir()
        relay = await entered(relaying(folder / "nostr"))
        nostr = await entered(on_relay(relay))
        world.add(nostr, Talk(nostr, world.numbers(few * 2), again=True))
        (folder / "xmpp").mkdir()
        xmpp = await entered(prosody(folder / "xmpp"))
        group = Talk(xmpp, world.numbers(few), Room.GROUP)
        world.add(xmpp, Talk(xmpp, world.numbers(few * 2)), group)
        service = await entered(Service())
        world.config += service.config.partition("\n")[2]
        world.talks += [
            WebhookTalk(service, world.numbers(few), lambda: world.address)
            for _ in range(4)
        ]
        world.furnish()
        yield world


async def kill_amid(world: World, kills: int) -> None:
    """Let all speak, and kill one daemon after another meanwhile."""
    luck = random.Random(kills)
    whole = sum(len(talk.numbers) for talk in world.talks)
    daemon = await world.live()
    made = daemon.http.post("/api/agents", json={"manifest_toml": MANIFEST})
    assert made.status_code == 201, made.text
    # What was said before a channel was ever connected is not for it.
    await asyncio.to_thread(connected, daemon)
    speaking = asyncio.gather(*(talk.speak(world.unknown) for talk in world.talks))
    try:
        for life in range(1, kills + 1):
            until = whole * life // (kills + 1)
            await _progress(world, speaking, until)
            await asyncio.sleep(luck.random() / 4)
            daemon.kill()
            daemon.__exit__(None, None, None)
            daemon = await world.live()
        await speaking
        await _settled(world)
    finally:
        speaking.cancel()
        await asyncio.wait([speaking])
        daemon.terminate()
        daemon.__exit__(None, None, None)


def connected(daemon: DaemonProcess) -> None:
    """Wait until every channel is."""
    ends = time.monotonic() + LONGEST_LIFE
    channels: list[dict[str, Any]] = [{"enabled": True, "connected": False}]
    while off := [each for each in channels if each["enabled"] > each["connected"]]:
        assert time.monotonic() < ends, off
        time.sleep(0.1)
        channels = daemon.http.get("/api/channels").json()["channels"]


async def _progress(world: World, speaking: Any, until: int) -> None:
    """Wait until so many are answered, or a minute."""
    ends = time.monotonic() + LONGEST_LIFE
    while not speaking.done() and time.monotonic() < ends:
        heard = [await talk.heard() for talk in world.talks]
        if sum(map(len, heard)) >= until:
            return
        await asyncio.sleep(0.1)


async def _settled(world: World) -> None:
    """Wait until nothing is left to be sent: what is in doubt may be sent anew."""
    ends = time.monotonic() + LONGEST_LIFE
    while unsent := world.rows(UNSENT):
        assert time.monotonic() < ends, unsent
        await asyncio.sleep(0.2)


async def judge(world: World, kills: int) -> Mapping[str, int]:
    """Hold what was heard against what was said and what the daemon says."""
    rows = world.rows()
    assert Counter(row[3] for row in rows) == {"done": len(rows)}
    came = {_number(row): row for row in rows}
    assert 0 not in came, came[0]
    unknown = {number: row[0] for number, row in came.items() if row[4] == "unknown"}
    assert {row[4] for row in rows} <= {"delivered", "unknown"}
    missing = 0
    for talk in world.talks:
        heard = await talk.heard()
        twice = {number for number, times in Counter(heard).items() if times > 1}
        assert not twice, f"{talk.name}: answered twice: {sorted(twice)}"
        lost = set(talk.numbers) - set(heard)
        assert lost <= set(unknown), f"{talk.name}: lost: {sorted(lost - set(unknown))}"
        for conversation in {came[number][5:] for number in heard}:
            places = [came[n][2] for n in heard if came[n][5:] == conversation]
            assert places == sorted(places), f"{talk.name}: not in the order it came"
        if talk.name in IN_ORDER:
            assert heard == sorted(heard), f"{talk.name}: not in the order it was said"
        missing += len(lost)
    by = Counter(unknown.values())
    assert not REPEATED & set(by), by
    # One at a time is on its way: a kill leaves one in doubt, a broken line one too.
    assert all(count <= 2 * kills + 20 for count in by.values()), by
    assert len(rows) == sum(len(talk.numbers) for talk in world.talks)
    return {"messages": len(rows), "unknown": len(unknown), "not there": missing}


async def campaign(home: Path, count: int, kills: int) -> str:
    async with crowd(home, count) as world:
        await kill_amid(world, kills)
        told = await judge(world, kills)
    said = ", ".join(f"{count} {what}" for what, count in told.items())
    return f"{kills} kills: 0 lost, 0 twice (limits 0) of {said}"


@pytest.mark.faults
async def test_kills_while_all_channels_speak_lose_and_repeat_nothing(
    tmp_path: Path, figures: Callable[[str], None]
) -> None:
    figures(await campaign(tmp_path / "home", 10_000, kills=50))
