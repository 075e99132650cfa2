"""Synapse with Ada and Bob, alone with us and in a group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...contract import Place, Room
from ...facts import facts
from ...matrix.adapter import Matrix, Settings
from ..servers import Cable, found, free_port, serving
from ..stage import Stage
from .matrix_person import User, registered

CONFIGURATION = """\
server_name: test.local
report_stats: false
pid_file: {folder}/pid
signing_key_path: {folder}/key
media_store_path: {folder}/media
log_config: {folder}/log.yaml
database: {{name: sqlite3, args: {{database: "{folder}/db"}}}}
registration_shared_secret: shared
macaroon_secret_key: macaroon
form_secret: form
trusted_key_servers: []
bcrypt_rounds: 4
max_upload_size: 20M
listeners:
  - {{port: {port}, type: http, bind_addresses: ["127.0.0.1"],
      resources: [{{names: [client, media]}}]}}
rc_message: {{per_second: 1000, burst_count: 1000}}
rc_joins: {{local: {{per_second: 1000, burst_count: 1000}}}}
rc_invites: {{per_room: {{per_second: 1000, burst_count: 1000}},
  per_user: {{per_second: 1000, burst_count: 1000}},
  per_issuer: {{per_second: 1000, burst_count: 1000}}}}
rc_registration: {{per_second: 1000, burst_count: 1000}}
rc_login: {{address: {{per_second: 1000, burst_count: 1000}}}}
"""
LOG = "version: 1\nroot: {level: ERROR}\n"
EVIL: tuple[Any, ...] = (
    {"msgtype": "m.odd", "body": "x", "m.relates_to": [[[[]]]]},
    {"msgtype": "m.file", "body": "x", "url": "file:///etc/passwd"},
    {"msgtype": "m.image", "body": "x", "url": "mxc://../../../x", "info": []},
    {"msgtype": "m.text", "body": "x", "m.relates_to": {"rel_type": "m.replace"}},
    {"msgtype": "m.sticker", "body": "x" * 20_000, "m.mentions": {}},
)


class SynapseStage(Stage):
    """Synapse, with Ada and Bob."""

    channel = Matrix
    facts = facts("matrix")
    keeps = True
    judge = "Synapse"

    def __init__(self, cable: Cable, us: User, ada: User) -> None:
        self._cable = cable
        self.us = us
        self.ada = ada
        self.person = ada.id
        self.rooms: dict[Room, str] = {}
        self._last = ""

    def settings(self) -> Settings:
        return Settings(
            homeserver=f"http://127.0.0.1:{self._cable.port}",
            invites_from=["@ada*:test.local"],
        )

    def secrets(self) -> Mapping[str, str]:
        return {"token": self.us.token}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"token": "syt_canary_that_is_wrong"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        return Place("default", self.rooms[room], room=room)

    def nowhere(self) -> Place:
        return Place("default", "!nowhere:test.local")

    async def cut(self) -> None:
        self._cable.pull()

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        content = {"msgtype": "m.text", "body": text}
        self._last = await self.ada.send(self.rooms[room], content)

    async def say_as_bot(self, text: str) -> None:
        await self._put({"msgtype": "m.notice", "body": text})

    def mention(self, text: str) -> str:
        return f"{self.us.id}: {text}"

    async def _put(self, content: Any, room: Room = Room.DIRECT) -> None:
        await self.ada.send(self.rooms[room], content)

    async def hostile(self) -> None:
        for content in EVIL:
            await self._put(content)

    async def change(self, text: str) -> None:
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": self._last}
        await self._put(
            {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relation}
        )

    async def say_in_thread(self, text: str) -> None:
        root = await self.ada.send(self.rooms[Room.DIRECT], {}, "x.root")
        relation = {"rel_type": "m.thread", "event_id": root}
        await self._put({"msgtype": "m.text", "body": text, "m.relates_to": relation})

    async def answer(self, text: str) -> None:
        last = (await self._sent(Room.GROUP, 1))[-1]["event_id"]
        relation = {"m.in_reply_to": {"event_id": last}}
        body = {"msgtype": "m.text", "body": text, "m.relates_to": relation}
        await self._put(body, Room.GROUP)

    async def attach(self, name: str, media_type: str, data: bytes) -> None:
        made = await self.ada.call(
            "POST",
            "/_matrix/media/v3/upload",
            content=data,
            headers={"Content-Type": media_type},
        )
        info = {"mimetype": media_type, "size": len(data)}
        url = made["content_uri"]
        await self._put({"msgtype": "m.file", "body": name, "url": url, "info": info})

    async def _sent(self, room: Room, count: int) -> list[Any]:
        def enough(events: list[Any]) -> list[Any]:
            texts = [each for each in events if each["type"] == "m.room.message"]
            return texts if len(texts) >= count else []

        found: list[Any] = await self.ada.until(self.rooms[room], enough, self.us.id)
        return found

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        return [each["content"]["body"] for each in await self._sent(room, count)]

    async def files_seen(self, count: int) -> list[tuple[str, bytes]]:
        found = []
        for event in await self._sent(Room.DIRECT, count + 1):
            if url := event["content"].get("url", ""):
                path = f"/_matrix/client/v1/media/download/{url.removeprefix('mxc://')}"
                data = await self.ada.call("GET", path)
                found.append((event["content"]["filename"], data))
        return found

    async def changed(self, text: str) -> None:
        def there(events: list[Any]) -> bool:
            contents = [each["content"].get("m.new_content", {}) for each in events]
            return any(each.get("body") == text for each in contents)

        await self.ada.until(self.rooms[Room.DIRECT], there, self.us.id)

    async def reacted(self, emoji: str) -> None:
        def there(events: list[Any]) -> bool:
            kinds = [each for each in events if each["type"] == "m.reaction"]
            return any(
                each["content"]["m.relates_to"]["key"] == emoji for each in kinds
            )

        await self.ada.until(self.rooms[Room.DIRECT], there, self.us.id)

    async def threads_seen(self) -> str:
        event = (await self._sent(Room.DIRECT, 1))[-1]
        return str(event["content"]["m.relates_to"]["event_id"])


@asynccontextmanager
async def homeserver(folder: Path) -> AsyncIterator[int]:
    """Run Synapse in a folder."""
    port = free_port()
    path = folder / "homeserver.yaml"
    path.write_text(CONFIGURATION.format(folder=folder, port=port))
    (folder / "log.yaml").write_text(LOG)
    argv = (*found("synapse_homeserver"), "-c", str(path))
    make = await asyncio.create_subprocess_exec(
        *argv, "--generate-keys", stdout=asyncio.subprocess.DEVNULL
    )
    assert await make.wait() == 0
    async with serving(*argv, port=port):
        yield port


@asynccontextmanager
async def staged(server: int, number: int) -> AsyncIterator[SynapseStage]:
    """Open it at a homeserver, with people and rooms that have a number."""
    people = [
        User(server, *registered(server, f"{name}{number}"))
        for name in ("bot", "ada", "bob")
    ]
    us, ada, bob = people
    try:
        async with Cable(server) as cable:
            stage = SynapseStage(cable, us, ada)
            stage.rooms[Room.DIRECT] = await ada.room(us)
            stage.rooms[Room.GROUP] = await ada.room(us, bob)
            yield stage
    finally:
        for each in people:
            await each.aclose()


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    with TemporaryDirectory() as folder:
        async with homeserver(Path(folder)) as server, staged(server, 1) as stage:
            yield stage
