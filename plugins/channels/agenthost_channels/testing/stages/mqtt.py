"""mosquitto with Ada, who writes to a topic."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from ...contract import Place, Room
from ...facts import facts
from ...mqtt.adapter import Mqtt, Settings
from ...transports.mqtt import Login, MqttStream, published
from ..servers import Cable, found, free_port, serving
from ..stage import Stage

PASSWORD = "canary-of-mosquitto"  # noqa: S105 # nosec B105 # opens nothing
CONFIGURATION = """\
listener {port} 127.0.0.1
allow_anonymous false
password_file {folder}/passwords
max_queued_messages 0
user root
"""


class Ada:
    """Another client of the broker's."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.got: list[tuple[str, str]] = []
        self._changed = asyncio.Event()
        self._ids = 10

    async def __aenter__(self) -> Self:
        streams = await asyncio.open_connection("127.0.0.1", self._port)
        self._stream = MqttStream(*streams, largest=1_000_000)
        await self._stream.log_in(Login("ada", "us", PASSWORD))
        await self._stream.subscribe("#")
        self._task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        self._stream.close()
        await asyncio.wait([self._task])

    async def _read(self) -> None:
        while True:
            if publication := published(await self._stream.read()):
                self.got.append(
                    (publication.topic, publication.payload.decode(errors="replace"))
                )
                self._stream.acknowledge(publication.packet_id)
                self._changed.set()

    def publish(self, topic: str, payload: bytes) -> None:
        self._ids += 1
        self._stream.publish(topic, payload, self._ids)

    async def until(self, topic: str, count: int) -> list[str]:
        async with asyncio.timeout(20):
            while len(found := [p for t, p in self.got if t == topic]) < count:
                self._changed.clear()
                await self._changed.wait()
        return found


class MosquittoStage(Stage):
    """mosquitto, with Ada who writes to a topic."""

    channel = Mqtt
    facts = facts("mqtt")
    keeps = True
    groups = False
    judge = "mosquitto"
    person = "ada"

    def __init__(self, cable: Cable, ada: Ada) -> None:
        self._cable = cable
        self._ada = ada
        self._said = 0

    def settings(self) -> Settings:
        return Settings(host="127.0.0.1", port=self._cable.port, tls=False, user="us")

    def secrets(self) -> Mapping[str, str]:
        return {"password": PASSWORD}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"password": "canary-that-is-wrong"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        assert room is Room.DIRECT
        return Place("default", self.person)

    async def cut(self) -> None:
        self._cable.pull()

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        self._ada.publish("agenthost/ada/in", text.encode())
        self._said += 1
        await self._ada.until("agenthost/ada/in", self._said)

    async def hostile(self) -> None:
        for raw in (b"", b"\xff\xfe\0", b"[" * 50_000, b'{"text": 7}', b"x" * 300_000):
            self._ada.publish("agenthost/ada/in", raw)
        self._ada.publish("agenthost/a b/in", b"a peer with a space")

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        payloads = await self._ada.until("agenthost/ada/out", count)
        return [json.loads(each)["text"] for each in payloads]


@asynccontextmanager
async def mosquitto(folder: Path) -> AsyncIterator[MosquittoStage]:
    """Open it in a folder."""
    port = free_port()
    path = folder / "mosquitto.conf"
    path.write_text(CONFIGURATION.format(port=port, folder=folder))
    passwords = folder / "passwords"
    passwords.write_text(f"us:{PASSWORD}\n")
    make = await asyncio.create_subprocess_exec(
        *found("mosquitto_passwd"), "-U", str(passwords)
    )
    assert await make.wait() == 0
    argv = (*found("mosquitto"), "-c", str(path))
    async with serving(*argv, port=port), Cable(port) as cable, Ada(port) as ada:
        yield MosquittoStage(cable, ada)


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    with TemporaryDirectory() as folder:
        async with mosquitto(Path(folder)) as stage:
            yield stage
