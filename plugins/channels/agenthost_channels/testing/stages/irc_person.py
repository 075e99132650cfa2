"""A person at an IRC client of a few lines."""

import asyncio
from typing import Self


class Person:
    """Says things and remembers what came."""

    def __init__(self, port: int, nick: str, *channels: str) -> None:
        self._port = port
        self.nick = nick
        self._channels = channels
        self.mask = ""
        self.got: list[tuple[str, str, str]] = []
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        streams = await asyncio.open_connection("127.0.0.1", self._port)
        self._reader, self._writer = streams
        self.write(f"NICK {self.nick}", f"USER {self.nick} 0 * :a person")
        for channel in self._channels:
            self.write(f"JOIN {channel}")
        self._task = asyncio.create_task(self._read())
        async with asyncio.timeout(30):
            while not self.mask:
                self._changed.clear()
                await self._changed.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        self._writer.close()
        await asyncio.wait([self._task])

    def write(self, *lines: str) -> None:
        self._writer.write("".join(f"{line}\r\n" for line in lines).encode())

    async def say(self, target: str, text: str) -> None:
        self.write(f"PRIVMSG {target} :{text}")
        await self._writer.drain()

    async def seen(self, count: int, target: str) -> list[str]:
        async with asyncio.timeout(20):
            while len(texts := self._texts(target)) < count:
                self._changed.clear()
                await self._changed.wait()
        return texts

    def _texts(self, target: str) -> list[str]:
        return [text for _, where, text in self.got if where.lower() == target]

    async def _read(self) -> None:
        async for raw in self._reader:
            line = raw.decode().rstrip("\r\n")
            source, _, rest = line.removeprefix(":").partition(" ")
            command, _, rest = rest.partition(" ")
            if line.startswith("PING"):
                self.write(line.replace("PING", "PONG", 1))
            elif command == "JOIN" and source.startswith(f"{self.nick}!"):
                self.mask = source
            elif command == "PRIVMSG":
                target, _, text = rest.partition(" :")
                self.got.append((source.partition("!")[0], target, text))
            self._changed.set()
