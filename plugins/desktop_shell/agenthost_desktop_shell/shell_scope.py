"""Scope entries of the shell: which programs may run, with which arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .checks import Spot
from .findings import Json
from .validators import compile_validator

SHELL = "shell"
OPENABLE = r"^((mailto:\w+)|(tel:\w+)|(https?://\w+)).+"

_COMMAND = frozenset({"name", "cmd", "args"})
_SIDECAR = frozenset({"name", "sidecar", "args"})
_VALIDATOR = frozenset({"validator", "raw"})


@dataclass(frozen=True, slots=True)
class Validator:
    """An argument that may be anything its expression accepts."""

    source: str
    raw: bool = False

    def accepts(self, argument: str) -> bool:
        """Tell whether the argument passes: wholly, or anywhere when ``raw``."""
        pattern = compile_validator(self.source, raw=self.raw)
        return pattern.search(argument) is not None


@dataclass(frozen=True, slots=True)
class ShellEntry:
    """A program: ``args`` True allows any arguments, a tuple allows its positions."""

    name: str
    cmd: str = ""
    sidecar: bool = False
    args: bool | tuple[str | Validator, ...] = False


class UnusableEntry(ValueError):
    """A scope entry that a lenient file may hold, and that allows nothing."""


def parse_entry(value: Json) -> ShellEntry:
    """Read a checked scope entry.

    Raises:
        UnusableEntry: The entry cannot be used: lenient files may hold such ones.
    """
    if not isinstance(value, Mapping):
        raise UnusableEntry("the scope entry is no object")
    name, cmd, args = value.get("name"), value.get("cmd", ""), value.get("args", False)
    if not isinstance(name, str) or not isinstance(cmd, str):
        raise UnusableEntry("the scope entry needs 'name' and 'cmd' as strings")
    sidecar = value.get("sidecar") is True
    return ShellEntry(name, cmd, sidecar, _arguments(args))


def _arguments(args: Json) -> bool | tuple[str | Validator, ...]:
    if args is None or isinstance(args, bool):
        return bool(args)
    if isinstance(args, str) or not isinstance(args, Sequence):
        raise UnusableEntry("'args' is neither true, false nor an array")
    return tuple(map(_argument, args))


def _argument(value: Json) -> str | Validator:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("validator"), str):
        return Validator(str(value["validator"]), raw=value.get("raw") is True)
    raise UnusableEntry("an item of 'args' is neither a string nor a validator")


def entry_name(value: Json) -> str | None:
    """The name of a scope entry, however little else it says."""
    name = value.get("name") if isinstance(value, Mapping) else None
    return name if isinstance(name, str) else None


def openable(path: str, opens: bool | str) -> bool:  # noqa: FBT001 - the app's setting
    """Tell whether ``shell:open`` takes a link.

    ``opens`` True is http, https, tel and mailto links, a text what it matches whole.
    """
    if isinstance(opens, bool):
        return opens and compile_validator(OPENABLE).search(path) is not None
    return compile_validator(opens).search(path) is not None


def check_entry(entry: Spot) -> None:
    """Note what is wrong with an item of ``allow`` or ``deny``."""
    if not isinstance(entry.value, Mapping):
        entry.fail("must be an object with 'name' and either 'cmd' or 'sidecar'")
        return
    if entry.has("name"):
        entry.at("name").text()
    else:
        entry.fail("has no 'name'; the webview calls the command by it")
    _check_form(entry)
    if entry.has("args"):
        _check_arguments(entry.at("args"))


def _check_form(entry: Spot) -> None:
    runs_sidecar = entry.at("sidecar").value is True
    if entry.has("cmd"):
        entry.at("cmd").text()
    elif not runs_sidecar:
        entry.fail("has no 'cmd'; name the program, or write 'sidecar': true")
    if entry.has("sidecar"):
        entry.at("sidecar").flag(default=False)
    allowed = _COMMAND if entry.has("cmd") else _SIDECAR
    _refuse_more(entry, allowed, "a shell entry")


def _refuse_more(spot: Spot, allowed: frozenset[str], owner: str) -> None:
    for key in spot.value if isinstance(spot.value, Mapping) else ():
        if key not in allowed:
            known = ", ".join(sorted(allowed))
            spot.at(key).fail(f"{owner} holds only {known}", strict_only=True)


def _check_arguments(args: Spot) -> None:
    if isinstance(args.value, bool):
        return
    if not isinstance(args.value, list):
        args.fail("must be true, false or an array", strict_only=True)
        return
    for item in args.items():
        if isinstance(item.value, Mapping):
            _check_validator(item)
        elif not isinstance(item.value, str):
            problem = "must be a string or an object with 'validator'"
            item.fail(problem, strict_only=True)


def _check_validator(item: Spot) -> None:
    raw = item.at("raw").flag(default=False) if item.has("raw") else False
    if item.has("validator"):
        item.at("validator").regex(raw=raw)
    else:
        item.fail("has no 'validator'; write a regular expression")
    _refuse_more(item, _VALIDATOR, "a validator")
