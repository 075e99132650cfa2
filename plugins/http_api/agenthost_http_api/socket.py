"""The WebSocket of an agent: its reader and its turns are separate tasks.

A turn belongs to its session: a socket that closes leaves it running, and any socket
of the agent may attach to it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from agenthost import (
    Agent,
    AgentHostError,
    Guard,
    InvalidInput,
    NotFound,
    Reports,
    RequestCase,
    RouteGroup,
    Socket,
    ToolContext,
    Turn,
    TurnOptions,
    Watcher,
)
from agenthost_toml.problems import problems
from pydantic import ValidationError

from .attachments import asked_with, files_of
from .commands import run_command
from .frames import turn_frame
from .messages import COST, named_session, tell_thoughts
from .roster import UPDATE_SECONDS, Roster
from .shapes import Ask, Attached

TURNS_PER_SOCKET = 16
ID_LENGTH = 64
Frame = dict[str, Any]


def socket_routes() -> RouteGroup:
    """Offer the WebSocket; its sockets share one list of agents."""
    routes = RouteGroup("socket")
    roster = Roster()

    @routes.socket("/api/agents/<agent_id>/ws", scope="agents:message")
    async def chat(socket: Socket, agent_id: UUID) -> None:
        """Chat with an agent; several messages wait in order, ``/stop`` does not."""
        agent = socket.call.host.agents.get(str(agent_id))
        await socket.accept()
        await Chat(socket, agent, roster).serve()

    return routes


class Chat:
    """One open connection: a reader, a ticker, and a task for each turn it follows."""

    def __init__(self, socket: Socket, agent: Agent, roster: Roster) -> None:
        self._socket = socket
        self._roster = roster
        self._host = socket.call.host
        self._agent_id = agent.id
        self._told_of_others = False
        self._following: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Read until the peer leaves; what it had started goes on."""
        await self._send({"type": "connected", "agent_id": self._agent_id})
        self._spawn(self._tick())
        unlisten = self._host.turns.listen(self._began)
        try:
            while (text := await self._socket.receive()) is not None:
                await self._take(text)
        finally:
            unlisten()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, text: str) -> None:
        frame = _read(text)
        message_id = frame.get("id", "")
        if not isinstance(message_id, str) or len(message_id) > ID_LENGTH:
            message_id = ""
        try:
            await self._handle(frame, message_id)
        except AgentHostError as error:
            await self._fail(error, message_id)

    async def _handle(self, frame: Frame, message_id: str) -> None:
        if not isinstance(frame.get("thinking"), bool | None):
            raise InvalidInput("thinking", "must be true or false")
        match frame["type"]:
            case "ping":
                await self._send({"type": "pong"})
            case "message":
                await self._message(frame, message_id)
            case "attach":
                await self._attach(frame, message_id)
            case "resume":
                agent, turn_id = self._agent(), _turn_id(frame)
                self._admit()
                turns = self._host.turns
                watcher = await turns.resume(self._socket.call.context, agent, turn_id)
                self._follow(watcher, frame, message_id)
            case "follow":
                self._told_of_others = True
            case _:
                raise InvalidInput(
                    "type", "must be message, ping, attach, resume or follow"
                )

    async def _message(self, frame: Frame, message_id: str) -> None:
        agent = self._agent()
        content = _content(frame).strip()
        if content.startswith("/"):
            command = self._command(agent, content, message_id)
            # A summary may wait long for the session; all else is done before the
            # next frame is read, so that a message behind /new is in the new session.
            if content.split()[0] == "/compact":
                self._spawn(command)
            else:
                await command
            return
        self._admit()
        session_id = await named_session(self._host, agent.id, _session_id(frame))
        asked = _asked(frame)
        options = TurnOptions(
            session_id=session_id,
            max_cost_micro_usd=asked.max_cost_micro_usd,
            settings=asked.settings,
        )
        call = self._socket.call
        message, context = await asked_with(call, agent, content, _files(frame))
        watcher = self._host.turns.watch(context, agent, message, options)
        self._follow(watcher, frame, message_id)

    async def _attach(self, frame: Frame, message_id: str) -> None:
        offset = frame.get("offset", 0)
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise InvalidInput("offset", "must be a whole number from 0 on")
        turn_id = _turn_id(frame)
        if turn_id in self._following:
            return
        watcher = await self._host.turns.attach(self._agent(), turn_id, offset)
        self._follow(watcher, frame, message_id)

    def _agent(self) -> Agent:
        return self._host.agents.get(self._agent_id)

    def _admit(self) -> None:
        """Pass the rules that a request of its own would meet.

        Raises:
            InvalidInput: Too many messages of this socket wait already.
            RateLimited: The allowance of the key, or of the address, is used up.
        """
        if len(self._following) >= TURNS_PER_SOCKET:
            raise InvalidInput("message", "too many messages wait; wait for an answer")
        call = self._socket.call
        if call.principal.allowance is None:
            case = RequestCase("MESSAGE", "/ws", call.client, COST)
            self._host.guards.check(Guard.REQUEST, case)
        self._host.access.charge(call.principal, COST)

    def _follow(self, watcher: Watcher, frame: Frame, message_id: str) -> None:
        tell_thoughts(watcher, frame.get("thinking"))
        self._following.add(watcher.turn.id)
        self._spawn(self._pass_on(watcher, message_id))

    async def _pass_on(self, watcher: Watcher, message_id: str) -> None:
        turn_id = watcher.turn.id
        try:
            async for event in watcher.events():
                await self._send(turn_frame(event, turn_id, message_id))
        finally:
            watcher.leave()
            self._following.discard(turn_id)

    def _began(self, turn: Turn) -> None:
        """Tell of a turn of the agent's session that somebody else started."""
        if not self._told_of_others or turn.id in self._following:
            return
        agent = turn.agent
        if agent.id == self._agent_id and agent.session_id == self._agent().session_id:
            content = turn.message.text
            told = {"type": "turn_started", "turn_id": turn.id, "content": content}
            files = files_of(turn.message)
            self._spawn(self._send({**told, "files": files} if files else told))

    async def _command(self, agent: Agent, line: str, message_id: str) -> None:
        try:
            call = ToolContext.of(self._socket.call.context, self._host, Reports())
            text = await run_command(call, agent, line)
        except AgentHostError as error:
            await self._fail(error, message_id)
            return
        answer = {
            "type": "response",
            "content": text,
            "input_tokens": 0,
            "output_tokens": 0,
            "iterations": 0,
            "cost_usd": 0.0,
        }
        await self._send({**answer, "id": message_id} if message_id else answer)

    async def _tick(self) -> None:
        await asyncio.sleep(self._roster.phase())
        while True:
            await self._socket.send(self._roster.frame(self._host))
            try:
                self._agent()
            except NotFound as error:
                await self._fail(error, "")
                return
            await asyncio.sleep(UPDATE_SECONDS)

    async def _fail(self, error: AgentHostError, message_id: str) -> None:
        frame = {"type": "error", "content": error.message, "code": error.code}
        await self._send({**frame, "id": message_id} if message_id else frame)
        if isinstance(error, NotFound) and error.kind == "agent":
            await self._socket.close()

    async def _send(self, frame: Frame) -> None:
        await self._socket.send(json.dumps(frame, ensure_ascii=False))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _read(text: str) -> Frame:
    """Read a frame; what is none is the text of a message."""
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        frame = None
    if isinstance(frame, dict) and "type" in frame:
        return frame
    return {"type": "message", "content": text}


def _content(frame: Frame) -> str:
    content = frame.get("content")
    if not isinstance(content, str):
        raise InvalidInput("content", "must be text")
    return content


def _turn_id(frame: Frame) -> str:
    turn_id = frame.get("turn_id")
    if not isinstance(turn_id, str):
        raise InvalidInput("turn_id", "must be the id of a turn")
    return turn_id


def _asked(frame: Frame) -> Ask:
    told = {name: frame[name] for name in Ask.model_fields if name in frame}
    try:
        return Ask.model_validate(told)
    except ValidationError as error:
        first = problems(error, told)[0]
        raise InvalidInput(first.key, first.text) from None


def _files(frame: Frame) -> list[UUID] | None:
    files = frame.get("files")
    if files is None:
        return None
    try:
        return Attached(files=files).files
    except ValidationError:
        raise InvalidInput("files", "must be a list of at most 10 file ids") from None


def _session_id(frame: Frame) -> UUID | None:
    session_id = frame.get("session_id")
    if session_id is None:
        return None
    try:
        return UUID(session_id)
    except (AttributeError, TypeError, ValueError):
        raise InvalidInput("session_id", "must be the id of a session") from None
