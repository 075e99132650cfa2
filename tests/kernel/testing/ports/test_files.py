"""The contract of files holds for those in memory, and finds who breaks it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath
from threading import Event
from typing import Any

import pytest
from agenthost import Files, Guard, Guards, NotFound, PathCase
from agenthost.testing import FilesContract, MemoryFiles, OpenFiles
from agenthost.testing.ports.memory_files import Kept, MemoryWorkspace

from .finding import finds, names_in, names_of


class TestFilesInMemory(FilesContract):
    """They keep every promise."""

    @pytest.fixture
    def opened(self) -> OpenFiles:
        kept: Kept = {}
        return lambda guards: MemoryFiles(guards, kept)


class Strips(MemoryWorkspace):
    def write(self, path: str, data: bytes) -> None:
        super().write(path, data.strip())


class TidiesNames(MemoryWorkspace):
    def _checked(self, path: str, *, write: bool) -> PurePosixPath:
        return super()._checked(path.strip("-*."), write=write)


class WritesOver(MemoryWorkspace):
    def write(self, path: str, data: bytes) -> None:
        place = PurePosixPath(path)
        old = self._kept.get(place, b"")
        super().write(path, data)
        self._kept[place] = data + old[len(data) :]


class ForgetsAtTheEnd(MemoryFiles):
    def __init__(self, guards: Guards, kept: Kept) -> None:
        super().__init__(guards, {})


class ReadsOneMore(MemoryWorkspace):
    def read(self, path: str, limit: int) -> bytes:
        return super().read(path, limit + 1)


class CutsAtTheLimit(MemoryWorkspace):
    def read(self, path: str, limit: int) -> bytes:
        return super().read(path, limit * 1_000_000)[:limit]


class InTheOrderTheyCame(MemoryWorkspace):
    def list(self, path: str = ".") -> list[str]:
        return sorted(super().list(path), reverse=True)


class NamesNoFolder(MemoryWorkspace):
    def list(self, path: str = ".") -> list[str]:
        return [name.rstrip("/") for name in super().list(path)]


class MustBeMade(MemoryWorkspace):
    def list(self, path: str = ".") -> list[str]:
        if not self._kept:
            raise NotFound("folder", path)
        return super().list(path)


class EmptyForMissing(MemoryWorkspace):
    def read(self, path: str, limit: int) -> bytes:
        try:
            return super().read(path, limit)
        except NotFound:
            return b""


class FilesBelowFiles(MemoryWorkspace):
    def write(self, path: str, data: bytes) -> None:
        self._kept[self._checked(path, write=True)] = data


class OneForAll(MemoryFiles):
    def workspace(self, agent_id: str, context: Any = None) -> MemoryWorkspace:
        super().workspace(agent_id)
        return MemoryWorkspace(self, "all", context)


class FollowsDots(MemoryWorkspace):
    def write(self, path: str, data: bytes) -> None:
        head, out, rest = path.partition("../")
        if head or not out:
            super().write(path, data)
            return
        agent, _, name = rest.partition("/")
        MemoryWorkspace(self._all, agent, None).write(name, data)


class TakesAnyId(MemoryFiles):
    def workspace(self, agent_id: str, context: Any = None) -> MemoryWorkspace:
        return MemoryWorkspace(self, agent_id, context)


class BreaksOnLong(MemoryWorkspace):
    def _checked(self, path: str, *, write: bool) -> PurePosixPath:
        if len(path) > 4_096:
            raise OSError(36, "File name too long")
        return super()._checked(path, write=write)


class AsksAfterwards(MemoryWorkspace):
    def write(self, path: str, data: bytes) -> None:
        self._kept[PurePosixPath(path)] = data
        super().write(path, data)


class SaysItReads(MemoryWorkspace):
    def _checked(self, path: str, *, write: bool) -> PurePosixPath:
        return super()._checked(path, write=False)


class TellsNoContext(MemoryFiles):
    def workspace(self, agent_id: str, context: Any = None) -> MemoryWorkspace:
        return super().workspace(agent_id)


class AsksForWritesAlone(MemoryWorkspace):
    def _checked(self, path: str, *, write: bool) -> PurePosixPath:
        if not write:
            return PurePosixPath(path)
        return super()._checked(path, write=write)


class RefusesAllOnceRefused(MemoryWorkspace):
    def _checked(self, path: str, *, write: bool) -> PurePosixPath:
        guards = self._all.guards
        guards.check(Guard.PATH, PathCase(PurePosixPath(path), not write))
        return super()._checked(path, write=write)


class RemovesTheTop(MemoryWorkspace):
    def remove(self) -> None:
        for place in [file for file in self._kept if len(file.parts) == 1]:
            del self._kept[place]


class RemovesOnce(MemoryWorkspace):
    def remove(self) -> None:
        del self._all.kept[self._agent_id]


class LosesOthers(MemoryWorkspace):
    def write(self, path: str, data: bytes) -> None:
        before = dict(self._kept)
        time.sleep(0.0001)
        super().write(path, data)
        place = PurePosixPath(path)
        self._all.kept[self._agent_id] = {**before, place: data}


class WritesInPieces(MemoryWorkspace):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._looked = Event()

    def read(self, path: str, limit: int) -> bytes:
        data = super().read(path, limit)
        self._looked.set()
        return data

    def write(self, path: str, data: bytes) -> None:
        there = PurePosixPath(path) in self._kept
        super().write(path, data[: len(data) // 2])
        # The second look began after the first had ended: it finds the half.
        for _ in range(2 * there):
            self._looked.clear()
            self._looked.wait(5)
        super().write(path, data)


class LeavesScraps(MemoryWorkspace):
    def write(self, path: str, data: bytes) -> None:
        super().write(path, data)
        super().write(path + ".tmp", data)


HERE = TestFilesInMemory()
OUT = ("../grace/stolen",)
BREACHES: tuple[tuple[type, Any, tuple[object, ...]], ...] = (
    (Strips, HERE.test_a_file_comes_back_as_it_was_written, ()),
    (TidiesNames, HERE.test_names_are_kept_as_they_were_given, ()),
    (WritesOver, HERE.test_a_newer_content_takes_the_place_wholly, ()),
    (ForgetsAtTheEnd, HERE.test_what_was_written_is_there_for_the_next_process, ()),
    (ReadsOneMore, HERE.test_a_read_over_its_limit_is_refused, ()),
    (CutsAtTheLimit, HERE.test_a_read_over_its_limit_is_refused, ()),
    (InTheOrderTheyCame, HERE.test_names_come_sorted_with_a_slash_behind_folders, ()),
    (NamesNoFolder, HERE.test_names_come_sorted_with_a_slash_behind_folders, ()),
    (MustBeMade, HERE.test_a_new_workspace_is_empty, ()),
    (EmptyForMissing, HERE.test_what_is_not_there_is_told, ()),
    (FilesBelowFiles, HERE.test_a_folder_is_no_file_and_a_file_no_folder, ()),
    (OneForAll, HERE.test_each_agent_has_files_of_its_own, ()),
    (FollowsDots, HERE.test_a_path_that_leads_out_is_blocked, OUT),
    (TakesAnyId, HERE.test_an_id_that_is_no_name_is_refused, ("../ada",)),
    (BreaksOnLong, HERE.test_hostile_paths_are_answered_in_our_words, ()),
    (AsksAfterwards, HERE.test_a_guard_is_asked_before_anything_is_done, ()),
    (SaysItReads, HERE.test_a_guard_is_asked_before_anything_is_done, ()),
    (TellsNoContext, HERE.test_a_guard_is_asked_before_anything_is_done, ()),
    (AsksForWritesAlone, HERE.test_without_its_protection_nothing_is_opened, ()),
    (RefusesAllOnceRefused, HERE.test_a_guard_decides_for_each_path, ()),
    (RemovesTheTop, HERE.test_a_removed_workspace_is_empty, ()),
    (RemovesOnce, HERE.test_a_removed_workspace_is_empty, ()),
    (LosesOthers, HERE.test_writers_at_once_lose_nothing, ()),
    (WritesInPieces, HERE.test_a_reader_sees_one_content_or_the_other, ()),
    (LeavesScraps, HERE.test_a_reader_sees_one_content_or_the_other, ()),
)


def opening(broken: type) -> Callable[[Guards], Files]:
    """Open what is broken: all files, or one workspace."""
    kept: Kept = {}
    if issubclass(broken, MemoryFiles):
        return lambda guards: broken(guards, kept)

    class Broken(MemoryFiles):
        def workspace(self, agent_id: str, context: Any = None) -> Any:
            super().workspace(agent_id)
            return broken(self, agent_id, context)

    return partial(Broken, kept=kept)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test", "more"), BREACHES)
async def test_broken_files_are_found(
    broken: type, test: Any, more: tuple[object, ...]
) -> None:
    await finds(test, opening(broken), *more)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(FilesContract)
