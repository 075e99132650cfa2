"""A relay that does as a test says."""

import asyncio
import json
from typing import Any, Self

from websockets.asyncio.server import ServerConnection, serve


class ScriptedRelay:
    """Keeps events, gives the newest first, and answers as it is told."""

    def __init__(self, *kept: Any) -> None:
        self.kept = list(kept)
        self.page = 1000
        self.refusing = ""
        self.silent = False
        self.hanging_up = False
        self.challenge = ""
        self.shut_out = False
        self.asked: list[Any] = []
        self.taken: list[Any] = []
        self.sockets: list[ServerConnection] = []
        self._known: set[ServerConnection] = set()
        self.changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await serve(self._serve, "127.0.0.1", 0)
        port = next(iter(self._server.sockets)).getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def say(self, *words: Any) -> None:
        for socket in self.sockets:
            await socket.send(json.dumps(words))

    async def raw(self, text: str) -> None:
        for socket in self.sockets:
            await socket.send(text)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.taken) < count:
                self.changed.clear()
                await self.changed.wait()

    async def _serve(self, socket: ServerConnection) -> None:
        self.sockets.append(socket)
        if self.challenge:
            await socket.send(json.dumps(["AUTH", self.challenge]))
        async for text in socket:
            kind, *rest = json.loads(text)
            await getattr(self, f"_{kind.lower()}")(socket, *rest)
            self.changed.set()

    async def _req(self, socket: ServerConnection, name: str, wanted: Any) -> None:
        self.asked.append((name, wanted))
        if self.challenge and socket not in self._known:
            reason = "auth-required: tell us who you are"
            await socket.send(json.dumps(["CLOSED", name, reason]))
            return
        until = wanted.get("until", 1 << 40)
        kept = [each for each in self.kept if each["created_at"] <= until]
        newest = sorted(kept, key=lambda each: -each["created_at"])
        for event in newest[: min(self.page, wanted["limit"])]:
            await socket.send(json.dumps(["EVENT", name, event]))
        await socket.send(json.dumps(["EOSE", name]))

    async def _event(self, socket: ServerConnection, event: Any) -> None:
        if event["kind"] == 10050:
            return
        if self.hanging_up:
            await socket.close()
        elif self.challenge and socket not in self._known:
            answer = ["OK", event["id"], False, "auth-required: for letters"]
            await socket.send(json.dumps(answer))
        elif self.refusing:
            answer = ["OK", event["id"], False, self.refusing]
            await socket.send(json.dumps(answer))
        elif not self.silent:
            self.taken.append(event)
            await socket.send(json.dumps(["OK", event["id"], True, ""]))

    async def _auth(self, socket: ServerConnection, event: Any) -> None:
        self.asked.append(("AUTH", event))
        if not self.shut_out:
            self._known.add(socket)
        answer = ["OK", event["id"], not self.shut_out, "restricted: not you"]
        await socket.send(json.dumps(answer))

    async def _close(self, socket: ServerConnection, name: str) -> None:
        self.asked.append(("CLOSE", name))
