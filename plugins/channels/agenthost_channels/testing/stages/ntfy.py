"""A server of ntfy's with a topic that Ada writes to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from agenthost.testing.simulators.ntfy import TOKEN, NtfySimulator

from ...contract import Place, Room
from ...facts import facts
from ...ntfy.adapter import Ntfy, Settings
from ..stage import Stage

HOSTILE = (
    b"\n\n{\n[]\n3\nnull\n\xff\xfe\0\n" + b"[" * 50_000 + b"\n",
    b'{"event": "open"}\n{"event": "message", "time": 1}\n',
    b'{"event": "message", "time": "x", "topic": "ada", "message": "bad time"}\n',
    b'{"id": 3, "event": "message", "time": 1, "topic": "ada", "message": "id"}\n',
    b'{"id": "../x", "event": "message", "time": 1, "topic": "ada", "message": "i"}\n',
    b'{"id": "a", "event": "message", "time": 1, "topic": "eve", "message": "eve"}\n',
    b'{"id": "b", "event": "message", "time": 1, "topic": ["ada"], "message": "l"}\n',
    b'{"id": "c", "event": "message", "time": 1, "topic": "ada", "tags": 7}\n',
    b'{"id": "d", "event": "message_delete", "time": 1, "topic": "ada"}\n',
    b'{"id": "e", "event": "keepalive", "time": 1e400, "topic": "ada"}\n',
)


class NtfyStage(Stage):
    """A server with a topic that Ada writes to."""

    channel = Ntfy
    facts = facts("ntfy")
    keeps = True
    groups = False
    judge = "a simulator written from ntfy's pages and its server's source"
    person = "ada"

    def __init__(self, ntfy: NtfySimulator) -> None:
        self.ntfy = ntfy

    def settings(self) -> Settings:
        return Settings(server=self.ntfy.url, topics=["bob", "ada"])

    def secrets(self) -> Mapping[str, str]:
        return {"token": TOKEN}

    def wrong_secrets(self) -> Mapping[str, str]:
        return {"token": "tk_canary"}  # nosec B105 # opens nothing

    def place(self, room: Room) -> Place:
        assert room is Room.DIRECT
        return Place("default", self.person)

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        self.last = await self.ntfy.put("ada", message=text)

    async def say_again(self) -> None:
        self.ntfy.kept.remove(self.last)
        await self.ntfy.put(**self.last)

    async def change(self, text: str) -> None:
        await self.ntfy.put("ada", message=text, sequence_id=self.last["id"])

    async def attach(self, name: str, media_type: str, data: bytes) -> None:
        self.ntfy.files["a1B2.bin"] = data
        address = f"{self.ntfy.url}/file/a1B2.bin"
        file = {"name": name, "type": media_type, "size": len(data), "url": address}
        told = f"You received a file: {name}"
        await self.ntfy.put("ada", message=told, attachment=file)

    def _ours(self) -> list[dict[str, object]]:
        return [each for each in self.ntfy.kept if "agenthost" in each.get("tags", ())]

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        def texts() -> list[str]:
            said = [str(each["message"]) for each in self._ours()]
            return [line for each in said for line in each.split("\n")]

        await self.ntfy.until(lambda: len(texts()) >= count)
        return texts()

    async def changed(self, text: str) -> None:
        first, second = self._ours()
        assert second["message"] == text
        assert second["sequence_id"] == first["sequence_id"]

    async def files_seen(self, count: int) -> list[tuple[str, bytes]]:
        found = []
        for each in self._ours():
            file = each.get("attachment")
            assert isinstance(file, dict)
            assert each["message"] == "see there"
            data = self.ntfy.files[file["url"].rpartition("/")[2]]
            found.append((file["name"], data))
        return found

    async def cut(self) -> None:
        self.ntfy.cut()

    def nowhere(self) -> Place:
        return Place("default", "closed")

    def lose_answer(self) -> None:
        self.ntfy.losing = True

    async def hostile(self) -> None:
        for line in HOSTILE:
            await self.ntfy.raw(line)


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """Open it."""
    async with NtfySimulator() as ntfy:
        yield NtfyStage(ntfy)
