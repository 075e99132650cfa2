"""The IPC bridge: a webview's commands over a WebSocket, each checked before it runs.

The first frame is ``{"token": "..."}``; after its answer each frame is
``{"id": ..., "command": "core:window:set-title", "args": {...}}`` and is answered by
the decision under the same id. The bridge decides; the shell performs what is allowed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from agenthost import (
    AgentHostError,
    Answer,
    Call,
    Host,
    InvalidInput,
    Reply,
    RouteGroup,
    Socket,
    Unauthenticated,
)
from pydantic import ValidationError

from .bodies import DecisionsAnswer, DecisionsQuery
from .config import DesktopSection
from .frames import Hello, Invocation, IssueBody, WireArguments
from .record import Record
from .refusals import refusing
from .served import ServedFolders
from .terms import OPEN, RUNS, Caller
from .tokens import Binding, Tokens, seen_origin

if TYPE_CHECKING:
    from .decide import Decision
    from .findings import Json
    from .folders import Folders
    from .policy import Policy
    from .record_rows import Decided
    from .shell import ShellDecision

SOCKET = "/api/desktop/ipc"
TOKENS = "/api/desktop/tokens"
DECISIONS = "/api/desktop/decisions"
READ = "desktop:read"
COST = 10
OPERATE = "desktop:operate"
INVOKE = "desktop:invoke"
HELLO_WITHIN = 10.0
# Pages of an application's own webviews; the token decides what they may ask.
WEBVIEWS = ("tauri://localhost", "http://tauri.localhost", "https://tauri.localhost")
POLICY_VIOLATION = 1008


class Bridge:
    """The socket and the tokens of one daemon."""

    def __init__(
        self, folders: ServedFolders, hello_within: float = HELLO_WITHIN
    ) -> None:
        self._folders = folders
        self._hello_within = hello_within
        self._issued: Tokens | None = None
        self._kept: Record | None = None

    async def issue(self, call: Call, body: IssueBody) -> Answer:
        """Issue a token for a webview; it is shown this once."""
        from .folders import Folders

        caller = Caller(body.window, body.webview, body.origin)
        folders = Folders(body.platform, body.application, body.resource)
        token, binding = self._tokens(call.host).issue(
            caller,
            folders,
            body.expires_in,
            owner=call.context.owner,
            until_closed=body.until_closed,
        )
        return Reply({"token": token, **binding.as_json()}, 201)

    async def listed(self, call: Call) -> Answer:
        """List what tokens stand for."""
        return [binding.as_json() for binding in self._tokens(call.host).listed()]

    async def revoke(self, call: Call, token_id: str) -> Answer:
        """Revoke a token."""
        self._tokens(call.host).revoke(token_id)
        return {"status": "revoked", "id": token_id}

    async def decisions(self, call: Call, query: DecisionsQuery) -> Answer:
        """List what the bridge decided, the latest first; one's own webviews' alone."""
        everybody = call.principal.grants is None
        owner = "" if everybody else call.context.owner
        since = query.since.timestamp() if query.since else 0.0
        found = await self._record(call.host).listed(owner, since, query.limit)
        return {"decisions": found, "total": len(found)}

    async def serve(self, socket: Socket) -> None:
        """Check every command of one webview until it leaves."""
        await socket.accept()
        try:
            await self._talk(socket, await self._hello(socket))
        except Unauthenticated as error:
            await socket.send(json.dumps({"error": error.message, "code": error.code}))
            await socket.close(POLICY_VIOLATION)

    async def _talk(self, socket: Socket, token: str) -> None:
        try:
            while (frame := await socket.receive()) is not None:
                await socket.send(json.dumps(await self._answer(socket, token, frame)))
        finally:
            self._tokens(socket.call.host).closed(token)
            self._record(socket.call.host).flush()

    async def _hello(self, socket: Socket) -> str:
        try:
            async with asyncio.timeout(self._hello_within):
                frame = await socket.receive()
            token = Hello.model_validate_json(frame or "{}").token
        except (TimeoutError, ValidationError) as error:
            wanted = 'the first frame must be {"token": "..."}'
            raise Unauthenticated(wanted) from error
        binding = self._bound(socket, token)
        await socket.send(json.dumps({"status": "bound", **binding.as_json()}))
        return token

    def _tokens(self, host: Host) -> Tokens:
        if self._issued is None:
            self._issued = Tokens(host.clock)
        return self._issued

    def _record(self, host: Host) -> Record:
        if self._kept is None:
            self._kept = Record(host)
        return self._kept

    def _bound(self, socket: Socket, token: str) -> Binding:
        binding = self._tokens(socket.call.host).find(token)
        if binding is None:
            problem = "the token is unknown, revoked or has ended; ask for another"
            raise Unauthenticated(problem)
        return binding

    async def _answer(
        self, socket: Socket, token: str, frame: str
    ) -> Mapping[str, Json]:
        binding = self._bound(socket, token)
        try:
            wanted = Invocation.model_validate_json(frame)
        except ValidationError:
            return {
                "id": None,
                "error": 'a frame is {"id": ..., "command": "...", "args": {...}}',
                "code": InvalidInput.code,
            }
        window, webview, bound = binding.caller
        origin = seen_origin(bound, socket.call.headers.get("origin"))
        caller = Caller(window, webview, origin)
        try:
            policy = await self._folders.of(socket.call.host).policy()
            with refusing():
                await asyncio.to_thread(policy.on, binding.folders.platform)
                command = policy.tables.command(wanted.command)
                given = _arguments(command, wanted)
                asked = Asked(command, given, caller, binding.folders)
                decided = asked.decided(policy)
        except AgentHostError as error:
            return {"id": wanted.id, "error": error.message, "code": error.code}
        if socket.call.host.settings(DesktopSection).record:
            self._record(socket.call.host).note(asked.recorded(decided, binding.owner))
        return {"id": wanted.id, **decided.as_json()}


class Asked(NamedTuple):
    """What a webview asks; ``given`` is what the shell is to run or open."""

    command: str
    given: WireArguments | None
    caller: Caller
    folders: Folders

    def decided(self, policy: Policy) -> Decision | ShellDecision:
        """Decide it.

        Raises:
            CapabilityError: A label is not Unicode text.
        """
        platform, given = self.folders.platform, self.given
        if given is None:
            return policy.decide(self.command, *self.caller, platform)
        if self.command == OPEN:
            return policy.decide_open(given.path or "", self.caller, platform)
        call = given.call(self.command)
        call = call._replace(sidecar=given.sidecar or given.options.sidecar)
        return policy.decide_shell(call, self.caller, self.folders)

    def recorded(self, decided: Decision | ShellDecision, owner: str) -> Decided:
        """What is kept of it: of the shell's arguments only the program's name."""
        from .record_rows import Decided

        return Decided(
            owner,
            *self.caller,
            self.folders.platform,
            self.command,
            (self.given and self.given.name) or "",
            decided.allowed,
            decided.permission,
            decided.capability,
        )


def _arguments(command: str, wanted: Invocation) -> WireArguments | None:
    if command not in {*RUNS, OPEN}:
        return None
    try:
        return WireArguments.model_validate(wanted.args)
    except ValidationError as error:
        keys = ", ".join(".".join(map(str, e["loc"])) for e in error.errors())
        problem = f"does not fit {command}: {keys}"
        raise InvalidInput("args", problem) from error


def bridge_group(folders: ServedFolders) -> RouteGroup:
    """Make the group of one daemon."""
    bridge = Bridge(folders)
    group = RouteGroup("desktop_shell.ipc")
    issue = group.post(TOKENS, scope=OPERATE, body=IssueBody, answer=dict, status=201)
    issue(bridge.issue)
    group.get(TOKENS, scope=OPERATE, answer=list)(bridge.listed)
    group.delete(f"{TOKENS}/<token_id>", scope=OPERATE, answer=dict)(bridge.revoke)
    answer = DecisionsAnswer
    group.get(DECISIONS, scope=READ, cost=COST, query=DecisionsQuery, answer=answer)(
        bridge.decisions
    )
    group.socket(SOCKET, scope=INVOKE, origins=WEBVIEWS)(bridge.serve)
    return group
