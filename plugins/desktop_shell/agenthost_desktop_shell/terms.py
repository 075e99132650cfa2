"""The words of capability files and of who calls: all that taking a request needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, get_args

Target = Literal["macOS", "windows", "linux", "android", "iOS"]
PLATFORMS: tuple[str, ...] = get_args(Target)
LOCAL = "local"
MANIFESTS = "manifests"
"""The folder of a project's own permission tables."""

EXECUTE = "shell:execute"
SPAWN = "shell:spawn"
RUNS = frozenset({EXECUTE, SPAWN})
OPEN = "shell:open"


class Mode(StrEnum):
    """Strict is the JSON Schema; lenient is what the reference runtime loads."""

    STRICT = "strict"
    LENIENT = "lenient"


class Caller(NamedTuple):
    """Who calls: a window's and webview's label, and where the content is from.

    ``webview`` None is the window's own webview, which has the window's label;
    ``origin`` is ``local`` or the URL of the page.
    """

    window: str
    webview: str | None = None
    origin: str = LOCAL


class ShellCall(NamedTuple):
    """A program by its scope name, and the arguments of the call.

    ``args`` may be a single string, which only a scope with ``args: true`` takes.
    """

    name: str
    args: Sequence[str] | str = ()
    command: str = EXECUTE
    sidecar: bool = False


def host_platform() -> Target:
    """This machine's platform, as capability files name it."""
    known: dict[str, Target] = {"darwin": "macOS", "win32": "windows"}
    return known.get(sys.platform, "linux")
