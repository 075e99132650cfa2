"""Files of agents: each agent has a folder of its own and reaches nothing beyond it.

Functions here block; call them through ``asyncio.to_thread``.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from agenthost import (
    AgentHostError,
    Blocked,
    Context,
    Denied,
    Guard,
    Guards,
    InvalidInput,
    NotFound,
    PathCase,
    StorageFull,
    TooLarge,
)

from .beneath import opener
from .room import Room

WORKSPACE_BYTES = 1024**3
"""What a workspace may hold where nothing else is said."""
_AGENT_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_TEMPORARY = ".agenthost-"
# What lies deeper could not be deleted again: that goes down a call for each folder.
_DEEPEST = 100
_WAYS_OUT = frozenset({errno.EXDEV, errno.ELOOP})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class LocalFiles:
    """The workspaces of all agents.

    Args:
        root: The folder that holds one folder for each agent.
        guards: Asked at the point ``path``; while it is closed nothing is opened.

    Attributes:
        room: What each of them may hold.
    """

    def __init__(self, root: Path, guards: Guards) -> None:
        self.root = root
        self.guards = guards
        self.room = Room(WORKSPACE_BYTES)

    def workspace(
        self, agent_id: str, context: Context | None = None
    ) -> LocalWorkspace:
        """Return the agent's workspace; its folder is made at the first use.

        Raises:
            InvalidInput: The id cannot be the name of a folder.
        """
        if not _AGENT_ID.fullmatch(agent_id):
            raise InvalidInput("agent_id", "it must be letters, digits, - and _")
        return LocalWorkspace(self, agent_id, context)


class LocalWorkspace:
    """One agent's folder; paths are relative to it, with ``/`` between the names."""

    def __init__(
        self, files: LocalFiles, agent_id: str, context: Context | None = None
    ) -> None:
        self._folder = files.root / agent_id
        self._guards = files.guards
        self._room = files.room
        self._context = context

    @property
    def folder(self) -> Path:
        """Where it is on disk, for what runs there; there may be none yet."""
        return self._folder

    def read(self, path: str, limit: int) -> bytes:
        """Return a file's content.

        Raises:
            NotFound: There is no such file.
            TooLarge: It holds more than ``limit`` bytes.
            Blocked: The path leads out of the workspace, or the file has other names.
            InvalidInput: It is a folder, a device or a pipe.
        """
        place = self._checked(path, write=False)
        # Without O_NONBLOCK opening a pipe would wait for its other end.
        flags = os.O_RDONLY | os.O_NONBLOCK
        with _told(place), self._root() as root, _opened(root, place, flags) as held:
            found = os.fstat(held)
            _regular(found.st_mode, place)
            if found.st_nlink > 1:
                # The other name may be anywhere, and nothing tells where.
                raise Blocked(f"{place} has another name too; put a copy in its place")
            with os.fdopen(held, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        if len(data) > limit:
            raise TooLarge(f"{place} is over the limit of {limit} bytes")
        return data

    def write(self, path: str, data: bytes) -> None:
        """Put a file in place whole or not at all, making the folders it needs.

        Raises:
            Blocked: The path leads out of the workspace, or names a link.
            InvalidInput: It names a folder, a device or a pipe.
            StorageFull: The disk has no room, or the workspace holds what it may.
        """
        place = self._checked(path, write=True)
        if not place.name:
            raise InvalidInput("path", "it names the workspace itself, not a file")
        with (
            _told(place),
            self._root() as root,
            _parent(root, place.parent) as parent,
        ):
            mode, size = _replaceable(parent, place)
            with self._room.taken_by(self._folder, len(data), size):
                _replace(parent, place.name, data, mode)

    def list(self, path: str = ".") -> list[str]:
        """Return the names in a folder, sorted, folders with ``/`` at the end.

        Raises:
            NotFound: There is no such folder.
            Blocked: The path leads out of the workspace.
            InvalidInput: It is not a folder.
        """
        place = self._checked(path, write=False)
        with (
            _told(place),
            self._root() as root,
            _opened(root, place, _FOLDER) as held,
            os.scandir(held) as entries,
        ):
            return sorted(_shown(entry) for entry in entries)

    def remove(self) -> None:
        """Delete the folder with everything in it; links go, their targets stay."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._folder)
        self._room.forget(self._folder)

    def _checked(self, path: str, *, write: bool) -> PurePosixPath:
        if "\0" in path:
            raise InvalidInput("path", "it contains a null character")
        if not _can_be_named(path):
            raise InvalidInput("path", "it contains half a character")
        place = PurePosixPath(path)
        if len(place.parts) > _DEEPEST:
            raise InvalidInput("path", f"it has more than {_DEEPEST} parts")
        self._guards.check(Guard.PATH, PathCase(place, write, self._context))
        return place

    @contextmanager
    def _root(self) -> Iterator[int]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = os.open(self._folder, _FOLDER | os.O_NOFOLLOW)
        try:
            yield held
        finally:
            os.close(held)


def _can_be_named(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _opened(root: int, place: PurePosixPath, flags: int) -> Iterator[int]:
    held = opener()(root, place, flags)
    try:
        yield held
    finally:
        os.close(held)


@contextmanager
def _parent(root: int, folder: PurePosixPath) -> Iterator[int]:
    """Open the folder, making each missing part of it inside the one before."""
    held = os.dup(root)
    try:
        for part in range(1, len(folder.parts) + 1):
            place = PurePosixPath(*folder.parts[:part])
            try:
                deeper = opener()(root, place, _FOLDER)
            except FileNotFoundError:
                with suppress(FileExistsError):
                    os.mkdir(place.name, 0o700, dir_fd=held)
                deeper = opener()(root, place, _FOLDER)
            os.close(held)
            held = deeper
        yield held
    finally:
        os.close(held)


def _replaceable(parent: int, place: PurePosixPath) -> tuple[int, int | None]:
    """Return mode and size of the file that stands there; no size: it is a new one."""
    try:
        found = os.stat(place.name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return 0o600, None
    if stat.S_ISLNK(found.st_mode):
        raise Blocked(f"{place} is a link; write to the file it stands for")
    _regular(found.st_mode, place)
    return stat.S_IMODE(found.st_mode) & 0o777, found.st_size


def _replace(parent: int, name: str, data: bytes, mode: int) -> None:
    temporary = _TEMPORARY + secrets.token_hex(8)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        held = os.open(temporary, flags, mode, dir_fd=parent)
        with os.fdopen(held, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(held)
        # By the folder's descriptor: a link that is put in the path meanwhile leads
        # nowhere.
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise
    # The new name is on disk only once its folder is.
    os.fsync(parent)


def _regular(mode: int, place: PurePosixPath) -> None:
    if stat.S_ISDIR(mode):
        raise InvalidInput("path", f"{place} is a folder")
    if not stat.S_ISREG(mode):
        raise InvalidInput("path", f"{place} is not a regular file")


def _shown(entry: os.DirEntry[str]) -> str:
    return entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name


@contextmanager
def _told(place: PurePosixPath) -> Iterator[None]:
    """Turn what the system refuses into what the caller can act on."""
    try:
        yield
    except OSError as error:
        raise _refusal(error, place) from error


def _refusal(error: OSError, place: PurePosixPath) -> AgentHostError:
    code = error.errno or 0
    if code in _WAYS_OUT:
        return Blocked(f"{place} leaves the workspace; use a path inside it")
    if code == errno.ENOENT:
        return NotFound("file", str(place))
    if code in _FULL:
        return StorageFull("the disk has no room for the file")
    if code in _FORBIDDEN:
        return Denied(f"{place} may not be opened")
    reasons = {
        errno.ENOTDIR: "is not a folder, or lies below something that is none",
        errno.EISDIR: "is a folder",
        errno.ENAMETOOLONG: "has a name that is too long",
        errno.ENXIO: "is not a regular file",
    }
    return InvalidInput("path", f"{place} {reasons.get(code, 'cannot be opened')}")
