"""Check a plugin against the hooks, and what its hooks return."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import pluggy
from agenthost_toml.suggest import did_you_mean

from ..errors import PluginError
from ..observe import Observer
from ..ports.backend import Backend
from ..providers import DialectSpec, ProviderSpec
from ..routes import Mountable, RouteGroup
from .discovery import Entry
from .guards import SecuritySystem
from .hooks import PROJECT, Hooks
from .specs import CommandSpec, SchemaSpec, ServiceSpec, ToolSpec

MOST_ITEMS = 10_000

_PARAMETER = re.compile(r"<[^>]*>")


def _served(group: Mountable) -> list[str]:
    if not isinstance(group, RouteGroup):
        return [f"blueprint {group.name}"]
    paths = [f"route {route.method} {route.path}" for route in group.routes]
    paths += [f"socket {socket.path}" for socket in group.sockets]
    # A path is the same whatever its parameters are called.
    return [_PARAMETER.sub("<>", path) for path in paths]


class Offers(NamedTuple):
    """A row of the hook table.

    ``type`` is what the hook offers, ``names`` gives the names that one of it takes,
    each after its kind. A hook with ``one`` is answered by one or None, where
    ``or_more`` also by a tuple.
    """

    type: type
    names: Callable[[Any], Iterable[str]] = lambda _: ()
    one: bool = False
    or_more: bool = False


OFFERS: Mapping[str, Offers] = {
    "security_system": Offers(
        SecuritySystem, lambda o: [f"securitysystem {o.name}"], one=True
    ),
    "register_backend": Offers(Backend, lambda o: [f"backend {o.port} {o.name}"]),
    "register_schema": Offers(
        SchemaSpec, lambda o: [f"schema {o.name}"], one=True, or_more=True
    ),
    "register_dialect": Offers(DialectSpec, lambda o: [f"dialect {o.name}"]),
    "register_provider": Offers(ProviderSpec, lambda o: [f"provider {o.facts.slug}"]),
    "register_tool": Offers(ToolSpec, lambda o: [f"tool {name}" for name in o.names]),
    "register_service": Offers(ServiceSpec, lambda o: [f"service {o.name}"]),
    "register_observer": Offers(Observer),
    "register_routes": Offers(Mountable, _served),
    "register_command": Offers(CommandSpec),
}


@dataclass(frozen=True, slots=True)
class Implementation:
    """A plugin's function for a hook; ``takes`` are those of the ``given`` it wants."""

    function: Callable[..., Any]
    given: tuple[str, ...]
    takes: tuple[str, ...]

    def __call__(self, *arguments: object) -> Any:
        """Call it with all that the hook is given, in the hook's order."""
        by_name = dict(zip(self.given, arguments, strict=True))
        return self.function(*(by_name[name] for name in self.takes))


def hooks_of(entry: Entry) -> dict[str, Implementation]:
    """Import a plugin and find its implementations by hook.

    Raises:
        BaseException: Whatever its import raises.
        PluginError: It is a class, misspells a hook, wraps one, or has an async one.
        pluggy.PluginValidationError: An implementation has arguments the hook has not.
    """
    plugin = entry.load()
    if inspect.isclass(plugin):
        raise PluginError("is a class; offer a module or an instance")
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    manager.register(plugin)
    found: dict[str, Implementation] = {}
    for caller in manager.get_hookcallers(plugin) or ():
        found |= _checked(caller)
    for name in hook_names():
        if name not in found and inspect.isroutine(getattr(plugin, name, None)):
            raise PluginError(f"{name} is not marked; put @hookimpl above it")
    return found


def _checked(caller: pluggy.HookCaller) -> dict[str, Implementation]:
    (implementation,) = caller.get_hookimpls()
    if implementation.hookwrapper or implementation.wrapper:
        raise PluginError(f"{caller.name} is a wrapper; hooks cannot be wrapped")
    if caller.spec is None:
        if implementation.optionalhook:
            return {}
        hint = did_you_mean(caller.name, hook_names())
        raise PluginError(f"{caller.name} is not a hook{hint}")
    if inspect.iscoroutinefunction(implementation.function):
        raise PluginError(f"{caller.name} is async; hooks are plain functions")
    given, takes = tuple(caller.spec.argnames), tuple(implementation.argnames)
    return {caller.name: Implementation(implementation.function, given, takes)}


def hook_names() -> tuple[str, ...]:
    """The names of all hooks."""
    return tuple(name for name in vars(Hooks) if not name.startswith("_"))


def offered(hook: str, implementation: Implementation, *arguments: object) -> list[Any]:
    """Ask a plugin, and take its answer apart into items of the right type.

    Raises:
        PluginError: The answer is a coroutine or of a wrong type.
        BaseException: Whatever the implementation raises.
    """
    answer, (wanted, _, one, or_more) = implementation(*arguments), OFFERS[hook]
    if inspect.iscoroutine(answer):
        answer.close()
        raise PluginError(f"{hook} returned a coroutine; hooks are plain functions")
    if one and not (or_more and isinstance(answer, tuple)):
        answer = () if answer is None else (answer,)
    if not isinstance(answer, Iterable) or isinstance(answer, str | bytes | Mapping):
        raise PluginError(
            f"{hook} returned {type(answer).__name__}; it must return an iterable of "
            f"{wanted.__name__}"
        )
    items = list(islice(answer, MOST_ITEMS + 1))
    if len(items) > MOST_ITEMS:
        raise PluginError(f"{hook} offers more than {MOST_ITEMS} items")
    for item in items:
        if inspect.iscoroutine(item):
            item.close()
        if not isinstance(item, wanted):
            raise PluginError(
                f"{hook} offers {type(item).__name__}; it must offer {wanted.__name__}"
            )
    return items
