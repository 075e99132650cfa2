"""nostr-relay with Ada, who writes with the vendor's own library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...contract import Place, Room
from ...facts import facts
from ...nostr.adapter import Nostr, Settings
from ..servers import Cable, found, free_port, serving
from ..stage import Stage
from .nostr_person import Person, sdk

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
    judge = "nostr-relay and nostr-sdk"

    def __init__(self, cable: Cable, us: Any, ada: Person) -> None:
        self._cable = cable
        self.us = us
        self.ada = ada
        self.person = ada.npub

    def settings(self) -> Settings:
        return Settings(relays=[f"ws://127.0.0.1:{self._cable.port}"])

    def secrets(self) -> Mapping[str, str]:
        return {"private_key": self.us.secret_key().to_bech32()}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"private_key": "nsec1canary"}  # nosec B105 # opens nothing

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
        several = [["p", self.us.public_key().to_hex()], ["p", ada.hex]]
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


@asynccontextmanager
async def relaying(folder: Path) -> AsyncIterator[int]:
    """Run a relay in a folder."""
    port = free_port()
    path = folder / "relay.yaml"
    path.write_text(CONFIGURATION.format(folder=folder, port=port))
    argv = (*found("nostr-relay"), "-c", str(path), "serve")
    async with serving(*argv, port=port):
        yield port


@asynccontextmanager
async def staged(relay: int) -> AsyncIterator[RelayStage]:
    """Open it at a relay, with keys that nobody had."""
    us = sdk.Keys.generate()
    person = Person(f"ws://127.0.0.1:{relay}", us.public_key().to_hex())
    async with Cable(relay) as cable, person as ada:
        yield RelayStage(cable, us, ada)


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    with TemporaryDirectory() as folder:
        async with relaying(Path(folder)) as relay, staged(relay) as stage:
            yield stage
