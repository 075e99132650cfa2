"""A question on its way: asked over three faces, again with its key, or left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

LOST = "connection lost"


class Way(StrEnum):
    """The face that a message is sent through."""

    BLOCKING = "blocking"
    SSE = "sse"
    SOCKET = "socket"


@dataclass
class Outcome:
    """What a client came to know: a status, the error's code, the words it got."""

    status: int = 0
    code: str = LOST
    text: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether the answer came whole."""
        return self.status == 200 and not self.code


class Attempt:
    """One try to have a question answered, by one client."""

    def __init__(self, way: Way, key: str | None = None) -> None:
        self.way = way
        self.key = key
        self.sent = asyncio.Event()
        self.started = asyncio.Event()
        self.outcome = Outcome()
        self.left = False
        self.task: asyncio.Task[None] | None = None

    @property
    def pending(self) -> bool:
        """Whether the client still waits."""
        return self.task is not None and not self.task.done()

    def go(self, http: httpx.AsyncClient, agent: str, text: str) -> None:
        """Send it; the task ends with an outcome, whatever happens."""
        send = {
            Way.BLOCKING: self._blocking,
            Way.SSE: self._stream,
            Way.SOCKET: self._socket,
        }[self.way]
        self.task = asyncio.create_task(self._outcome(send(http, agent, text)))

    async def leave(self) -> None:
        """Go away without waiting for the end."""
        assert self.task is not None
        self.left = True
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _outcome(self, work: Any) -> None:
        try:
            self.outcome = await work
        except (httpx.TransportError, ConnectionClosed, OSError, EOFError):
            self.outcome = Outcome()
        except InvalidHandshake as refused:
            answer = getattr(refused, "response", None)
            status = answer.status_code if answer is not None else 0
            body = answer.body if answer is not None else b""
            self.outcome = Outcome(status, _code(body or b""))
        finally:
            self.sent.set()

    def _request(self, text: str) -> dict[str, Any]:
        headers = {"Idempotency-Key": self.key} if self.key else {}
        extensions = {"trace": self._trace}
        return {"json": {"message": text}, "headers": headers, "extensions": extensions}

    async def _trace(self, event: str, info: object) -> None:
        if event == "http11.send_request_body.complete":
            self.sent.set()

    async def _blocking(
        self, http: httpx.AsyncClient, agent: str, text: str
    ) -> Outcome:
        path = f"/api/agents/{agent}/message"
        answer = await http.post(path, **self._request(text))
        facts = answer.json()
        if answer.status_code != 200:
            return Outcome(answer.status_code, facts.get("code", "no code"), "", facts)
        return Outcome(200, "", facts["response"], facts)

    async def _stream(self, http: httpx.AsyncClient, agent: str, text: str) -> Outcome:
        path = f"/api/agents/{agent}/message/stream"
        async with http.stream("POST", path, **self._request(text)) as answer:
            if answer.status_code != 200:
                facts = json.loads(await answer.aread())
                code = facts.get("code", "no code")
                return Outcome(answer.status_code, code, "", facts)
            said, code = "", ""
            async for name, data in _events(answer):
                match name:
                    case "chunk":
                        said += data["content"]
                        self.started.set()
                    case "error":
                        code = data.get("code", "no code")
                    case "done":
                        return Outcome(200, code, said, data)
        return Outcome()

    async def _socket(self, http: httpx.AsyncClient, agent: str, text: str) -> Outcome:
        url = str(http.base_url).replace("http", "ws", 1)
        said = ""
        async with connect(f"{url}/api/agents/{agent}/ws", proxy=None) as socket:
            await socket.recv()
            await socket.send(json.dumps({"type": "message", "content": text}))
            self.sent.set()
            async for raw in socket:
                frame = json.loads(raw)
                match frame["type"]:
                    case "text_delta":
                        said += frame["content"]
                        self.started.set()
                    case "response":
                        return Outcome(200, "", frame["content"], frame)
                    case "error":
                        return Outcome(200, frame.get("code", "no code"), said, frame)
        return Outcome()


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    async for line in answer.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def _code(body: bytes) -> str:
    try:
        return str(json.loads(body).get("code", "no code"))
    except ValueError:
        return "no code"
