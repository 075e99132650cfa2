"""Base-directory variables of ``cmd``: where ``$HOME`` and its kin are, by platform."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any

RESOURCE = "RESOURCE"


@lru_cache(maxsize=1)
def _facts() -> dict[str, Any]:
    text = (files(__package__) / "data" / "folders.toml").read_text("utf-8")
    return tomllib.loads(text)


def variables() -> frozenset[str]:
    """The names of all variables, without their dollar."""
    facts = _facts()
    others = {RESOURCE, "HOME", "TEMP", "RUNTIME"}
    return frozenset({*facts["names"], *facts["application"], *others})


@dataclass(frozen=True)
class Folders:
    """The folders of one user on one platform.

    Args:
        platform: The target, as capability files name it.
        application: The application's identifier, for ``$APPDATA`` and its kin.
        resource: The application's resource folder, for ``$RESOURCE``.
        environment: Environment variables; Linux and macOS use the process's own for
            what platformdirs looks up.
    """

    platform: str
    application: str = ""
    resource: str = ""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _known: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def expand(self, cmd: str) -> str:
        """Replace the variable that a command starts with.

        What cannot be parsed (an unknown variable, a path through ``..``) stays as it
        is written.

        Raises:
            ValueError: The platform lacks the variable, or it needs something that
                was not given; the message names the variable.
        """
        if not cmd.startswith("$"):
            return cmd
        known = self._known.get(cmd)
        if known is None:
            known = self._known[cmd] = self._expand(cmd)
        return known

    def folder(self, variable: str) -> str:
        """The folder of one variable, given without its dollar.

        Raises:
            ValueError: The platform lacks it, or it needs something not given.
        """
        facts = _facts()
        if variable == RESOURCE:
            return self._given(variable, self.resource, "resource folder")
        if variable in facts["application"]:
            base = self.folder(facts["application"][variable])
            name = self._given(variable, self.application, "application identifier")
            return str(self._path(base) / name)
        if variable in facts["lacking"].get(self.platform, ()):
            raise ValueError(f"${variable}: {self.platform} has no such folder")
        finders: Mapping[str, Callable[[str], str]] = {
            "linux": self._unix,
            "macOS": self._unix,
            "windows": self._windows,
        }
        if self.platform not in finders:
            raise ValueError(
                f"${variable}: {self.platform} tells its folders to the application "
                "only, when it runs"
            )
        return finders[self.platform](variable)

    def _expand(self, cmd: str) -> str:
        separators = "/\\" if self.platform == "windows" else "/"
        end = min((at for at in map(cmd.find, separators) if at >= 0), default=len(cmd))
        variable, rest = cmd[1:end], self._path(cmd[end:].lstrip(separators))
        if variable not in variables() or ".." in rest.parts:
            return cmd
        return str(self._path(self.folder(variable)) / rest)

    def _path(self, text: str) -> PurePath:
        if self.platform == "windows":
            return PureWindowsPath(text)
        return PurePosixPath(text)

    def _given(self, variable: str, value: str, what: str) -> str:
        if not value:
            raise ValueError(f"${variable} needs the {what}, which was not given")
        return value

    def _needed(self, variable: str, *names: str) -> str:
        for name in names:
            if self.environment.get(name):
                return self.environment[name]
        raise ValueError(f"${variable} needs {' or '.join(names)}, which is not set")

    def _unix(self, variable: str) -> str:
        if variable == "HOME":
            return self._needed(variable, "HOME")
        if variable == "TEMP":
            return self.environment.get("TMPDIR") or tempfile.gettempdir()
        if variable == "RUNTIME":
            return self._needed(variable, "XDG_RUNTIME_DIR")
        name = _facts()["names"][variable]
        return str(getattr(_platform_folders(self.platform), name))

    def _windows(self, variable: str) -> str:
        source, *parts = _facts()["windows"][variable]
        base = PureWindowsPath(self._needed(variable, source))
        return str(base.joinpath(*parts))


def _platform_folders(platform: str) -> object:
    if platform == "macOS":
        from platformdirs.macos import MacOS

        return MacOS()
    from platformdirs.unix import Unix

    return Unix()
