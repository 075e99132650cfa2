"""The served folder: ``capabilities/`` in the home, read again when it changes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agenthost import Clock, Conflict, Host

from .config import DesktopSection
from .terms import Mode

if TYPE_CHECKING:
    from .policy import Policy
    from .tables import Tables

FOLDER = "capabilities"
CHECK_EVERY = 0.2

Signature = tuple[tuple[str, int, int, int], ...]


class ServedFolder:
    """The policy of a folder, as fresh as its files.

    A folder that cannot be used decides nothing: whoever asks is told what to mend.
    """

    def __init__(self, folder: Path, clock: Clock, mode: Mode) -> None:
        self._folder = folder
        self._clock = clock
        self._mode = mode
        # Of several that ask at once one reads the folder; the others get what it
        # found.
        self._lock = asyncio.Lock()
        self._checked = float("-inf")
        self._signature: Signature | None = None
        self._tables: Tables | None = None
        self._policy: Policy | None = None
        self._problem = ""

    async def policy(self) -> Policy:
        """The policy of what the folder holds now.

        Raises:
            Conflict: A file of the folder cannot be used.
        """
        await self._fresh()
        if self._policy is None:
            raise self._conflict()
        return self._policy

    async def tables(self) -> Tables:
        """The permission tables, the folder's own manifests among them.

        Raises:
            Conflict: A manifest of the folder cannot be used.
        """
        await self._fresh()
        if self._tables is None:
            raise self._conflict()
        return self._tables

    async def _fresh(self) -> None:
        async with self._lock:
            now = self._clock.monotonic()
            if now - self._checked >= CHECK_EVERY:
                await asyncio.to_thread(self._refresh)
                self._checked = now

    def _refresh(self) -> None:
        from .findings import CapabilityError
        from .policy import load_policy, load_tables

        signature = signature_of(self._folder)
        if signature == self._signature:
            return
        self._tables = self._policy = None
        try:
            self._tables = load_tables(self._folder)
            self._policy = load_policy(self._folder, self._tables, self._mode)
        except CapabilityError as error:
            self._problem = error.message
        self._signature = signature

    def _conflict(self) -> Conflict:
        return Conflict(f"the folder {FOLDER}/ cannot be used: {self._problem}")


def signature_of(folder: Path) -> Signature:
    """What tells whether a folder's files have changed."""
    found = []
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            try:
                facts = os.stat(path)
            except OSError:
                continue
            found.append((path, facts.st_ino, facts.st_mtime_ns, facts.st_size))
    return tuple(sorted(found))


class ServedFolders:
    """The served folder of each daemon that asks; a route group has one of these."""

    def __init__(self) -> None:
        self._of: dict[Path, ServedFolder] = {}

    def of(self, host: Host) -> ServedFolder:
        """The folder of a daemon."""
        folder = host.home / FOLDER
        if folder not in self._of:
            mode = Mode(host.settings(DesktopSection).mode)
            self._of[folder] = ServedFolder(folder, host.clock, mode)
        return self._of[folder]
