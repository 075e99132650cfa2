"""Check a plugin against the hooks, and what its hooks return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import pluggy
from agenthost_toml.suggest import did_you_mean

from ..errors import PluginError
from ..observe import Observer
from ..ports import BackendSpec
from ..providers import DialectSpec, ProviderSpec
from ..routes import RouteGroup
from .guards import SecuritySystem
from .hooks import PROJECT, Hooks
from .specs import CommandSpec, SchemaSpec, ServiceSpec, ToolSpec

MOST_ITEMS = 10_000

MANY: Mapping[str, type] = {
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
ONE: Mapping[str, type] = {"security_system": SecuritySystem}
ONE_OR_MORE = frozenset({"register_schema"})

Implementation = Callable[..., Any]


def hooks_of(plugin: object) -> dict[str, Implementation]:
    """Find a plugin's implementations by hook, each called with the spec's arguments.

    Raises:
        PluginError: It is a class, misspells a hook, wraps one, or has an async one.
        pluggy.PluginValidationError: An implementation has arguments the hook has not.
    """
    if inspect.isclass(plugin):
        raise PluginError("is a class; offer a module or an instance")
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    manager.register(plugin)
    found: dict[str, Implementation] = {}
    for caller in manager.get_hookcallers(plugin) or ():
        found |= _checked(caller)
    _refuse_unmarked(plugin, found)
    return found


def _checked(caller: pluggy.HookCaller) -> dict[str, Implementation]:
    (implementation,) = caller.get_hookimpls()
    if implementation.hookwrapper or implementation.wrapper:
        raise PluginError(f"{caller.name} is a wrapper; hooks cannot be wrapped")
    if not caller.has_spec():
        if implementation.optionalhook:
            return {}
        hint = did_you_mean(caller.name, hook_names())
        raise PluginError(f"{caller.name} is not a hook{hint}")
    if inspect.iscoroutinefunction(implementation.function):
        raise PluginError(f"{caller.name} is async; hooks are plain functions")
    return {caller.name: _by_position(caller, implementation)}


def _by_position(
    caller: pluggy.HookCaller, implementation: pluggy.HookImpl
) -> Implementation:
    names = caller.spec.argnames if caller.spec else ()

    def call(*arguments: object) -> Any:
        given = dict(zip(names, arguments, strict=True))
        return implementation.function(*(given[n] for n in implementation.argnames))

    return call


def _refuse_unmarked(plugin: object, found: Mapping[str, Implementation]) -> None:
    for name in hook_names():
        if name not in found and inspect.isroutine(getattr(plugin, name, None)):
            raise PluginError(f"{name} is not marked; put @hookimpl above it")


def hook_names() -> tuple[str, ...]:
    """The names of all hooks."""
    return tuple(name for name in vars(Hooks) if not name.startswith("_"))


def items_of(hook: str, answer: object) -> list[Any]:
    """Take what a hook returned apart into items of the right type.

    Raises:
        PluginError: It is a coroutine or of a wrong type.
    """
    if inspect.iscoroutine(answer):
        answer.close()
        raise PluginError(f"{hook} returned a coroutine; hooks are plain functions")
    if hook in ONE:
        return _typed(hook, [] if answer is None else [answer], ONE[hook])
    if hook in ONE_OR_MORE and not isinstance(answer, tuple):
        answer = () if answer is None else (answer,)
    if not isinstance(answer, Iterable) or isinstance(answer, str | bytes | Mapping):
        raise PluginError(
            f"{hook} returned {type(answer).__name__}; it must return an iterable of "
            f"{MANY[hook].__name__}"
        )
    items = list(islice(answer, MOST_ITEMS + 1))
    if len(items) > MOST_ITEMS:
        raise PluginError(f"{hook} offers more than {MOST_ITEMS} items")
    return _typed(hook, items, MANY[hook])


def _typed(hook: str, items: list[Any], wanted: type) -> list[Any]:
    for item in items:
        if inspect.iscoroutine(item):
            item.close()
        if not isinstance(item, wanted):
            raise PluginError(
                f"{hook} offers {type(item).__name__}; it must offer {wanted.__name__}"
            )
    return items
