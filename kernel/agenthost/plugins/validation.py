"""Check a plugin against the hooks, and what its hooks return."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import pluggy
from agenthost_toml.suggest import did_you_mean

from ..embedders import EmbedderSpec
from ..errors import PluginError
from ..host import Authenticator
from ..manifest_table import ManifestTable
from ..observe import Observer
from ..ports.backend import Backend
from ..providers import DialectSpec, ProviderSpec
from ..routes import Mountable, RouteGroup
from . import specs
from .calls import Implementation
from .discovery import Entry
from .guards import SecuritySystem
from .hooks import Hooks
from .marks import API_VERSION, PROJECT
from .points import GuardPoint
from .sources import ToolSource

MOST_ITEMS = 10_000
REMEDY = "install the version of it, or of agenthost, that fits"

MARK = f"{PROJECT}_impl"
_PARAMETER = re.compile(r"<[^>]*>")


def _by(kind: str) -> Callable[[Any], Iterable[str]]:
    return lambda offer: [f"{kind} {offer.name}"]


def _served(group: Mountable) -> list[str]:
    if not isinstance(group, RouteGroup):
        return [f"group {group.name}"]
    paths = [f"route {route.method} {route.path}" for route in group.routes]
    paths += [f"socket {socket.path}" for socket in group.sockets]
    # A path is the same whatever its parameters are called.
    return [_PARAMETER.sub("<>", path) for path in paths]


class Offers(NamedTuple):
    """A row of the hook table.

    ``type`` is what the hook offers, ``names`` gives the names that one of it takes,
    each after its kind, and ``asked`` says when, for what is asked by itself: ``first``
    or ``last`` at the boot, or by the ``command line``. A hook with ``one`` is answered
    by one or None, where ``or_more`` also by a tuple.
    """

    type: type
    names: Callable[[Any], Iterable[str]] = lambda _: ()
    asked: str = ""
    one: bool = False
    or_more: bool = False


OFFERS: Mapping[str, Offers] = {
    "security_system": Offers(SecuritySystem, _by("securitysystem"), "first", one=True),
    "register_guard_point": Offers(GuardPoint, _by("guard point")),
    "register_config": Offers(specs.ConfigSection, _by("section")),
    "register_backend": Offers(Backend, lambda o: [f"backend {o.port} {o.name}"]),
    "register_schema": Offers(specs.SchemaSpec, _by("schema"), one=True, or_more=True),
    "register_manifest": Offers(ManifestTable, lambda o: o.names),
    "register_dialect": Offers(DialectSpec, _by("dialect")),
    "register_embedder": Offers(EmbedderSpec, _by("embedder")),
    "register_provider": Offers(ProviderSpec, lambda o: [f"provider {o.facts.slug}"]),
    "register_tool": Offers(
        specs.ToolSpec, lambda o: [f"tool {name}" for name in o.names]
    ),
    "register_tool_source": Offers(ToolSource, _by("toolsource")),
    "register_service": Offers(specs.ServiceSpec, _by("service")),
    "register_observer": Offers(Observer),
    "register_authenticator": Offers(Authenticator),
    "register_routes": Offers(Mountable, _served, "last"),
    "register_command": Offers(specs.CommandSpec, asked="command line"),
    "register_chat_command": Offers(specs.ChatCommand, _by("chatcommand")),
    "register_card": Offers(specs.Card, _by("card")),
    "register_delivery": Offers(specs.DeliverySpec, _by("delivery")),
    "register_channel": Offers(specs.ChannelSpec, _by("channel")),
}


class _Manager(pluggy.PluginManager):
    """Looks only at what is marked: most names of a module are imports and classes."""

    def parse_hookimpl_opts(
        self, plugin: object, name: str
    ) -> pluggy.HookimplOpts | None:
        """Find what marks an implementation, if this is one."""
        passed = inspect.ismodule(plugin) and not hasattr(vars(plugin).get(name), MARK)
        return None if passed else super().parse_hookimpl_opts(plugin, name)


def known_hooks() -> pluggy.PluginManager:
    """Make what plugins are checked against; once for all, since that takes a while."""
    manager = _Manager(PROJECT)
    manager.add_hookspecs(Hooks)
    return manager


def hooks_of(entry: Entry, manager: pluggy.PluginManager) -> dict[str, Implementation]:
    """Import a plugin and find its implementations by hook.

    Args:
        entry: Its entry point.
        manager: What :func:`known_hooks` made; nothing stays in it.

    Raises:
        BaseException: Whatever its import raises.
        PluginError: It is a class, is written for other hooks, misspells a hook, wraps
            or orders one, or has an async one.
        pluggy.PluginValidationError: An implementation has arguments the hook has not.
    """
    plugin = entry.load()
    if inspect.isclass(plugin):
        raise PluginError("is a class; offer a module or an instance")
    wanted = str(getattr(plugin, "agenthost_api", API_VERSION))
    if wanted.partition(".")[0] != API_VERSION:
        raise PluginError(f"is made for hooks {wanted}, not {API_VERSION}; {REMEDY}")
    found: dict[str, Implementation] = {}
    # Two may have one name, and one may be offered twice: pluggy refuses both.
    manager.register(plugin, name=f"{id(entry)}")
    try:
        for caller in manager.get_hookcallers(plugin) or ():
            found |= _checked(caller, plugin)
    finally:
        manager.unregister(plugin)
    for name in hook_names():
        if name not in found and callable(getattr(plugin, name, None)):
            raise PluginError(f"{name} is not marked; put @hookimpl above it")
    return found


def _checked(caller: pluggy.HookCaller, plugin: object) -> dict[str, Implementation]:
    # A plugin whose import was given up may come late, while another is looked at.
    own = (each for each in caller.get_hookimpls() if each.plugin is plugin)
    implementation = next(own)
    if implementation.hookwrapper or implementation.wrapper:
        raise PluginError(f"{caller.name} is a wrapper; hooks cannot be wrapped")
    if implementation.tryfirst or implementation.trylast:
        raise PluginError(f"{caller.name}: tryfirst, trylast do nothing; remove them")
    if caller.spec is None:
        if implementation.optionalhook:
            return {}
        hint = did_you_mean(caller.name, hook_names())
        raise PluginError(f"{caller.name} is not a hook{hint}")
    if inspect.iscoroutinefunction(implementation.function):
        raise PluginError(f"{caller.name} is async; hooks are plain functions")
    given, takes = tuple(caller.spec.argnames), tuple(implementation.argnames)
    return {caller.name: Implementation(implementation.function, given, takes)}


@cache
def hook_names() -> tuple[str, ...]:
    """The names of all hooks, in the order of the source."""
    names = (name for each in reversed(Hooks.__mro__) for name in vars(each))
    return tuple(name for name in names if not name.startswith("_"))


def offered(hook: str, implementation: Implementation, *arguments: object) -> list[Any]:
    """Ask a plugin, and take its answer apart into items of the right type.

    Raises:
        PluginError: The answer is a coroutine or of a wrong type.
        BaseException: Whatever the implementation raises.
    """
    answer, row = implementation(*arguments), OFFERS[hook]
    wanted = row.type
    if inspect.iscoroutine(answer):
        answer.close()
        raise PluginError(f"{hook} returned a coroutine; hooks are plain functions")
    if row.one and not (row.or_more and isinstance(answer, tuple)):
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
