"""The adapter keeps the contract with a real homeserver."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agenthost_channels.contract import Place, Room
from agenthost_channels.facts import facts
from agenthost_channels.matrix.adapter import Matrix, Settings
from agenthost_channels.testing import ChannelContract, Stage, played
from agenthost_channels.testing.servers import Cable

from .synapse import User, homeserver, registered

pytestmark = pytest.mark.conformance

EVIL: tuple[Any, ...] = (
    {"msgtype": "m.odd", "body": "x", "m.relates_to": [[[[]]]]},
    {"msgtype": "m.file", "body": "x", "url": "file:///etc/passwd"},
    {"msgtype": "m.image", "body": "x", "url": "mxc://../../../x", "info": []},
    {"msgtype": "m.text", "body": "x", "m.relates_to": {"rel_type": "m.replace"}},
    {"msgtype": "m.sticker", "body": "x" * 20_000, "m.mentions": {}},
)


class SynapseStage(Stage):
    """synapse, with Ada and Bob."""

    channel = Matrix
    facts = facts("matrix")
    keeps = True

    def __init__(self, cable: Cable, us: User, ada: User) -> None:
        self._cable = cable
        self._us = us
        self._ada = ada
        self.person = ada.id
        self.rooms: dict[Room, str] = {}
        self._last = ""

    def settings(self) -> Settings:
        return Settings(
            homeserver=f"http://127.0.0.1:{self._cable.port}",
            invites_from=["@ada*:test.local"],
        )

    def secrets(self) -> Mapping[str, str]:
        return {"token": self._us.token}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"token": "syt_canary_that_is_wrong"}

    def place(self, room: Room) -> Place:
        return Place("default", self.rooms[room], room=room)

    def nowhere(self) -> Place:
        return Place("default", "!nowhere:test.local")

    async def cut(self) -> None:
        self._cable.pull()

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        content = {"msgtype": "m.text", "body": text}
        self._last = await self._ada.send(self.rooms[room], content)

    async def say_as_bot(self, text: str) -> None:
        await self._put({"msgtype": "m.notice", "body": text})

    def mention(self, text: str) -> str:
        return f"{self._us.id}: {text}"

    async def _put(self, content: Any, room: Room = Room.DIRECT) -> None:
        await self._ada.send(self.rooms[room], content)

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
        root = await self._ada.send(self.rooms[Room.DIRECT], {}, "x.root")
        relation = {"rel_type": "m.thread", "event_id": root}
        await self._put({"msgtype": "m.text", "body": text, "m.relates_to": relation})

    async def answer(self, text: str) -> None:
        last = (await self._sent(Room.GROUP, 1))[-1]["event_id"]
        relation = {"m.in_reply_to": {"event_id": last}}
        body = {"msgtype": "m.text", "body": text, "m.relates_to": relation}
        await self._put(body, Room.GROUP)

    async def attach(self, name: str, media_type: str, data: bytes) -> None:
        made = await self._ada.call(
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

        found: list[Any] = await self._ada.until(self.rooms[room], enough, self._us.id)
        return found

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        return [each["content"]["body"] for each in await self._sent(room, count)]

    async def files_seen(self, count: int) -> list[tuple[str, bytes]]:
        found = []
        for event in await self._sent(Room.DIRECT, count + 1):
            if url := event["content"].get("url", ""):
                path = f"/_matrix/client/v1/media/download/{url.removeprefix('mxc://')}"
                data = await self._ada.call("GET", path)
                found.append((event["content"]["filename"], data))
        return found

    async def changed(self, text: str) -> None:
        def there(events: list[Any]) -> bool:
            contents = [each["content"].get("m.new_content", {}) for each in events]
            return any(each.get("body") == text for each in contents)

        await self._ada.until(self.rooms[Room.DIRECT], there, self._us.id)

    async def reacted(self, emoji: str) -> None:
        def there(events: list[Any]) -> bool:
            kinds = [each for each in events if each["type"] == "m.reaction"]
            return any(
                each["content"]["m.relates_to"]["key"] == emoji for each in kinds
            )

        await self._ada.until(self.rooms[Room.DIRECT], there, self._us.id)

    async def threads_seen(self) -> str:
        event = (await self._sent(Room.DIRECT, 1))[-1]
        return str(event["content"]["m.relates_to"]["event_id"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with homeserver(tmp_path_factory.mktemp("synapse")) as port:
        yield port


@pytest.fixture
async def stage(
    server: int, request: pytest.FixtureRequest
) -> AsyncIterator[SynapseStage]:
    async with staged(server, abs(hash(request.node.name))) as stage:
        yield stage


@asynccontextmanager
async def staged(server: int, number: int) -> AsyncIterator[SynapseStage]:
    people = [
        User(server, *registered(server, f"{name}{number}"))
        for name in ("bot", "ada", "bob")
    ]
    us, ada, bob = people
    async with Cable(server) as cable:
        stage = SynapseStage(cable, us, ada)
        stage.rooms[Room.DIRECT] = await ada.room(us)
        stage.rooms[Room.GROUP] = await ada.room(us, bob)
        yield stage
    for each in people:
        await each.aclose()


class TestMatrixWithSynapse(ChannelContract):
    """All of it."""


async def test_an_invitation_of_somebody_allowed_is_taken(
    stage: SynapseStage, server: int
) -> None:
    us, ada = stage._us, stage._ada
    eve = User(server, *registered(server, "eve-who-invites"))
    async with played(stage) as play:
        for host in (eve, ada):
            body = {"invite": [us.id], "preset": "trusted_private_chat"}
            made = await host.call("POST", "/_matrix/client/v3/createRoom", json=body)
            stage.rooms[Room.DIRECT] = made["room_id"]
            await host.send(made["room_id"], {"msgtype": "m.text", "body": "too early"})

        def joined(events: list[Any]) -> bool:
            return any(each["content"].get("membership") == "join" for each in events)

        await ada.until(stage.rooms[Room.DIRECT], joined, us.id)
        await stage.say("welcome")
        (message,) = await play.line.hear(1)
    rooms = await us.call("GET", "/_matrix/client/v3/joined_rooms")
    await eve.aclose()
    assert message.text == "welcome"
    assert len(rooms["joined_rooms"]) == 3


async def test_an_edit_by_somebody_else_changes_nothing(stage: SynapseStage) -> None:
    us, ada = stage._us, stage._ada
    room = stage.rooms[Room.GROUP]
    async with played(stage) as play:
        ours = await us.send(room, {"msgtype": "m.text", "body": "ours"})
        relation = {"rel_type": "m.replace", "event_id": ours}
        new = {"msgtype": "m.text", "body": "forged"}
        await ada.send(room, {**new, "m.new_content": new, "m.relates_to": relation})
        await stage.say("honest", Room.GROUP)
        heard = await play.line.hear(1)
    assert [each.text for each in heard] == ["honest"]
