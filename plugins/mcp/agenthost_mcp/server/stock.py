"""Resources and prompts of all sources: listed, read, filled in, completed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from agenthost import AgentHostError, Host, JsonObject, ToolSource

from .agents import Agents
from .results import content_of, contents_of
from .rpc import INTERNAL, INVALID_PARAMS, RpcError
from .source import McpSource, Prompt, Resource, Visit
from .templates import Templates

log = logging.getLogger(__name__)

T = TypeVar("T")
SECONDS = 30.0
MOST_VALUES = 100


class Stock:
    """What the sources of one daemon have; the first that offers a name has it."""

    def __init__(self, host: Host) -> None:
        offered = (source for _, source in host.registry.offered(ToolSource))
        mcp = (each for each in offered if isinstance(each, McpSource))
        own = (Agents(host), Templates(host))
        self._sources: tuple[McpSource, ...] = (*own, *mcp)

    async def refresh(self) -> None:
        """Have all sources find out what they have; who cannot keeps what it had."""
        for source in self._sources:
            try:
                async with asyncio.timeout(SECONDS):
                    await source.refresh()
            except Exception:
                log.exception("MCP source %s cannot find out what it has", source.name)

    def resources(self, visit: Visit) -> dict[str, Resource]:
        """Every resource and template by its address, in a lasting order."""
        return self._all(lambda s: ((r.uri, r) for r in s.resources(visit)))

    def prompts(self, visit: Visit) -> dict[str, Prompt]:
        """Every prompt by its name, in a lasting order."""
        return self._all(lambda s: ((p.name, p) for p in s.prompts(visit)))

    def revision(self, uri: str) -> str:
        """What changes whenever a resource does."""
        said = self._all(lambda source: ((source.name, source.revision(uri)),))
        return " ".join(said.values())

    async def read(self, visit: Visit, uri: str) -> dict[str, Any]:
        """Read a resource.

        Raises:
            RpcError: Nobody has it, or whoever has it fails.
        """
        found = await self._first(lambda source: source.read(visit, uri))
        if not found:
            data = {"uri": uri[:2_048]}
            raise RpcError(INVALID_PARAMS, "resource not found", data=data)
        return {"contents": [contents_of(each) for each in found]}

    async def prompt(
        self, visit: Visit, name: str, arguments: JsonObject
    ) -> dict[str, Any]:
        """Fill in a prompt.

        Raises:
            RpcError: There is none, an argument is missing, or its source fails.
        """
        await self.refresh()
        listed = self.prompts(visit).get(name)
        if listed is None:
            raise RpcError(INVALID_PARAMS, f"unknown prompt: {name[:256]}")
        given = {key: str(value) for key, value in arguments.items()}
        for each in listed.arguments:
            if each.required and each.name not in given:
                raise RpcError(INVALID_PARAMS, f"arguments.{each.name} is missing")
        found = await self._first(lambda source: source.prompt(visit, name, given))
        if found is None:
            raise RpcError(INVALID_PARAMS, f"unknown prompt: {name[:256]}")
        told = [{"role": m.role, "content": content_of(m.part)} for m in found]
        return {"description": listed.description, "messages": told}

    async def complete(
        self, visit: Visit, reference: JsonObject, argument: str, begun: str
    ) -> dict[str, Any]:
        """Name values that an argument may have.

        Raises:
            RpcError: There is no such prompt or template.
        """
        await self.refresh()
        name, uri = str(reference.get("name")), str(reference.get("uri"))
        if name not in self.prompts(visit) and uri not in self.resources(visit):
            raise RpcError(INVALID_PARAMS, "ref names no prompt and no resource here")
        found = await self._first(
            lambda source: source.complete(visit, reference, argument, begun)
        )
        values = list(found or ())
        told = {"values": values[:MOST_VALUES], "total": len(values)}
        return {"completion": {**told, "hasMore": len(values) > MOST_VALUES}}

    def _all(self, ask: Callable[[McpSource], Iterable[tuple[str, T]]]) -> dict[str, T]:
        found: dict[str, T] = {}
        for source in self._sources:
            try:
                own = dict(ask(source))
            except Exception:
                log.exception("MCP source %s cannot say what it has", source.name)
                continue
            found |= {key: each for key, each in own.items() if key not in found}
        return dict(sorted(found.items()))

    async def _first(
        self, ask: Callable[[McpSource], Awaitable[Sequence[T] | None]]
    ) -> Sequence[T] | None:
        for source in self._sources:
            try:
                async with asyncio.timeout(SECONDS):
                    found = await ask(source)
            except AgentHostError:
                raise
            except Exception as error:
                log.exception("MCP source %s failed", source.name)
                raise RpcError(INTERNAL, "its source failed; see the log") from error
            if found is not None:
                return found
        return None
