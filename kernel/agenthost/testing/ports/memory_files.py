"""Workspaces in memory, for tests of what uses them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from threading import Lock

from ...context import Context
from ...errors import Blocked, InvalidInput, NotFound, TooLarge
from ...plugins.guards import Guards
from ...plugins.points import Guard, PathCase

Kept = dict[str, dict[PurePosixPath, bytes]]
"""Files by path, by agent."""

_AGENT_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
_HERE = PurePosixPath()


class MemoryFiles:
    """The workspaces of all agents; a folder is there while something is in it.

    Args:
        guards: Asked at the point ``path``.
        kept: What is there already; what is written goes there, too, as to a disk.
    """

    def __init__(self, guards: Guards, kept: Kept | None = None) -> None:
        self.guards = guards
        self.kept: Kept = {} if kept is None else kept
        self.lock = Lock()

    def workspace(
        self, agent_id: str, context: Context | None = None
    ) -> MemoryWorkspace:
        """Return the agent's workspace.

        Raises:
            InvalidInput: The id cannot be the name of a folder.
        """
        if not _AGENT_ID.fullmatch(agent_id):
            raise InvalidInput("agent_id", "it must be letters, digits, - and _")
        return MemoryWorkspace(self, agent_id, context)


class MemoryWorkspace:
    """One agent's files; paths never lead out, whatever they name."""

    def __init__(
        self, files: MemoryFiles, agent_id: str, context: Context | None
    ) -> None:
        self._all = files
        self._agent_id = agent_id
        self._context = context

    @property
    def _kept(self) -> dict[PurePosixPath, bytes]:
        return self._all.kept.setdefault(self._agent_id, {})

    def read(self, path: str, limit: int) -> bytes:
        """Read a file of at most ``limit`` bytes."""
        place = self._checked(path, write=False)
        with self._all.lock:
            data = self._kept.get(place)
            folder = place == _HERE or place in self._folders()
        if folder:
            raise InvalidInput("path", f"{place} is a folder")
        if data is None:
            raise NotFound("file", str(place))
        if len(data) > limit:
            raise TooLarge(f"{place} is over the limit of {limit} bytes")
        return data

    def write(self, path: str, data: bytes) -> None:
        """Write a file."""
        place = self._checked(path, write=True)
        with self._all.lock:
            if place == _HERE or place in self._folders():
                raise InvalidInput("path", f"{place} is a folder")
            if any(above in self._kept for above in place.parents):
                raise InvalidInput("path", f"{place} lies below a file")
            self._kept[place] = bytes(data)

    def list(self, path: str = ".") -> list[str]:
        """Name what is in a folder, sorted; folders end with a slash."""
        place = self._checked(path, write=False)
        with self._all.lock:
            if place in self._kept:
                raise InvalidInput("path", f"{place} is not a folder")
            folders = self._folders()
            if place != _HERE and place not in folders:
                raise NotFound("file", str(place))
            names = {f.name + "/" for f in folders if f.parent == place}
            names |= {file.name for file in self._kept if file.parent == place}
        return sorted(names)

    def remove(self) -> None:
        """Delete everything."""
        with self._all.lock:
            self._all.kept.pop(self._agent_id, None)

    def _folders(self) -> set[PurePosixPath]:
        above = {folder for file in self._kept for folder in file.parents}
        return above - {_HERE}

    def _checked(self, path: str, *, write: bool) -> PurePosixPath:
        if "\0" in path or len(path) > 4_096:
            raise InvalidInput("path", "it can be no name")
        place = PurePosixPath(path)
        self._all.guards.check(Guard.PATH, PathCase(place, write, self._context))
        if place.is_absolute() or ".." in place.parts:
            raise Blocked(f"{place} leaves the workspace; use a path inside it")
        return place
