"""A frozen, slotted dataclass whose methods are compiled when they are first called.

``@dataclass(frozen=True, slots=True)`` compiles six functions for each class, 0.3 ms at
import. A program that imports a hundred of them before it serves, and makes none of
them yet, waits for that at every start. The methods are still those of ``dataclasses``:
they are taken from a twin that is made of the same fields.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import (
    MISSING,
    FrozenInstanceError,
    dataclass,
    field,
    fields,
    make_dataclass,
)
from types import MemberDescriptorType
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")

_COMPILED = ("__init__", "__repr__", "__eq__", "__hash__")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_class(cls: type[T]) -> type[T]:
    """Make a class what ``@dataclass(frozen=True, slots=True)`` makes it.

    It may have no dataclass for a base; another dataclass may derive from it.

    Raises:
        TypeError: A base is a dataclass, or the fields are none of a dataclass.
    """
    made = _completed(dataclass(slots=True, init=False, repr=False, eq=False)(cls))
    for name, method in _FROZEN.items():
        setattr(made, name, method)
    # Who derives from it must be frozen as well, and is told so by dataclasses.
    made.__dataclass_params__.frozen = True  # type: ignore[attr-defined]  # reason: no stub has it
    return made


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def late_dataclass(cls: type[T]) -> type[T]:
    """Make a class what ``@dataclass(frozen=True)`` makes it; its bases may be such.

    Below one that has slots it has slots.
    """
    slots = bool(getattr(cls.__base__, "__slots__", ()))
    made = dataclass(frozen=True, slots=slots, init=False, repr=False, eq=False)
    return _completed(made(cls))


def _completed(made: type[T]) -> type[T]:
    for name in _COMPILED:
        if name not in vars(made):
            setattr(made, name, _late(made, name))
    return made


def _late(cls: type, name: str) -> Callable[..., Any]:
    def method(self: object, *values: object, **named: object) -> Any:
        _compile(cls, name)
        return getattr(cls, name)(self, *values, **named)

    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return method


def _compile(cls: type, name: str) -> None:
    """Write the method, or take it of a dataclass of the same fields."""
    if name == "__init__":
        setattr(cls, name, _init(cls))
        return
    # Copies: a dataclass writes what it found out into the fields it is made of.
    told = [(each.name, each.type, copy(each)) for each in fields(cls)]
    # Only the method that is asked for: most classes are made and never compared.
    shown = name == "__repr__"
    how: Any = {"init": False, "repr": shown, "eq": not shown, "frozen": True}
    twin = make_dataclass(cls.__name__, told, namespace={"__doc__": cls.__doc__}, **how)
    setattr(cls, name, vars(twin)[name])


def _init(cls: Any) -> Callable[..., None]:
    """Write ``__init__`` alone: for a frozen twin dataclasses compile two more."""
    known: dict[str, Any] = {"set__": object.__setattr__}
    heads, lines = ["self"], []
    for each in sorted(fields(cls), key=lambda each: bool(each.kw_only)):
        name, default = each.name, f"_{each.name}"
        value = name if each.init else default
        if each.default is not MISSING:
            known[default] = each.default
        elif each.default_factory is not MISSING:
            # The factory stands for itself where nothing is given.
            known[default] = each.default_factory
            value = f"{default}() if {value} is {default} else {value}"
        heads += ["*"] if each.kw_only and "*" not in heads else []
        heads += [f"{name}={default}" if default in known else name] * each.init
        if each.init or default in known:
            slot = getattr(cls, name, None)
            put = f"set__(self, {name!r}, {value})"
            # A slot that is set itself takes half the time: nothing is looked up.
            if isinstance(slot, MemberDescriptorType):
                known[f"{name}__"], put = slot.__set__, f"{name}__(self, {value})"
            lines.append(f" {put}")
    lines.append(" self.__post_init__()" if hasattr(cls, "__post_init__") else " pass")
    # Of a class's own fields: nothing from outside is compiled.
    exec("\n".join([f"def __init__({', '.join(heads)}):", *lines]), known)  # noqa: S102  # nosec B102
    return cast("Callable[..., None]", known["__init__"])


def _set(self: object, name: str, value: object) -> None:  # noqa: ARG001 - as Python calls it
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: object, name: str) -> None:  # noqa: ARG001 - likewise
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in fields(self)]


def _restore(self: Any, state: list[object]) -> None:
    for each, kept in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, kept)


# The last two are for copies and pickles, which would set attributes otherwise.
_FROZEN = {
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}
