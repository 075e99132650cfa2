"""``tools/list`` and ``tools/call``: the daemon's one toolbox, for whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from agenthost import (
    AgentView,
    Call,
    Context,
    Event,
    Grants,
    Guard,
    Host,
    JsonObject,
    Manifest,
    Outcome,
    Principal,
    RequestCase,
    Tool,
    ToolCalled,
    ToolDenied,
    ToolEnded,
    ToolEvent,
    ToolSpec,
    ToolUse,
    new_id,
)

from .admitting import may
from .challenges import TOOLS
from .link import Link, McpPrincipal
from .results import result_of
from .rpc import INVALID_PARAMS, RpcError
from .settings import McpSection

if TYPE_CHECKING:
    from agenthost import ToolProgress

KIND = "mcp"
CALL_COST = 30
ROUTE_COST = 5
EXCERPT = 200
NOT_READING = dict.fromkeys(("memory_write", "agent_message"), ())


class Shown:
    """What the toolbox offers to MCP clients as it stands, made once for each change.

    Args:
        host: The daemon.

    Attributes:
        tools: The toolbox's tools that this was made of.
        grants: What a call may do.
        least: What one may do whose token has no more.
    """

    def __init__(self, host: Host) -> None:
        self.tools = host.toolbox.tools
        settings = host.settings(McpSection)
        own = {name: t for name, t in self.tools.items() if name == t.definition.name}
        allowed = sorted(n for n, tool in own.items() if _allowed(n, tool, settings))
        self.grants = Grants(
            {
                "tool": tuple(allowed),
                "network": settings.network,
                "memory_read": ("self.*",),
                "memory_write": ("self.*",),
                "agent_message": ("*",),
            }
        )
        specs = {spec.name: spec for _, spec in host.registry.offered(ToolSpec)}
        self._listed = {n: _told(own[n], specs.get(n)) for n in allowed}
        reading = tuple(n for n in allowed if own[n].effect == "read")
        # Whose token has no more: to read, and nothing that goes on elsewhere.
        self.least = Grants({**self.grants.patterns, **NOT_READING, "tool": reading})

    def of(self, principal: Principal) -> Grants:
        """What somebody's calls may do."""
        return self.grants if may(principal, TOOLS) else self.least

    def listed(self, principal: Principal, version: str) -> list[dict[str, Any]]:
        """The tools by name; before 2026 only objects have a schema of the result."""
        grants = self.of(principal)
        rows = [row for n, row in self._listed.items() if grants.allow("tool", n)]
        return rows if version >= "2026" else [_before_2026(row) for row in rows]


class Tools:
    """The tools of one daemon, and the calls of them.

    Nothing of a call is kept but its rows in the audit trail: it is no turn.
    """

    def __init__(self) -> None:
        self._shown: Shown | None = None
        self._manifest = Manifest(name="mcp", description="Clients of /mcp")

    def shown(self, host: Host) -> Shown:
        """What is on offer now."""
        if self._shown is None or self._shown.tools is not host.toolbox.tools:
            self._shown = Shown(host)
        return self._shown

    async def call(
        self, call: Call, link: Link, params: JsonObject, version: str
    ) -> dict[str, Any]:
        """Call a tool.

        Raises:
            RpcError: There is no such tool, or the client has to do something first.
            AgentHostError: The audit trail takes nothing.
        """
        host, use = call.host, _use_of(params)
        if use.name not in host.toolbox.tools:
            raise RpcError(INVALID_PARAMS, f"unknown tool: {use.name}")
        context = self._context(call, link, use)
        outcome = await _run(host, context, use, link)
        if link.failure is not None and outcome.output.is_error:
            raise link.failure
        return result_of(outcome.output, version)

    def _context(self, call: Call, link: Link, use: ToolUse) -> Context:
        """Whose call it is: everyone has a workspace and a memory of their own.

        Each has a chain of its own: guards that count calls begin anew with it.
        """
        who = call.principal
        name = f"{who.kind}:{who.name}"
        grants = self.shown(call.host).of(who)
        principal = McpPrincipal(KIND, name, grants, who.person, link=link)
        place = _place_of(name)
        agent = AgentView(place, f"mcp-{place}", self._manifest, "")
        chain = (use.id,)
        return replace(
            call.context, principal=principal, agent=agent, caller=who, chain=chain
        )


async def _run(host: Host, context: Context, use: ToolUse, link: Link) -> Outcome:
    begun = host.clock.monotonic()

    async def before_effect(_: ToolUse) -> None:
        await _tell(host, context, ToolCalled, use.name)

    def progressed(told: ToolProgress) -> None:
        link.progress(told.done, told.total, told.text)

    run = host.toolbox.run(context, (use,), before_effect, progressed)
    async with aclosing(run) as outcomes:  # type: ignore[type-var]  # reason: it is a generator
        outcome = await anext(outcomes)
    output = outcome.output
    if outcome.denied:
        told = outcome.denied, output.text[:EXCERPT]
        await _tell(host, context, ToolDenied, use.name, *told)
    else:
        seconds = host.clock.monotonic() - begun
        told_of = output.is_error, seconds, output.text[:EXCERPT]
        await _tell(host, context, ToolEnded, use.name, *told_of)
    return outcome


async def _tell(
    host: Host, context: Context, kind: type[ToolEvent], tool: str, *facts: Any
) -> None:
    """Tell of a step of the call, with its row where one is kept."""
    events = host.events
    if not events.wants(kind):
        return
    caused = context.caused
    made: Callable[..., Event] = kind
    event = made(caused["source"], host.clock.time(), tool, "", *facts, **caused)
    keep = events.keeping(event)
    if keep is not None:
        await host.store.write(keep)
    events.publish(event)


def charge(call: Call, calls: int) -> None:
    """Take what tool calls cost beyond the route's own units.

    Raises:
        RateLimited: There are not so many left.
    """
    host, units = call.host, calls * CALL_COST - ROUTE_COST
    if calls == 0:
        return
    if call.principal.allowance is None and host.guards.filled(Guard.REQUEST):
        case = RequestCase("TOOL", "/mcp", call.client, units)
        host.guards.check(Guard.REQUEST, case)
    host.access.charge(call.principal, units)


def _use_of(params: JsonObject) -> ToolUse:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "name must be the name of a tool")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise RpcError(INVALID_PARAMS, "arguments must be an object")
    return ToolUse(new_id(), name[:256], arguments)


@lru_cache(maxsize=1_024)
def _place_of(name: str) -> str:
    """What somebody's workspace and memory go by: always the same."""
    return str(uuid5(NAMESPACE_URL, f"mcp:{name}"))


def _allowed(name: str, tool: Tool, settings: McpSection) -> bool:
    return tool.effect == "read" or any(fnmatchcase(name, p) for p in settings.tools)


def _told(tool: Tool, spec: ToolSpec | None) -> dict[str, Any]:
    reads = tool.effect == "read"
    hints: dict[str, Any] = {"readOnlyHint": reads, "openWorldHint": not reads}
    if tool.effect == "write":
        hints["openWorldHint"] = False
    if spec is not None:
        hints["idempotentHint"] = spec.idempotent
    definition = tool.definition
    told: dict[str, Any] = {
        "name": definition.name,
        "description": definition.description,
        "inputSchema": definition.parameters,
        "annotations": hints,
    }
    if spec is not None and spec.output is not None:
        told["outputSchema"] = spec.output
    return told


def _before_2026(row: dict[str, Any]) -> dict[str, Any]:
    if row.get("outputSchema", {}).get("type", "object") == "object":
        return row
    return {name: value for name, value in row.items() if name != "outputSchema"}
