"""What the enabled plugins offer, compiled once into look-ups by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agenthost_chat.chat import JsonObject, ToolDefinition
from agenthost_chat.schema import tool_schema

from ..context import Grants
from ..errors import NotFound, PluginError
from ..observe import Observer
from ..ports import Backends, BackendSpec, Front
from ..providers import DialectSpec, ProviderSpec
from ..routes import RouteGroup
from .discovery import Status
from .guards import SecuritySystem, stand_in
from .loader import Plugins
from .security import SecuritySystems
from .specs import SchemaSpec, ServiceSpec, ToolSpec

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PARAMETER = re.compile(r"<[^>]*>")

Offer = tuple[str, Any]
"""What a plugin offers, after the plugin's key."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A registered tool: its spec, the schema of its arguments, its plugin's key."""

    spec: ToolSpec
    schema: JsonObject
    plugin: str

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and its aliases."""
        return (self.spec.name, *self.spec.aliases)

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
    routes: tuple[tuple[str, RouteGroup], ...]
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

    def granted(self, grants: Grants) -> list[Tool]:
        """The tools, by name, that the grants allow under their name or an alias."""
        return [
            tool
            for _, tool in sorted(self.tools.items())
            if any(grants.allow("tool", name) for name in tool.names)
        ]


async def compile_registry(
    plugins: Plugins, open_front: Callable[[Backends], Front]
) -> Registry:
    """Ask every plugin for everything and compile the answers.

    Names are taken in the plugins' order, first-party ones first; a plugin that
    offers a name another one has taken is marked failed, and all it offers is out.

    Args:
        plugins: The loaded plugins.
        open_front: Called once the backends are known. The front's ``app`` is asked
            for only when some plugin's ``register_routes`` takes it.

    Raises:
        ConfigError: What ``open_front`` needs is served by no plugin.
    """
    guarding = {key for key, _ in plugins.implementations("security_system")}
    offers = await _asked(plugins, "security_system") + _unheard(plugins, guarding)
    offers += await _asked(plugins, "register_backend")
    front = open_front(_backends(_settled(plugins, offers)))
    offers += await _asked(
        plugins, "register_schema", "register_dialect", "register_provider"
    )
    specs = await plugins.collect("register_tool")
    tools = [(key, partial(_tool, key, spec)) for key, spec in specs]
    offers += await plugins.run_each("tool schema", tools)
    offers += await _asked(plugins, "register_service", "register_observer")
    routing = plugins.implementations("register_routes")
    wanted = any("app" in implementation.takes for _, implementation in routing)
    app = front.app if wanted else None
    offers += await plugins.collect("register_routes", app)
    backends = _backends(_settled(plugins, offers))
    # Also those of failed plugins: what they were to guard is closed.
    systems = [(k, o) for k, o in offers if isinstance(o, SecuritySystem)]
    security = SecuritySystems(plugins, systems, backends)
    await security.test()
    return _compiled(security, _settled(plugins, offers))


def _unheard(plugins: Plugins, guarding: set[str]) -> list[Offer]:
    """Stand-ins for plugins that failed before they said what they guard."""
    return [
        (state.key, stand_in(state.slug))
        for state in plugins.states()
        if state.status is Status.FAILED
        and (state.key in guarding or state.key.startswith("security:"))
    ]


async def _asked(plugins: Plugins, *hooks: str) -> list[Offer]:
    return [offer for hook in hooks for offer in await plugins.collect(hook)]


def _tool(plugin: str, spec: ToolSpec) -> Tool:
    for name in (spec.name, *spec.aliases):
        if not _TOOL_NAME.fullmatch(name):
            raise PluginError(
                f"tool name {name!r} must be 1 to 64 letters, digits, _ and -"
            )
    return Tool(spec, tool_schema(spec.input), plugin)


def _settled(plugins: Plugins, offers: list[Offer]) -> list[Offer]:
    """Settle the names, and keep the offers of the plugins that stand."""
    names: dict[str, list[str]] = {}
    for key, offer in offers:
        names.setdefault(key, []).extend(_names(offer))
    taken: dict[str, str] = {}
    for key in plugins.in_order():
        own = names.get(key, [])
        if reason := _collision(key, own, taken):
            plugins.fail(key, reason)
        else:
            taken |= dict.fromkeys(own, key)
    return [(key, offer) for key, offer in offers if plugins.healthy(key)]


def _collision(key: str, names: list[str], taken: Mapping[str, str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in taken:
            return f"{key} offers {name}, which {taken[name]} has taken"
        if name in seen:
            return f"{key} offers {name} twice"
        seen.add(name)
    return None


def _names(offer: object) -> list[str]:
    """Every name that an offer takes, with the kind of name before it."""
    match offer:
        case Tool():
            return [f"tool {name}" for name in offer.names]
        case ProviderSpec():
            return [f"provider {offer.facts.slug}"]
        case RouteGroup():
            paths = [f"route {route.method} {route.path}" for route in offer.routes]
            paths += [f"socket {socket.path}" for socket in offer.sockets]
            return [_PARAMETER.sub("<>", path) for path in paths]
        case BackendSpec():
            return [f"backend {offer.port} {offer.name}"]
        case DialectSpec() | SecuritySystem() | SchemaSpec() | ServiceSpec():
            kind = type(offer).__name__.removesuffix("Spec").lower()
            return [f"{kind} {offer.name}"]
        case _:
            return []


def _backends(standing: list[Offer]) -> Backends:
    return Backends(tuple(o for _, o in standing if isinstance(o, BackendSpec)))


def _compiled(security: SecuritySystems, standing: list[Offer]) -> Registry:
    offers = [offer for _, offer in standing]
    tools = [o for o in offers if isinstance(o, Tool)]
    return Registry(
        security=security,
        backends=_backends(standing),
        tools={tool.spec.name: tool for tool in tools},
        providers={o.facts.slug: o for o in offers if isinstance(o, ProviderSpec)},
        dialects={o.name: o for o in offers if isinstance(o, DialectSpec)},
        schemas=tuple((k, o) for k, o in standing if isinstance(o, SchemaSpec)),
        services=tuple((k, o) for k, o in standing if isinstance(o, ServiceSpec)),
        routes=tuple((k, o) for k, o in standing if isinstance(o, RouteGroup)),
        observers=tuple((k, o) for k, o in standing if isinstance(o, Observer)),
        _by_any_name={name: tool for tool in tools for name in tool.names},
    )
