"""Check a plugin against the hooks, and what its hooks return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pluggy
from agenthost_toml.suggest import did_you_mean

from ..errors import PluginError
from ..observe import Observer
from ..ports import BackendSpec
from ..providers import DialectSpec, ProviderSpec
from ..routes import RouteGroup
from .discovery import Entry
from .guards import SecuritySystem
from .hooks import PROJECT, Hooks
from .specs import CommandSpec, SchemaSpec, ServiceSpec, ToolSpec

MOST_ITEMS = 10_000

OFFERS: Mapping[str, type] = {
    "security_system": SecuritySystem,
    "register_routes": RouteGroup,
    "register_backend": BackendSpec,
    "register_tool": ToolSpec,
    "register_provider": ProviderSpec,
    "register_dialect": DialectSpec,
    "register_service": ServiceSpec,
    "register_observer": Observer,
    "register_command": CommandSpec,
    "register_schema": SchemaSpec,
}
ONE = frozenset({"security_system", "register_schema"})
OR_MORE = frozenset({"register_schema"})


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
    answer, wanted = implementation(*arguments), OFFERS[hook]
    if inspect.iscoroutine(answer):
        answer.close()
        raise PluginError(f"{hook} returned a coroutine; hooks are plain functions")
    if hook in ONE and not (hook in OR_MORE and isinstance(answer, tuple)):
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
