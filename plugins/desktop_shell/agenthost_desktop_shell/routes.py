"""HTTP: validate, resolve and decide, on capabilities given or on the served folder."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agenthost import Answer, Call, InvalidInput, RouteGroup

from .bodies import (
    Capabilities,
    DecideAnswer,
    DecideBody,
    ResolveBody,
    ShellAnswer,
    ShellBody,
    ValidateAnswer,
    ValidateBody,
)
from .refusals import refusing
from .served import ServedFolders
from .terms import LOCAL, OPEN, Caller

if TYPE_CHECKING:
    from .policy import Policy
    from .tables import Tables

PREFIX = "/api/desktop/capabilities"
READ = "desktop:read"
COST = 10


class CapabilityRoutes:
    """The handlers; checking and resolving happen off the event loop."""

    def __init__(self, folders: ServedFolders) -> None:
        self._folders = folders

    async def validate(self, call: Call, body: ValidateBody) -> Answer:
        """Validate capabilities in any of the three forms."""
        tables = await self._folders.of(call.host).tables()
        return await asyncio.to_thread(_validated, body, tables)

    async def resolve(self, call: Call, body: ResolveBody) -> Answer:
        """Show what capabilities resolve to on a platform."""
        policy = await self._policy(call, body)
        with refusing():
            resolved = await asyncio.to_thread(policy.on, body.platform)
            return await asyncio.to_thread(resolved.as_json)

    async def decide(self, call: Call, body: DecideBody) -> Answer:
        """Decide whether a webview may invoke a command."""
        caller = _checked(body.caller())
        policy = await self._policy(call, body)
        with refusing():
            await asyncio.to_thread(policy.on, body.platform)
            return policy.decide(body.command, *caller, body.platform).as_json()

    async def decide_shell(self, call: Call, body: ShellBody) -> Answer:
        """Decide whether a webview may run a program, or open a link."""
        from .folders import Folders

        caller = _checked(body.caller())
        policy = await self._policy(call, body)
        if body.command == OPEN and body.path is None:
            raise InvalidInput("path", f"{OPEN} needs the link to open")
        if body.command != OPEN and body.name is None:
            raise InvalidInput("name", f"{body.command} needs a name of its scope")
        with refusing():
            await asyncio.to_thread(policy.on, body.platform)
            if body.path is not None and body.command == OPEN:
                return policy.decide_open(body.path, caller, body.platform).as_json()
            folders = Folders(body.platform, body.application, body.resource)
            return policy.decide_shell(
                body.call(body.command), caller, folders
            ).as_json()

    async def schema(self, call: Call) -> Answer:
        """The JSON Schema of capability files, served permission tables included."""
        tables = await self._folders.of(call.host).tables()
        return await asyncio.to_thread(_schema, tables)

    async def _policy(self, call: Call, body: Capabilities) -> Policy:
        from .policy import Policy
        from .validation import validate

        folder = self._folders.of(call.host)
        if not body.given("capabilities"):
            return await folder.policy()
        tables = await folder.tables()
        report = await asyncio.to_thread(validate, body.capabilities, tables, body.mode)
        with refusing():
            return Policy(report.checked(), tables)


def _schema(tables: Tables) -> Answer:
    from .schema import capability_schema

    return capability_schema(tables)


def _validated(body: ValidateBody, tables: Tables) -> Answer:
    from .app_config import AppConfig
    from .lints import lint
    from .outputs import shown
    from .project import Project
    from .reading import Document
    from .validation import validate

    document = Document(body.capabilities)
    report = validate(document, tables, body.mode)
    # Of what is no capability file at all there is nothing more to say.
    documents = (document,) if report.capabilities else ()
    project = Project(None, documents, AppConfig(), tables, report)
    return {
        "valid": report.valid,
        "errors": [finding.as_json() for finding in report.errors],
        "strict_errors": [finding.as_json() for finding in report.strict_errors],
        "warnings": [shown(finding) for finding in lint(project)],
    }


def _checked(caller: Caller) -> Caller:
    if caller.origin == LOCAL or _is_url(caller.origin):
        return caller
    raise InvalidInput("origin", "must be 'local' or a URL such as https://a.dev/page")


def _is_url(text: str) -> bool:
    from .urls import host_of

    try:
        return ":" in text and (bool(host_of(text)) or "://" not in text)
    except TypeError:
        return False


def route_group(folders: ServedFolders) -> RouteGroup:
    """Make the group of one daemon."""
    handlers = CapabilityRoutes(folders)
    group = RouteGroup("desktop_shell.capabilities")
    for name, body, answer in (
        ("validate", ValidateBody, ValidateAnswer),
        ("resolve", ResolveBody, dict),
        ("decide", DecideBody, DecideAnswer),
        ("decide-shell", ShellBody, ShellAnswer),
    ):
        handler = getattr(handlers, name.replace("-", "_"))
        path = f"{PREFIX}/{name}"
        group.post(path, scope=READ, cost=COST, body=body, answer=answer)(handler)
    group.get(f"{PREFIX}/schema", scope=READ, answer=dict)(handlers.schema)
    return group
