"""Which kinds of event a plugin's ``on_event`` hears: what its annotation names."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import agenthost
from agenthost import Event, PluginError

Kinds = tuple[type[Event], ...]
ALL: Kinds = (Event,)


class _FrontDoor(dict[str, Any]):
    """The names of agenthost, for annotations whose imports are for type checkers."""

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(agenthost, name)
        except AttributeError:
            raise KeyError(name) from None


def kinds_of(function: Callable[..., object]) -> Kinds:
    """Read the kinds from the annotation; without one it hears all of them.

    Raises:
        PluginError: It names something that is no kind, or cannot be read.
    """
    function = inspect.unwrap(function)
    if "event" not in getattr(function, "__annotations__", {}):
        return ALL
    names = ChainMap(getattr(function, "__globals__", {}), _FrontDoor())
    try:
        wanted = get_type_hints(function, localns=names)["event"]
    except Exception as error:
        raise PluginError(
            f"on_event: its annotation cannot be read ({error}); import what it names"
        ) from error
    kinds = get_args(wanted) or (wanted,)
    if Any in kinds or object in kinds:
        return ALL
    for kind in kinds:
        if not (inspect.isclass(kind) and issubclass(kind, Event)):
            raise PluginError(
                f"on_event: {kind!r} is no kind of event; name Event or kinds of it"
            )
    return kinds
