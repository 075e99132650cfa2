"""The list of agents that every open WebSocket is told again and again."""

from __future__ import annotations

import json
from typing import Any

from agenthost import Host

from .agents import summary

UPDATE_SECONDS = 5.0
GOLDEN = 0.618


class Roster:
    """One frame for all sockets: made once a period, encoded once a change."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._text = ""
        self._made = float("-inf")
        self._sockets = 0

    def phase(self) -> float:
        """Seconds until a new socket's first frame; those of all sockets are spread."""
        self._sockets += 1
        return UPDATE_SECONDS * (self._sockets * GOLDEN % 1)

    def frame(self, host: Host) -> str:
        """The frame ``agents_updated`` as it stands, at most a period old."""
        now = host.clock.monotonic()
        if now - self._made >= UPDATE_SECONDS:
            self._made = now
            rows = [dict(summary(host, agent)) for agent in host.agents.list()]
            if rows != self._rows or not self._text:
                self._rows = rows
                frame = {"type": "agents_updated", "agents": rows}
                self._text = json.dumps(frame, ensure_ascii=False)
        return self._text
