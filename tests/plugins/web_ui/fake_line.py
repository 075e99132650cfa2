"""One WebSocket of the fake daemon: it starts turns, and watches those of others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quart import websocket

from .fake_turns import FakeAgent, FakeTurn, Outbox
from .scripted_agent import Frame

if TYPE_CHECKING:
    from .fake_daemon import FakeDaemon

NOTHING = {"input_tokens": 0, "output_tokens": 0, "iterations": 0, "cost_usd": 0}


class Line:
    """A reader and a writer; what the page sent is kept in ``daemon.heard``."""

    def __init__(self, daemon: FakeDaemon, agent: FakeAgent) -> None:
        self._daemon = daemon
        self._agent = agent
        self._outbox: Outbox = asyncio.Queue()

    async def serve(self) -> None:
        """Read until the page leaves; the turns go on."""
        await self._daemon.gate.wait()
        await websocket.accept()
        self._outbox.put_nowait({"type": "connected", "agent_id": self._agent.id})
        listed = [other.summary for other in self._daemon.agents.values()]
        self._outbox.put_nowait({"type": "agents_updated", "agents": listed})
        writer = asyncio.ensure_future(self._write())
        try:
            while True:
                frame = await websocket.receive_json()
                self._daemon.heard.append(frame)
                self._take(frame)
        finally:
            writer.cancel()
            self._agent.followers.discard(self._outbox)
            for turn in self._agent.turns:
                turn.watchers.pop(self._outbox, None)

    async def _write(self) -> None:
        while True:
            await websocket.send_json(await self._outbox.get())

    def _take(self, frame: Frame) -> None:
        if frame["type"] == "ping":
            self._outbox.put_nowait({"type": "pong"})
        elif frame["type"] == "follow":
            self._agent.followers.add(self._outbox)
        elif frame["type"] == "message" and not self._daemon.deaf:
            self._message(frame)
        elif frame["type"] in {"attach", "resume"}:
            self._rejoin(frame)

    def _message(self, frame: Frame) -> None:
        content = frame["content"]
        if content.startswith("/"):
            self._command(content, frame["id"])
        elif self._agent.refusal:
            self._refuse(self._agent.refusal, "conflict", frame)
        else:
            turn = self._agent.start(content, self._outbox)
            turn.watchers[self._outbox] = frame["id"]

    def _command(self, content: str, name: str) -> None:
        if content == "/new":
            self._agent.turns.clear()
        said = "Started a new session." if content == "/new" else f"Done: {content}"
        answer = {"type": "response", "content": said, "id": name}
        self._outbox.put_nowait({**answer, **NOTHING})

    def _rejoin(self, frame: Frame) -> None:
        turn = self._found(frame["turn_id"])
        if turn is None:
            self._refuse("no such turn", "not_found", frame)
        elif frame["type"] == "attach":
            turn.attach(self._outbox, frame["id"], frame["offset"])
        elif self._agent.refusal:
            self._refuse(self._agent.refusal, "conflict", frame)
        else:
            turn.watchers[self._outbox] = frame["id"]
            self._agent.run(turn, self._outbox)

    def _refuse(self, why: str, code: str, frame: Frame) -> None:
        refused = {"type": "error", "content": why, "code": code, "id": frame["id"]}
        self._outbox.put_nowait(refused)

    def _found(self, turn_id: str) -> FakeTurn | None:
        found = (t for t in self._agent.turns if t.id not in self._agent.hidden)
        return next((turn for turn in found if turn.id == turn_id), None)
