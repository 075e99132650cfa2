"""Turns of the fake daemon: they belong to their agent, and lines only watch them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from .scripted_agent import Frame, Signals, turn_for

ENDS = {"response", "error"}
STATUS_OF_CODE = {"cancelled": "stopped", "interrupted": "interrupted"}
USAGE = {"input_tokens": 1204, "output_tokens": 86, "cost_usd": 0.00312}
AT = "2026-01-02T03:04:05Z"
Outbox = asyncio.Queue[Frame]


class FakeTurn:
    """One turn: what it said so far, and the lines that hear the rest."""

    def __init__(self, content: str) -> None:
        self.id = str(uuid4())
        self.content = content
        self.status = "running"
        self.error = ""
        self.stored = True
        self.tries = 0
        self.frames: list[Frame] = []
        self.watchers: dict[Outbox, str] = {}

    @property
    def text(self) -> str:
        """Everything said in this turn."""
        deltas = (f for f in self.frames if f["type"] == "text_delta")
        return "".join(frame["content"] for frame in deltas)

    async def run(self, signals: Signals) -> None:
        """Say what the script says, and end."""
        self.frames, self.status, self.error = [], "running", ""
        self.tries += 1
        self.publish({"type": "thinking"})
        async for frame in turn_for(self.content, signals, self.tries):
            self.publish(frame)
        if signals.stop.is_set():
            signals.stop.clear()
            self.publish({"type": "error", "content": "stopped", "code": "cancelled"})
        if self.status == "running":
            self.publish(
                {"type": "response", "content": self.text, "iterations": 2, **USAGE}
            )

    def publish(self, frame: Frame) -> None:
        """Note a frame and tell those who watch."""
        frame = {**frame, "turn_id": self.id}
        if frame["type"] == "text_delta":
            frame["offset"] = len(self.text) + len(frame["content"])
        self._settle(frame)
        self.frames.append(frame)
        watchers = dict(self.watchers)
        if frame["type"] in ENDS:
            self.watchers.clear()
        for outbox, name in watchers.items():
            outbox.put_nowait({"id": name, **frame})

    def _settle(self, frame: Frame) -> None:
        if frame["type"] == "response":
            self.status = "complete"
        elif frame["type"] == "error":
            self.status = STATUS_OF_CODE.get(frame.get("code", ""), "failed")
            self.error = frame["content"]

    def attach(self, outbox: Outbox, name: str, offset: int) -> None:
        """Replay what follows the offset, then let the line hear the rest."""
        if outbox in self.watchers:
            return
        for frame in self.frames:
            if frame["type"] == "text_delta":
                behind = frame["offset"] - offset
                if behind > 0:
                    outbox.put_nowait({**frame, "content": frame["content"][-behind:]})
            elif frame["type"] != "thinking":
                outbox.put_nowait(frame)
        if self.status == "running":
            self.watchers[outbox] = name

    def messages(self) -> list[dict[str, Any]]:
        """What the session shows of it; the words of a running turn are not stored."""
        if not self.stored:
            return []
        common = {"turn_id": self.id, "at": AT}
        asked = {"role": "User", "content": self.content, "status": self.status}
        if self.status == "failed":
            asked["error"] = self.error
        shown: list[dict[str, Any]] = [{**asked, **common}]
        if self.status != "running" and (self.text or self._tools()):
            answer = {"role": "Assistant", "content": self.text, "status": self.status}
            shown.append({**answer, "tools": self._tools(), **common})
        if self.status == "complete":
            shown[-1] |= {"usage": USAGE, "model": "offline/offline-1"}
            shown[-1] |= {"finish": self.frames[-1].get("finish", "stop")}
            shown[-1] |= {"citations": self.frames[-1].get("citations", [])}
        return shown

    def _tools(self) -> list[dict[str, Any]]:
        return [
            {
                "name": frame["tool"],
                "input": {},
                "result": frame["result"],
                "is_error": frame.get("is_error", False),
            }
            for frame in self.frames
            if frame["type"] == "tool_end"
        ]


@dataclass
class FakeAgent:
    """An agent, its one session, and the lines that follow it.

    ``refusal`` answers messages and second tries; no line finds a turn in ``hidden``.
    """

    id: str
    manifest: dict[str, Any]
    refusal: str = ""
    hidden: set[str] = field(default_factory=set)
    turns: list[FakeTurn] = field(default_factory=list)
    followers: set[Outbox] = field(default_factory=set)
    signals: Signals = field(default_factory=Signals)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def summary(self) -> dict[str, Any]:
        """The list item."""
        model = self.manifest.get("model", {})
        return {
            "id": self.id,
            "name": self.manifest["name"],
            "state": self.manifest.get("state", "Running"),
            "created_at": "2026-01-01T00:00:00Z",
            "model_provider": model.get("provider", "offline"),
            "model_name": model.get("model", "offline-1"),
        }

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The stored session."""
        shown = [message for turn in self.turns for message in turn.messages()]
        return [{"id": number, **row} for number, row in enumerate(shown, 1)]

    def start(self, content: str, starter: Outbox | None = None) -> FakeTurn:
        """Begin a turn; the followers but its starter hear of it."""
        turn = FakeTurn(content)
        self.turns.append(turn)
        self.run(turn, starter)
        return turn

    def run(self, turn: FakeTurn, starter: Outbox | None = None) -> None:
        """Run a turn, for the first time or again."""
        for outbox in self.followers - {starter}:
            outbox.put_nowait({"type": "turn_started", "turn_id": turn.id})
        task = asyncio.ensure_future(turn.run(self.signals))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def past(
        self, content: str, said: str, status: str = "complete", error: str = ""
    ) -> FakeTurn:
        """Put a turn that ended before the page was opened into the session."""
        turn = FakeTurn(content)
        turn.publish({"type": "text_delta", "content": said})
        turn.status, turn.error = status, error
        self.turns.append(turn)
        return turn
