"""The WebSocket of an agent: its reader and its turn are separate tasks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from agenthost import (
    Agent,
    AgentHostError,
    Done,
    Failed,
    Guard,
    InvalidInput,
    Missed,
    NotFound,
    RequestCase,
    RouteGroup,
    Socket,
    TextDelta,
    Thinking,
    ToolEnd,
    ToolStart,
    Turn,
    TurnEvent,
    user_message,
)

from .agents import summary
from .commands import run_command
from .messages import COST, result_body

routes = RouteGroup("http_api.socket")

UPDATE_SECONDS = 5.0
TURNS_PER_SOCKET = 16


@routes.socket("/api/agents/<agent_id>/ws", scope="agents:message")
async def chat(socket: Socket, agent_id: UUID) -> None:
    """Chat with an agent; several messages wait in order, ``/stop`` does not."""
    agent = socket.call.daemon.agents.get(str(agent_id))
    await socket.accept()
    await Chat(socket, agent).serve()


class Chat:
    """One open connection: a reader, a ticker, and a task for each message."""

    def __init__(self, socket: Socket, agent: Agent) -> None:
        self._socket = socket
        self._daemon = socket.call.daemon
        self._agent_id = agent.id
        self._turns: set[Turn] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Read until the peer leaves; then stop what it had started."""
        await self._send({"type": "connected", "agent_id": self._agent_id})
        ticker = self._spawn(self._tick())
        try:
            while (text := await self._socket.receive()) is not None:
                await self._take(text)
        finally:
            ticker.cancel()
            for turn in self._turns:
                turn.cancel("the client left")
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, text: str) -> None:
        try:
            content = await self._content(text)
            if content is not None:
                await self._message(content)
        except AgentHostError as error:
            await self._fail(error)

    async def _content(self, text: str) -> str | None:
        """Read a frame; None when it was dealt with. Plain text is a message."""
        try:
            frame = json.loads(text)
        except ValueError:
            return text
        if not isinstance(frame, dict) or "type" not in frame:
            return text
        match frame["type"]:
            case "ping":
                await self._send({"type": "pong"})
                return None
            case "message":
                content = frame.get("content")
                if not isinstance(content, str):
                    raise InvalidInput("content", "must be text")
                return content
        raise InvalidInput("type", "must be message or ping")

    async def _message(self, content: str) -> None:
        agent = self._daemon.agents.get(self._agent_id)
        content = content.strip()
        if content.startswith("/"):
            if content.split()[0] == "/compact":
                self._spawn(self._command(agent, content))
            else:
                await self._command(agent, content)
            return
        if len(self._turns) >= TURNS_PER_SOCKET:
            raise InvalidInput("message", "too many messages wait; wait for an answer")
        case = RequestCase("MESSAGE", "/ws", self._socket.call.client, COST)
        self._daemon.guards.check(Guard.REQUEST, case)
        context = self._socket.call.context
        turn = self._daemon.turns.start(context, agent, user_message(content))
        self._turns.add(turn)
        self._spawn(self._follow(turn))

    async def _command(self, agent: Agent, line: str) -> None:
        try:
            text = await run_command(self._socket.call, agent, line)
        except AgentHostError as error:
            await self._fail(error)
            return
        await self._send(
            {
                "type": "response",
                "content": text,
                "input_tokens": 0,
                "output_tokens": 0,
                "iterations": 0,
                "cost_usd": 0.0,
            }
        )

    async def _follow(self, turn: Turn) -> None:
        try:
            async for event in turn.events():
                await self._send(frame_of(event))
        finally:
            self._turns.discard(turn)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(UPDATE_SECONDS)
            rows = [summary(self._daemon, a) for a in self._daemon.agents.list()]
            await self._send({"type": "agents_updated", "agents": rows})

    async def _fail(self, error: AgentHostError) -> None:
        await self._send(
            {"type": "error", "content": error.message, "code": error.code}
        )
        if isinstance(error, NotFound) and error.kind == "agent":
            await self._socket.close()

    async def _send(self, frame: dict[str, Any]) -> None:
        await self._socket.send(json.dumps(frame, ensure_ascii=False))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def frame_of(event: TurnEvent) -> dict[str, Any]:
    """Write a turn's event as a frame."""
    match event:
        case Done(result):
            totals: dict[str, Any] = dict(result_body(result))
            return {"type": "response", "content": totals.pop("response"), **totals}
        case Failed(error):
            return {"type": "error", "content": error.message, "code": error.code}
        case Missed(count):
            return {"type": "missed", "events": count}
        case ToolStart() | ToolEnd():
            return _tool_frame(event)
        case TextDelta(text):
            return {"type": "text_delta", "content": text}
        case Thinking():
            return {"type": "thinking"}


def _tool_frame(event: ToolStart | ToolEnd) -> dict[str, Any]:
    frame = {"tool": event.tool, "id": event.id}
    if isinstance(event, ToolStart):
        return {"type": "tool_start", **frame, "input": dict(event.input)}
    return {
        "type": "tool_end",
        **frame,
        "result": event.output,
        "is_error": event.is_error,
    }
