"""The IPC bridge: a webview's commands over a WebSocket, each checked before it runs.

The first frame is ``{"token": "..."}``; after its answer each frame is
``{"id": ..., "command": "core:window:set-title", "args": {...}}`` and is answered by
the decision under the same id. The bridge decides; the shell performs what is allowed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agenthost import (
    AgentHostError,
    Answer,
    Call,
    InvalidInput,
    Reply,
    RouteGroup,
    Socket,
    Unauthenticated,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .served import ServedFolders
from .terms import EXECUTE, LOCAL, OPEN, SPAWN, Caller, ShellCall, Target, host_platform
from .tokens import Binding, Tokens, seen_origin

if TYPE_CHECKING:
    from .findings import Json
    from .folders import Folders
    from .policy import Policy

SOCKET = "/api/desktop/ipc"
TOKENS = "/api/desktop/tokens"
OPERATE = "desktop:operate"
INVOKE = "desktop:invoke"
HELLO_WITHIN = 10.0
POLICY_VIOLATION = 1008


class IssueBody(BaseModel):
    """The webview that a token is for."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    window: str = Field(min_length=1)
    webview: str | None = None
    origin: str = LOCAL
    platform: Target = Field(default_factory=host_platform)
    application: str = ""
    resource: str = ""


class Hello(BaseModel):
    """The first frame."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    token: str


class Invocation(BaseModel):
    """A command that a webview invokes; of the shell's, ``args`` says which program."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    id: str | int
    command: str
    args: dict[str, Any] = Field(default_factory=dict)


class ShellArguments(BaseModel, defer_build=True):
    """What ``args`` holds for ``shell:execute``, ``shell:spawn`` and ``shell:open``."""

    name: str = ""
    args: list[str] | str = Field(default_factory=list)
    sidecar: bool = False
    path: str = ""


class Bridge:
    """The socket and the tokens of one daemon."""

    def __init__(
        self, folders: ServedFolders, hello_within: float = HELLO_WITHIN
    ) -> None:
        self._folders = folders
        self._hello_within = hello_within
        self._tokens = Tokens()

    async def issue(self, _call: Call, body: IssueBody) -> Answer:
        """Issue a token for a webview; it is shown this once."""
        from .folders import Folders

        caller = Caller(body.window, body.webview, body.origin)
        token, binding = self._tokens.issue(
            caller, Folders(body.platform, body.application, body.resource)
        )
        return Reply({"token": token, **binding.as_json()}, 201)

    async def listed(self, _call: Call) -> Answer:
        """List what tokens stand for."""
        return [binding.as_json() for binding in self._tokens.listed()]

    async def revoke(self, _call: Call, token_id: str) -> Answer:
        """Revoke a token."""
        self._tokens.revoke(token_id)
        return {"status": "revoked", "id": token_id}

    async def serve(self, socket: Socket) -> None:
        """Check every command of one webview until it leaves."""
        await socket.accept()
        try:
            token = await self._hello(socket)
            while (frame := await socket.receive()) is not None:
                await socket.send(json.dumps(await self._answer(socket, token, frame)))
        except Unauthenticated as error:
            await socket.send(json.dumps({"error": error.message, "code": error.code}))
            await socket.close(POLICY_VIOLATION)

    async def _hello(self, socket: Socket) -> str:
        try:
            async with asyncio.timeout(self._hello_within):
                frame = await socket.receive()
            token = Hello.model_validate_json(frame or "{}").token
        except (TimeoutError, ValidationError) as error:
            wanted = 'the first frame must be {"token": "..."}'
            raise Unauthenticated(wanted) from error
        binding = self._bound(token)
        await socket.send(json.dumps({"status": "bound", **binding.as_json()}))
        return token

    def _bound(self, token: str) -> Binding:
        binding = self._tokens.find(token)
        if binding is None:
            raise Unauthenticated("the token is unknown or revoked; ask for another")
        return binding

    async def _answer(
        self, socket: Socket, token: str, frame: str
    ) -> Mapping[str, Json]:
        binding = self._bound(token)
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
            await asyncio.to_thread(policy.on, binding.folders.platform)
            decided = _decided(policy, wanted, caller, binding.folders)
        except AgentHostError as error:
            return {"id": wanted.id, "error": error.message, "code": error.code}
        return {"id": wanted.id, **decided}


def _decided(
    policy: Policy, wanted: Invocation, caller: Caller, folders: Folders
) -> Mapping[str, Json]:
    command = policy.tables.command(wanted.command)
    if command not in {EXECUTE, SPAWN, OPEN}:
        return policy.decide(command, *caller, folders.platform).as_json()
    try:
        given = ShellArguments.model_validate(wanted.args)
    except ValidationError as error:
        raise InvalidInput("args", f"does not fit {command}") from error
    if command == OPEN:
        return policy.decide_open(given.path, caller, folders.platform).as_json()
    call = ShellCall(given.name, given.args, command, given.sidecar)
    return policy.decide_shell(call, caller, folders).as_json()


def bridge_group(folders: ServedFolders) -> RouteGroup:
    """Make the group of one daemon."""
    bridge = Bridge(folders)
    group = RouteGroup("desktop_shell.ipc")
    issue = group.post(TOKENS, scope=OPERATE, body=IssueBody, answer=dict, status=201)
    issue(bridge.issue)
    group.get(TOKENS, scope=OPERATE, answer=list)(bridge.listed)
    group.delete(f"{TOKENS}/<token_id>", scope=OPERATE, answer=dict)(bridge.revoke)
    group.socket(SOCKET, scope=INVOKE)(bridge.serve)
    return group
