"""What the enabled plugins offer, compiled once into look-ups by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agenthost_chat.chat import JsonObject, ToolDefinition
from agenthost_chat.schema import tool_schema

from ..context import Grants
from ..errors import NotFound, PluginError
from ..observe import Observer
from ..ports.backend import Backends
from ..ports.front import Front
from ..providers import DialectSpec, ProviderSpec
from ..routes import Mountable
from .discovery import Status, SystemState
from .guards import SecuritySystem, stand_in
from .loader import Plugins
from .security import SecuritySystems
from .specs import SchemaSpec, ServiceSpec, ToolSpec
from .validation import OFFERS

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

APART = {"security_system", "register_routes", "register_command"}
"""Hooks that are not asked alike: first, last, and by the command line alone."""
Offered = dict[str, list[tuple[str, Any]]]
"""What plugins offer, by hook, each after its plugin's key."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A registered tool: its spec, the schema of its arguments, its plugin's key."""

    spec: ToolSpec
    schema: JsonObject
    plugin: str

    @property
    def effect(self) -> str:
        """What it does to the world."""
        return self.spec.effect.value

    @property
    def definition(self) -> ToolDefinition:
        """The tool as a model sees it."""
        return ToolDefinition(self.spec.name, self.spec.description, self.schema)


@dataclass(frozen=True, slots=True)
class Registry:
    """Everything on offer; what a failed plugin offered is not in it.

    ``schemas``, ``services``, ``routes`` and ``observers`` are paired with their
    plugin's key.
    """

    security: SecuritySystems
    backends: Backends
    tools: Mapping[str, Tool]
    providers: Mapping[str, ProviderSpec]
    dialects: Mapping[str, DialectSpec]
    schemas: tuple[tuple[str, SchemaSpec], ...]
    services: tuple[tuple[str, ServiceSpec], ...]
    routes: tuple[tuple[str, Mountable], ...]
    observers: tuple[tuple[str, Observer], ...]
    _by_any_name: Mapping[str, Tool] = field(repr=False)

    def tool(self, name: str) -> Tool:
        """Find a tool by its name or an alias.

        Raises:
            NotFound: No plugin offers it.
        """
        try:
            return self._by_any_name[name]
        except KeyError:
            raise NotFound("tool", name) from None

    def names(self) -> Collection[str]:
        """Every name that a tool goes by."""
        return self._by_any_name.keys()

    def systems(self) -> Sequence[SystemState]:
        """Every security system, and whether it is active."""
        return self.security.states()

    def granted(self, grants: Grants) -> list[Tool]:
        """The tools, by name, that the grants allow under their name or an alias."""
        return [
            tool
            for _, tool in sorted(self.tools.items())
            if any(grants.allow("tool", name) for name in tool.spec.names)
        ]


async def compile_registry(
    plugins: Plugins,
    open_front: Callable[[Backends], Front],
    chosen: Mapping[str, str],
) -> Registry:
    """Ask every plugin for everything and compile the answers.

    Names are taken in the plugins' order, first-party ones first; a plugin that
    offers a name another one has taken is marked failed, and all it offers is out.

    Args:
        plugins: The loaded plugins.
        open_front: Called once the backends are known. The front's ``app`` is asked
            for only when some plugin's ``register_routes`` takes it.
        chosen: The backends that the configuration names, by port.

    Raises:
        ConfigError: What ``open_front`` needs is served by no plugin.
    """
    guarding = {key for key, _ in plugins.implementations("security_system")}
    systems = await plugins.collect("security_system")
    systems += _unheard(plugins, guarding)
    offered = {"security_system": systems}
    for hook in (each for each in OFFERS if each not in APART):
        offered[hook] = await plugins.collect(hook)
    specs = offered["register_tool"]
    making = [(key, partial(_tool, key, spec)) for key, spec in specs]
    made = await plugins.run_each("tool schema", making)
    known = {spec.name: spec for _, spec in offered["register_dialect"]}
    naming = [(key, partial(s.made, known)) for key, s in offered["register_provider"]]
    offered["register_provider"] = await plugins.run_each("dialect", naming)
    front = open_front(_backends(_settled(plugins, offered), chosen))
    routing = plugins.implementations("register_routes")
    wanted = any("app" in implementation.takes for _, implementation in routing)
    app = front.app if wanted else None
    offered["register_routes"] = await plugins.collect("register_routes", app)
    backends = _backends(_settled(plugins, offered), chosen)
    # Also the systems of failed plugins: what they were to guard is closed.
    security = SecuritySystems(plugins, systems, backends)
    await security.test()
    standing = _settled(plugins, offered)
    backends = _backends(standing, chosen)
    tools = [tool for key, tool in made if plugins.healthy(key)]
    return _compiled(security, backends, standing, tools)


def _unheard(plugins: Plugins, guarding: set[str]) -> list[tuple[str, SecuritySystem]]:
    """Stand-ins for plugins that failed before they said what they guard."""
    return [
        (state.key, stand_in(state.slug))
        for state in plugins.states()
        if state.status is Status.FAILED
        and (state.key in guarding or state.key.startswith("security:"))
    ]


def _tool(plugin: str, spec: ToolSpec) -> Tool:
    for name in spec.names:
        if not _TOOL_NAME.fullmatch(name):
            raise PluginError(
                f"tool name {name!r} must be 1 to 64 letters, digits, _ and -"
            )
    return Tool(spec, tool_schema(spec.input), plugin)


def _settled(plugins: Plugins, offered: Offered) -> Offered:
    """Settle the names, and keep the offers of the plugins that stand."""
    names: dict[str, list[str]] = {}
    for hook, offers in offered.items():
        for key, offer in offers:
            names.setdefault(key, []).extend(OFFERS[hook].names(offer))
    taken: dict[str, str] = {}
    for key in plugins.in_order():
        own = names.get(key, [])
        if reason := _collision(key, own, taken):
            plugins.fail(key, reason)
        else:
            taken |= dict.fromkeys(own, key)
    return {
        hook: [(key, offer) for key, offer in offers if plugins.healthy(key)]
        for hook, offers in offered.items()
    }


def _collision(key: str, names: list[str], taken: Mapping[str, str]) -> str | None:
    for place, name in enumerate(names):
        if name in taken:
            return f"{key} offers {name}, which {taken[name]} has taken"
        if name in names[:place]:
            return f"{key} offers {name} twice"
    return None


def _backends(standing: Offered, chosen: Mapping[str, str]) -> Backends:
    return Backends(tuple(o for _, o in standing["register_backend"]), chosen)


def _compiled(
    security: SecuritySystems,
    backends: Backends,
    standing: Offered,
    tools: Sequence[Tool],
) -> Registry:
    return Registry(
        security=security,
        backends=backends,
        tools={tool.spec.name: tool for tool in tools},
        providers={o.facts.slug: o for _, o in standing["register_provider"]},
        dialects={o.name: o for _, o in standing["register_dialect"]},
        schemas=tuple(standing["register_schema"]),
        services=tuple(standing["register_service"]),
        routes=tuple(standing["register_routes"]),
        observers=tuple(standing["register_observer"]),
        _by_any_name={name: tool for tool in tools for name in tool.spec.names},
    )
