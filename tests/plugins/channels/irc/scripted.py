"""A server that can what ngircd cannot: SASL, echoes, times, ids and hanging up."""

import asyncio
import base64
from typing import Self

HOST = "someone@host.example"


class ScriptedServer:
    """One client at a time; it does as the test's fields say."""

    def __init__(self, *abilities: str, password: str = "") -> None:
        self.abilities = abilities
        self.password = password
        self.refusing = ""
        self.hanging_up = False
        self.dropping = False
        self.got: list[str] = []
        self.port = 0
        self._writer: asyncio.StreamWriter | None = None
        self._ids = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        if self._writer is not None:
            self._writer.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def write(self, *lines: str | bytes) -> None:
        assert self._writer is not None
        for line in lines:
            raw = line if isinstance(line, bytes) else line.encode()
            self._writer.write(raw + b"\r\n")

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writer = writer
        async for raw in reader:
            line = raw.decode().rstrip("\r\n")
            self.got.append(line)
            command, _, rest = line.partition(" ")
            answer = getattr(self, f"_{command.lower()}", None)
            if answer is not None:
                answer(rest)

    def _cap(self, rest: str) -> None:
        if rest.startswith("LS"):
            first, *more = self.abilities or ("multi-prefix",)
            self.write(f":s CAP * LS * :{first}=x", f":s CAP * LS :{' '.join(more)}")
        elif rest.startswith("REQ"):
            self.write(f":s CAP * ACK {rest.partition(' ')[2]}")
        else:
            self.write(":s 001 bot :Welcome")

    def _authenticate(self, rest: str) -> None:
        if rest == "PLAIN":
            self.write("AUTHENTICATE +")
            return
        _, _, password = base64.b64decode(rest).decode().split("\0")
        right = password == self.password
        self.write(":s 903 bot :good" if right else ":s 904 bot :bad")

    def _join(self, rest: str) -> None:
        self.write(f":bot!{HOST} JOIN {rest}")

    def _ping(self, rest: str) -> None:
        self.write(f":s PONG s {rest}")

    def _privmsg(self, rest: str) -> None:
        assert self._writer is not None
        if self.hanging_up:
            self._writer.close()
        elif self.refusing:
            self.write(f":s {self.refusing} bot x :Cannot send")
        elif "echo-message" in self.abilities and not self.dropping:
            self._ids += 1
            self.write(f"@msgid=id-{self._ids} :bot!{HOST} PRIVMSG {rest}")
