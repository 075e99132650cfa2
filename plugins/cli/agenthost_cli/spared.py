"""What a start spares itself of what its dependencies do at their import."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_MAKER = "_create_fn"
"""What ``dataclasses`` compiles a method with, up to Python 3.12."""


def spare_imports() -> None:
    """Leave out what dependencies import for the sake of others."""
    # Otherwise pydantic would import whatever is installed as its plugin, enabled by
    # nobody, and read the metadata of every distribution to find it.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # To find none it would still import importlib.metadata, and all that brings.
    name = "pydantic.plugin._loader"
    vars(sys.modules.setdefault(name, ModuleType(name)))["get_plugins"] = tuple
    # The command line of httpx: where Rich is installed it costs four megabytes.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # reason: what stands as None is not importable


def spare_methods() -> None:
    """Have the methods of dataclasses compiled when they are first called.

    At their import pydantic, Hypercorn and others compile five hundred, of which a
    start calls a few: a tenth of its time. Who looks at the signature of such a class
    before the first of it is made sees none.
    """
    known = vars(dataclasses)
    # A newer Python, which does it otherwise, is left as it is.
    if _MAKER in known and not isinstance(known[_MAKER], _Late):
        known[_MAKER] = _Late(known[_MAKER])


class _Late:
    """Stands for ``dataclasses._create_fn``; what it makes asks that when called."""

    def __init__(self, make: Callable[..., Callable[..., Any]]) -> None:
        self._make = make

    def __call__(self, name: str, *told: Any, **named: Any) -> Callable[..., Any]:
        make = self._make

        def method(self: Any, /, *values: Any, **others: Any) -> Any:
            made = make(name, *told, **named)
            for each in type(self).__mro__:
                if vars(each).get(name) is method:
                    made.__qualname__ = method.__qualname__
                    setattr(each, name, made)
            return made(self, *values, **others)

        method.__name__ = name
        return method
