"""From a command to the arguments of a process, or a refusal; nothing is run here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

from agenthost import Blocked, InvalidInput, Principal, Unavailable, authorize

from .settings import Mode, ShellSection

META = frozenset("`$;|<>{}&\n\r\0()*?[]~#!\\")
"""What a shell would act upon. Without one it would be passed on as it stands, which
is not what its author means: so it is refused."""

OFF = (
    "commands are off on this daemon; its operator can set mode under [shell] in "
    "config.toml"
)
KEPT = ("LANG", "LC_ALL", "TZ")
ORDER: tuple[Mode, ...] = ("deny", "allowlist", "full")


def allowed(daemon: Mode, *manifests: Mode) -> Mode:
    """Give the strictest of what the operator and what the manifests say.

    Raises:
        Unavailable: The daemon runs no commands.
        Blocked: The agent may run none.
    """
    if daemon == "deny":
        raise Unavailable(OFF)
    mode: Mode = min(daemon, *manifests, key=ORDER.index)
    if mode == "deny":
        raise Blocked("exec_policy in its manifest is deny: it may run no commands")
    return mode


def arguments(
    command: str, mode: Mode, principal: Principal, path: str
) -> tuple[str, ...]:
    """Give the arguments of the process that a command asks for, its program first.

    Raises:
        Refused: The agent has no right to the program.
        InvalidInput: It is no plain command, or its program is not there.
    """
    if "\0" in command or (mode == "allowlist" and not command.isprintable()):
        raise InvalidInput("command", "it must be one line of printable text")
    if mode == "full":
        # One that may name every program is the only one that gets a shell.
        authorize(principal, "shell", "*")
        return ("/bin/sh", "-c", command)
    words = _words(command)
    program = words[0]
    if "/" in program or program.startswith("-"):
        raise InvalidInput(
            "command", f"{program!r}: name a program without a path, such as git"
        )
    whole, grants = " ".join(words), principal.grants
    # A manifest names programs, as git, or commands, as "git log *".
    if grants is None or not grants.allow("shell", whole):
        authorize(principal, "shell", program)
    return (_found(program, path), *words[1:])


def environment(
    settings: ShellSection, environ: Mapping[str, str], home: str
) -> dict[str, str]:
    """Give the variables that a command sees: a few, and those the operator names."""
    named = {*KEPT, *settings.environment}
    kept = {name: value for name, value in environ.items() if name in named}
    own = {"PATH": settings.path, "HOME": home, "TERM": "dumb"}
    return {"LANG": "C.UTF-8", **kept, **own}


def _words(command: str) -> list[str]:
    if met := sorted(META.intersection(command)):
        raise InvalidInput(
            "command",
            f"{''.join(met)!r} means something to a shell, and there is none; "
            "send one plain command at a time",
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidInput("command", "a quote in it is not closed") from error
    if not words or not words[0]:
        raise InvalidInput("command", "it is empty")
    return words


def _found(program: str, path: str) -> str:
    # Only absolute folders: another would be looked for in the agent's own workspace.
    for folder in filter(os.path.isabs, path.split(":")):
        place = f"{folder}/{program}"
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    raise InvalidInput("command", f"there is no program {program!r} on this machine")
