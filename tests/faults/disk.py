"""The shim of ``disk_shim.c`` from the side of a test: what was written, what fails."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "disk_shim.c"
HEAD = struct.Struct("<cQQQ")
SECTOR = 512


class DiskFault(IntEnum):
    """What is wrong with the disk."""

    NONE = 0
    FULL = 1
    SYNC_FAILS = 2
    WRITE_FAILS = 3
    READ_ONLY = 4
    SLOW_SYNC = 5


def compiled(folder: Path) -> Path:
    """Compile the shim, or skip the test where nobody can."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler named cc")
    shim = folder / "disk_shim.so"
    flags = ("-O1", "-Wall", "-Werror", "-shared", "-fPIC")
    argv = [compiler, *flags, "-o", str(shim), str(SOURCE), "-pthread"]
    subprocess.run(argv, check=True)
    return shim


class Disk:
    """The disk below one folder."""

    def __init__(self, shim: Path, folder: Path, root: Path) -> None:
        self.root = root
        self._log = folder / "disk.log"
        self._control = folder / "disk.control"
        self.fails(DiskFault.NONE)
        self.environ = {
            "LD_PRELOAD": str(shim),
            "SHIM_ROOT": f"{root}/",
            "SHIM_LOG": str(self._log),
            "SHIM_CONTROL": str(self._control),
        }

    def fails(self, fault: DiskFault, milliseconds: int = 0, wrong: int = 0) -> None:
        """Let it fail from now on; the clock beside it is so many seconds wrong."""
        # The daemon has the file mapped: it must stay the same one, of the same length.
        with self._control.open("r+b" if self._control.exists() else "w+b") as file:
            file.write(struct.pack("<iii", fault, milliseconds, wrong))

    def heals(self) -> None:
        """Let it work again."""
        self.fails(DiskFault.NONE)

    @property
    def moment(self) -> int:
        """How much has happened; what is on disk now happened before."""
        return self._log.stat().st_size

    def changes(self) -> list[Change]:
        """Read everything that happened."""
        return list(_changes(self._log.read_bytes()))


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one file; ``moment`` is when it was over."""

    kind: str
    path: str
    offset: int
    data: bytes
    moment: int


def _changes(log: bytes) -> Iterator[Change]:
    at = 0
    # The daemon was killed, perhaps while it wrote the last record.
    while at + HEAD.size <= len(log):
        kind, named, offset, length = HEAD.unpack_from(log, at)
        start = at + HEAD.size
        at = start + named + length
        if at > len(log):
            return
        path = log[start : start + named].decode()
        yield Change(kind.decode(), path, offset, log[start + named : at], at)


@dataclass
class _File:
    """What is surely on disk, and what may be."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.synced, change)
        self.pending.clear()

    def after_cut(self, chance: random.Random, keep: float, *, torn: bool) -> bytes:
        content = bytearray(self.synced)
        for change in self.pending:
            if chance.random() >= keep:
                continue
            for part in _sectors(change, chance) if torn else (change,):
                _apply(content, part)
        return bytes(content)


def _apply(content: bytearray, change: Change) -> None:
    if change.kind == "T":
        del content[change.offset :]
        content.extend(bytes(change.offset - len(content)))
        return
    end = change.offset + len(change.data)
    content.extend(bytes(max(0, end - len(content))))
    content[change.offset : end] = change.data


def _sectors(change: Change, chance: random.Random) -> Iterator[Change]:
    """Keep some of the sectors that a write touched."""
    if change.kind == "T":
        yield change
    for start in range(0, len(change.data), SECTOR):
        if chance.random() < 0.5:
            piece = change.data[start : start + SECTOR]
            yield Change("W", change.path, change.offset + start, piece, 0)


class PowerCut:
    """Plays changes again up to a moment at which the power fails."""

    def __init__(self, changes: list[Change], root: Path) -> None:
        self._changes = changes
        self._root = root
        self._files: dict[str, _File] = {}
        self._done = 0

    def go_to(self, number: int) -> int:
        """Let so many changes happen; later calls go on from there."""
        for change in self._changes[self._done : number]:
            self._happens(change)
        self._done = number
        return self._changes[number - 1].moment

    def leave(self, home: Path, chance: random.Random) -> None:
        """Write what the disk holds after a cut at this moment."""
        keep = chance.choice((0.0, 0.5, 0.9))
        torn = chance.random() < 0.5
        for path, file in self._files.items():
            target = home / Path(path).relative_to(self._root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.after_cut(chance, keep, torn=torn))

    def _happens(self, change: Change) -> None:
        match change.kind:
            case "R":
                moved = self._files.pop(change.path, _File())
                self._files[change.data.decode()] = moved
            case "U":
                self._files.pop(change.path, None)
            case "S":
                if change.path in self._files:
                    self._files[change.path].sync()
            case _:
                file = self._files.setdefault(change.path, _File())
                file.pending.append(change)
