"""What every backend of the port FILES promises, as tests to inherit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import PurePosixPath

import pytest

from ...context import OPERATOR, Context
from ...errors import AgentHostError, Blocked, InvalidInput, NotFound, TooLarge
from ...plugins.guards import Guards
from ...plugins.points import Guard, PathCase
from ...ports.files import Files, Workspace
from ..security import HOSTILE
from .asking import Asking

OpenFiles = Callable[[Guards], Files]
LIMIT = 1_000_000
CONTENTS = (b"", b"x", b"\0\r\n\n", bytes(range(256)), b"k" * LIMIT)
NAMES = ("plain", "two words", ".hidden", "ключ", "a.b.c", "-dash", "*", "a\nb")
WAYS_OUT = (
    "..",
    "../ada/kept",
    "../grace/stolen",
    "a/../../grace/stolen",
    "./../grace/stolen",
    "/etc/hostname",
    "//etc/hostname",
    "/",
)
IDS = ("", ".", "..", "/", "a/b", "../ada", "a\0b", "a b", "a" * 1_000, "\n")
AT_ONCE = 8
TIMES = 20


def space(opened: OpenFiles, agent: str = "ada") -> Workspace:
    """A workspace of files that no guard keeps anybody from."""
    return opened(Asking().guards).workspace(agent)


def attempts(workspace: Workspace, path: str) -> Iterator[Callable[[], object]]:
    """All that can be done with a path."""
    yield lambda: workspace.read(path, LIMIT)
    yield lambda: workspace.write(path, b"x")
    yield lambda: workspace.list(path)


class FilesContract:
    """The workspaces keep every promise of the port.

    A subclass overrides the fixture ``opened``: a function that opens the files with
    guards. What it opens the second time is what a next process finds.

    Example:
        ::

            class TestBucket(FilesContract):
                @pytest.fixture
                def opened(self, tmp_path: Path) -> OpenFiles:
                    return partial(open_bucket, tmp_path)
    """

    @pytest.fixture
    def opened(self) -> OpenFiles:
        """What opens the files."""
        pytest.fail("override the fixture `opened` with what opens the files")

    def test_a_file_comes_back_as_it_was_written(self, opened: OpenFiles) -> None:
        """Bytes of any kind, none at all, and many."""
        workspace = space(opened)
        for number, content in enumerate(CONTENTS):
            workspace.write(f"{number}", content)
        for number, content in enumerate(CONTENTS):
            assert workspace.read(f"{number}", LIMIT) == content

    def test_names_are_kept_as_they_were_given(self, opened: OpenFiles) -> None:
        """Of files and folders alike; nothing in them is a pattern."""
        workspace = space(opened)
        for name in NAMES:
            workspace.write(name, name.encode())
            workspace.write(f"below/{name}/{name}", name.encode())
        assert workspace.list() == sorted([*NAMES, "below/"])
        assert workspace.list("below") == sorted(f"{name}/" for name in NAMES)
        for name in NAMES:
            assert workspace.read(name, LIMIT) == name.encode()
            assert workspace.read(f"below/{name}/{name}", LIMIT) == name.encode()

    def test_a_newer_content_takes_the_place_wholly(self, opened: OpenFiles) -> None:
        """Also where it is shorter; what lies beside it stays."""
        workspace = space(opened)
        workspace.write("a/long", b"something long")
        workspace.write("a/other", b"other")
        workspace.write("a/long", b"short")
        assert workspace.read("a/long", LIMIT) == b"short"
        assert workspace.read("a/other", LIMIT) == b"other"
        assert workspace.list("a") == ["long", "other"]

    def test_what_was_written_is_there_for_the_next_process(
        self, opened: OpenFiles
    ) -> None:
        """A write is done when it returns."""
        space(opened).write("a/b", b"kept")
        assert space(opened).read("a/b", LIMIT) == b"kept"
        assert space(opened).list() == ["a/"]

    def test_a_read_over_its_limit_is_refused(self, opened: OpenFiles) -> None:
        """A file of just so many bytes is read."""
        workspace = space(opened)
        workspace.write("ten", b"0123456789")
        assert workspace.read("ten", 10) == b"0123456789"
        for limit in (9, 0):
            with pytest.raises(TooLarge):
                workspace.read("ten", limit)

    def test_names_come_sorted_with_a_slash_behind_folders(
        self, opened: OpenFiles
    ) -> None:
        """Of one folder at a time, in whatever order they came."""
        workspace = space(opened)
        for path in ("b", "c/d/e", "a", "c/a", "ab/x", "Z"):
            workspace.write(path, b"")
        assert workspace.list() == ["Z", "a", "ab/", "b", "c/"]
        assert workspace.list("c") == workspace.list("c/") == ["a", "d/"]

    def test_a_new_workspace_is_empty(self, opened: OpenFiles) -> None:
        """Nobody has to make it first."""
        assert space(opened).list() == []

    def test_what_is_not_there_is_told(self, opened: OpenFiles) -> None:
        """A file, a folder, and what would lie in it."""
        workspace = space(opened)
        workspace.write("a/b", b"")
        for path in ("c", "a/c", "c/b"):
            with pytest.raises(NotFound):
                workspace.read(path, LIMIT)
            with pytest.raises(NotFound):
                workspace.list(path)

    def test_a_folder_is_no_file_and_a_file_no_folder(self, opened: OpenFiles) -> None:
        """What is refused changes nothing."""
        workspace = space(opened)
        workspace.write("folder/file", b"kept")
        for path in ("folder", "folder/", "."):
            with pytest.raises(InvalidInput):
                workspace.read(path, LIMIT)
            with pytest.raises(InvalidInput):
                workspace.write(path, b"x")
        with pytest.raises(InvalidInput):
            workspace.list("folder/file")
        with pytest.raises(InvalidInput):
            workspace.write("folder/file/below", b"x")
        assert workspace.list() == ["folder/"]
        assert workspace.list("folder") == ["file"]
        assert workspace.read("folder/file", LIMIT) == b"kept"

    def test_each_agent_has_files_of_its_own(self, opened: OpenFiles) -> None:
        """The same path is another file."""
        files = opened(Asking().guards)
        ada, grace = files.workspace("ada"), files.workspace("grace")
        ada.write("name", b"Ada")
        assert grace.list() == []
        grace.write("name", b"Grace")
        assert ada.read("name", LIMIT) == b"Ada"
        assert grace.read("name", LIMIT) == b"Grace"

    @pytest.mark.parametrize("path", WAYS_OUT)
    def test_a_path_that_leads_out_is_blocked(
        self, opened: OpenFiles, path: str
    ) -> None:
        """The backend holds by itself, whatever the guards let through."""
        files = opened(Asking().guards)
        ada, grace = files.workspace("ada"), files.workspace("grace")
        ada.write("kept", b"Ada")
        ada.write("a/b", b"")
        grace.write("stolen", b"Grace")
        for attempt in attempts(ada, path):
            with pytest.raises((Blocked, InvalidInput)):
                attempt()
        assert grace.list() == ["stolen"]
        assert grace.read("stolen", LIMIT) == b"Grace"
        assert ada.list() == ["a/", "kept"]

    @pytest.mark.parametrize("agent_id", IDS)
    def test_an_id_that_is_no_name_is_refused(
        self, opened: OpenFiles, agent_id: str
    ) -> None:
        """It might name a folder of somebody else."""
        with pytest.raises(InvalidInput):
            opened(Asking().guards).workspace(agent_id)

    def test_hostile_paths_are_answered_in_our_words(self, opened: OpenFiles) -> None:
        """Whatever a model asks for; and all of it can be removed again."""
        workspace = space(opened)
        for path in HOSTILE:
            for attempt in attempts(workspace, path):
                with suppress(AgentHostError):
                    attempt()
        workspace.remove()
        assert workspace.list() == []

    def test_a_guard_is_asked_before_anything_is_done(self, opened: OpenFiles) -> None:
        """Of the path as it was given, whether it is to be written, and for whom."""
        space(opened).write("a/b", b"kept")
        asking = Asking(lambda _: True)
        context = Context(OPERATOR, turn_id="turn")
        workspace = opened(asking.guards).workspace("ada", context)
        for path in ("a/b", "a/new", "../out"):
            for attempt in attempts(workspace, path):
                with pytest.raises(Blocked, match="refused by a test"):
                    attempt()
            reading = PathCase(PurePosixPath(path), write=False, context=context)
            writing = PathCase(PurePosixPath(path), write=True, context=context)
            assert asking.at(Guard.PATH) == [reading, writing, reading]
            asking.cases.clear()
        assert space(opened).list("a") == ["b"]
        assert space(opened).read("a/b", LIMIT) == b"kept"

    def test_a_guard_decides_for_each_path(self, opened: OpenFiles) -> None:
        """What it lets through is done; it may refuse to write and let read."""
        space(opened).write("a/b", b"kept")
        workspace = opened(Asking(lambda case: case.write).guards).workspace("ada")
        assert workspace.read("a/b", LIMIT) == b"kept"
        assert workspace.list("a") == ["b"]
        with pytest.raises(Blocked):
            workspace.write("a/b", b"x")
        assert workspace.read("a/b", LIMIT) == b"kept"

    def test_without_its_protection_nothing_is_opened(self, opened: OpenFiles) -> None:
        """The point is closed while the system that it requires is not there."""
        space(opened).write("a", b"kept")
        workspace = opened(Guards()).workspace("ada")
        for attempt in attempts(workspace, "a"):
            with pytest.raises(Blocked):
                attempt()
        assert space(opened).read("a", LIMIT) == b"kept"

    def test_a_removed_workspace_is_empty(self, opened: OpenFiles) -> None:
        """Removing it twice is fine, it can be used again, and others stay."""
        files = opened(Asking().guards)
        ada, grace = files.workspace("ada"), files.workspace("grace")
        for workspace in (ada, grace):
            workspace.write("a/b/c", b"kept")
            workspace.write("d", b"kept")
        for _ in range(2):
            ada.remove()
        assert ada.list() == space(opened).list() == []
        with pytest.raises(NotFound):
            ada.read("d", LIMIT)
        ada.write("a", b"new")
        assert ada.list() == ["a"]
        assert grace.read("a/b/c", LIMIT) == b"kept"

    def test_writers_at_once_lose_nothing(self, opened: OpenFiles) -> None:
        """Also where each needs the folder that no one has made yet."""
        workspace = space(opened)

        def write(number: int) -> None:
            for time in range(TIMES):
                workspace.write(f"new {time}/below/{number}", b"%d" % number)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(write, range(AT_ONCE)))
        names = sorted(str(number) for number in range(AT_ONCE))
        for time in range(TIMES):
            assert workspace.list(f"new {time}/below") == names

    def test_a_reader_sees_one_content_or_the_other(self, opened: OpenFiles) -> None:
        """Never a part of one, nothing at all, or what is only on its way."""
        workspace = space(opened)
        contents = [bytes([65 + number]) * LIMIT for number in range(AT_ONCE)]
        workspace.write("shared", contents[0])
        with ThreadPoolExecutor(AT_ONCE) as threads:
            writers = [threads.submit(workspace.write, "shared", c) for c in contents]
            seen = [workspace.read("shared", LIMIT)]
            while not all(writer.done() for writer in writers):
                seen.append(workspace.read("shared", LIMIT))
        for writer in writers:
            writer.result()
        assert set(seen) <= set(contents)
        assert workspace.read("shared", LIMIT) in contents
        assert workspace.list() == ["shared"]
