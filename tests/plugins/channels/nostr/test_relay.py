"""The adapter keeps the contract with a real relay, and the vendor's own library."""

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost_channels.contract import Fate, Outbound, Place, Room
from agenthost_channels.facts import facts
from agenthost_channels.nostr.adapter import Nostr, Settings
from agenthost_channels.testing import ChannelContract, FakeLine, Stage, played
from agenthost_channels.testing.servers import Cable, free_port

from .person import Person, sdk

pytestmark = pytest.mark.conformance

PROGRAM = Path(__file__).parents[4] / ".cache/programs/nostr/bin/nostr-relay"
UP_SECONDS = 60
CONFIGURATION = """\
relay_name: test
storage:
  sqlalchemy.url: sqlite+aiosqlite:///{folder}/db
  validators: [nostr_relay.validators.is_signed]
verification: {{nip05_verification: disabled}}
gunicorn: {{bind: "127.0.0.1:{port}", workers: 1, loglevel: error, reload: false}}
"""


class RelayStage(Stage):
    """nostr-relay, with Ada."""

    channel = Nostr
    facts = facts("nostr")
    keeps = True
    groups = False

    def __init__(self, cable: Cable, us: Any, ada: Person) -> None:
        self._cable = cable
        self._us = us
        self.ada = ada
        self.person = ada.npub

    def settings(self) -> Settings:
        return Settings(relays=[f"ws://127.0.0.1:{self._cable.port}"])

    def secrets(self) -> Mapping[str, str]:
        return {"private_key": self._us.secret_key().to_bech32()}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"private_key": "nsec1canary"}

    def place(self, room: Room) -> Place:
        return Place("default", self.ada.npub, room=room)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        await self.ada.write(text)

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        return await self.ada.seen(count)

    async def cut(self) -> None:
        self._cable.pull()

    def nowhere(self) -> Place:
        return Place("default", f"npub1{'q' * 58}")

    async def say_again(self) -> None:
        await self.ada.publish(self.ada.last)

    async def answer(self, text: str) -> None:
        await self.ada.write(text, ["e", self.ada.got[-1][2]["id"]])

    async def hostile(self) -> None:
        eve, ada = sdk.Keys.generate(), self.ada
        forged = ada.rumor(pubkey=eve.public_key().to_hex())
        several = [["p", self._us.public_key().to_hex()], ["p", ada.hex]]
        for event in (
            ada.event(1059, "not a payload"),
            ada.event(1059, "A" * 200),
            ada.event(1, "said to all"),
            ada.wrapped(forged),
            ada.wrapped(ada.rumor(kind=15)),
            ada.wrapped(ada.rumor(tags=several)),
            ada.wrapped(ada.rumor(created_at=10)),
        ):
            await ada.publish(event)


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with relaying(tmp_path_factory.mktemp("nostr")) as port:
        yield port


@contextmanager
def relaying(folder: Path) -> Iterator[int]:
    if not PROGRAM.exists():
        pytest.skip("no nostr-relay here: make channels installs it")
    port = free_port()
    path = folder / "relay.yaml"
    path.write_text(CONFIGURATION.format(folder=folder, port=port))
    argv, null = [str(PROGRAM), "-c", str(path), "serve"], subprocess.DEVNULL
    with subprocess.Popen(argv, cwd=folder, stdout=null, stderr=null) as process:
        try:
            _wait(port, process)
            yield port
        finally:
            process.terminate()
            process.wait(20)


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    ends = time.monotonic() + UP_SECONDS
    while time.monotonic() < ends:
        assert process.poll() is None, "the relay has ended"
        try:
            httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the relay did not come up")


@pytest.fixture
async def stage(relay: int) -> AsyncIterator[RelayStage]:
    async with staged(relay) as stage:
        yield stage


@asynccontextmanager
async def staged(relay: int) -> AsyncIterator[RelayStage]:
    us = sdk.Keys.generate()
    person = Person(f"ws://127.0.0.1:{relay}", us.public_key().to_hex())
    async with Cable(relay) as cable, person as ada:
        yield RelayStage(cable, us, ada)


class TestNostrWithARelay(ChannelContract):
    """All of it."""


async def test_a_letter_of_old_is_heard_and_answered_so(stage: RelayStage) -> None:
    class Old(RelayStage):
        def settings(self) -> Settings:
            return super().settings().model_copy(update={"nip04": True})

    old = Old(stage._cable, stage._us, stage.ada)
    async with played(old) as play:
        await old.ada.publish(old.ada.of_old("as of old"))
        (heard,) = await play.line.hear(1)
        sent = await play.adapter.send(Outbound("k", heard.place, "in kind"))
        assert await old.seen(1) == ["in kind"]
    assert heard.text == "as of old"
    assert (sent.fate, heard.sender.id) == (Fate.DELIVERED, stage.person)
    assert old.ada.got[-1][2]["kind"] == 4


async def test_a_person_finds_where_to_write(stage: RelayStage) -> None:
    async with played(stage) as play:
        url = play.line.settings.relays[0]
        wanted = {"kinds": [10050], "authors": [stage._us.public_key().to_hex()]}
        found = await stage.ada.asked(wanted)
    assert ["relay", url] in found[0]["tags"]


async def test_a_relay_that_wants_to_know_us_lets_us_in() -> None:
    """The relay of the vendor's library asks both readers and writers (NIP-42)."""
    auth = sdk.LocalRelayBuilderNip42(mode=sdk.LocalRelayBuilderNip42Mode.BOTH)
    served = sdk.LocalRelayBuilder().addr("127.0.0.1").nip42(auth).build()
    await served.run()
    us, ada = sdk.Keys.generate(), sdk.Keys.generate()
    line_settings = Settings(relays=[str(await served.url())])
    try:
        line = FakeLine(line_settings, {"private_key": us.secret_key().to_hex()})
        play = asyncio.create_task((adapter := Nostr(line)).run())
        await line.until(lambda: bool(line.connections))
        event = sdk.nip17_make_private_msg(ada, us.public_key(), "hello", None, [])
        served.notify_event(event)
        (heard,) = await line.hear(1)
        sent = await adapter.send(Outbound("k", heard.place, "who knocks?"))
        play.cancel()
        await asyncio.wait([play])
        await line.aclose()
    finally:
        served.shutdown()
    assert heard.sender.id == ada.public_key().to_bech32()
    assert sent.fate is Fate.DELIVERED, sent.reason
