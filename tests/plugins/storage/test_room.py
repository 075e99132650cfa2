"""A workspace holds what it may, whoever writes there, and gives room back."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agenthost import Blocked, Guards, StorageFull
from agenthost.testing.daemons import Daemons
from agenthost_security import path_traversal_prevention
from agenthost_storage.files import LocalFiles, LocalWorkspace
from agenthost_storage.room import BLOCK

MOST = 10 * BLOCK


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    guards = Guards([path_traversal_prevention.security_system()])
    made = LocalFiles(tmp_path / "spaces", guards)
    made.room.most = MOST
    return made


@pytest.fixture
def workspace(files: LocalFiles) -> LocalWorkspace:
    return files.workspace("ada")


def test_what_is_over_the_limit_is_refused_and_not_written(
    workspace: LocalWorkspace,
) -> None:
    workspace.write("most", b"x" * 9 * BLOCK)
    with pytest.raises(StorageFull, match=r"36864 of the 40960 .*workspace_bytes"):
        workspace.write("more", b"x" * (BLOCK + 1))
    assert workspace.list() == ["most"]
    workspace.write("rest", b"x" * BLOCK)


def test_a_file_written_anew_counts_once(workspace: LocalWorkspace) -> None:
    for _ in range(30):
        workspace.write("same", b"x" * 9 * BLOCK)
    workspace.write("same", b"")
    workspace.write("other", b"x" * 9 * BLOCK)


def test_empty_files_are_not_free(workspace: LocalWorkspace) -> None:
    for number in range(10):
        workspace.write(f"{number}", b"")
    with pytest.raises(StorageFull):
        workspace.write("one more", b"")


def test_what_others_write_and_delete_there_is_seen(
    workspace: LocalWorkspace, tmp_path: Path
) -> None:
    folder = tmp_path / "spaces" / "ada"
    workspace.write("small", b"")
    (folder / "deep").mkdir()
    (folder / "deep" / "foreign").write_bytes(b"x" * 8 * BLOCK)
    workspace.write("fits by what is known", b"x" * 8 * BLOCK)
    with pytest.raises(StorageFull):
        workspace.write("too much", b"x" * 2 * BLOCK)
    (folder / "deep" / "foreign").unlink()
    (folder / "fits by what is known").unlink()
    workspace.write("room again", b"x" * 7 * BLOCK)


def test_a_full_workspace_takes_smaller_files_in_place_of_larger_ones(
    workspace: LocalWorkspace, files: LocalFiles
) -> None:
    workspace.write("large", b"x" * 9 * BLOCK)
    files.room.most = 2 * BLOCK
    workspace.write("large", b"x" * 8 * BLOCK)
    with pytest.raises(StorageFull):
        workspace.write("large", b"x" * 9 * BLOCK)


def test_agents_do_not_fill_each_others_room(files: LocalFiles) -> None:
    files.workspace("ada").write("most", b"x" * MOST)
    files.workspace("grace").write("most", b"x" * MOST)


def test_many_at_once_do_not_pass_together(workspace: LocalWorkspace) -> None:
    def write(number: int) -> bool:
        try:
            workspace.write(f"{number}", b"x")
        except StorageFull:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(write, range(40))) == MOST // BLOCK


def test_a_write_that_fails_takes_no_room(
    workspace: LocalWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(28, "no space")

    workspace.write("first", b"")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        for _ in range(5):
            with pytest.raises(StorageFull, match="disk"):
                workspace.write("lost", b"x" * 9 * BLOCK)
    monkeypatch.setattr("agenthost_storage.room.measured", lambda _: MOST)
    workspace.write("kept", b"x" * 9 * BLOCK)


def test_a_workspace_that_is_gone_is_forgotten(files: LocalFiles) -> None:
    files.workspace("ada").write("most", b"x" * MOST)
    files.workspace("ada").remove()
    assert not files.room._held
    files.workspace("ada").write("most", b"x" * MOST)


def test_a_file_with_a_name_outside_is_not_read(
    workspace: LocalWorkspace, tmp_path: Path
) -> None:
    workspace.list()
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    os.link(secret, tmp_path / "spaces" / "ada" / "twin")
    with pytest.raises(Blocked, match="another name"):
        workspace.read("twin", 100)
    workspace.write("twin", b"mine")
    assert workspace.read("twin", 100) == b"mine"
    assert secret.read_bytes() == b"secret"


@pytest.mark.setting("files.workspace_bytes")
async def test_the_operator_says_what_a_workspace_may_hold(daemons: Daemons) -> None:
    running = await daemons.start(config="[files]\nworkspace_bytes = 1048576\n")
    workspace = running.daemon.files.workspace("ada")
    with pytest.raises(StorageFull, match="1048576"):
        workspace.write("large", b"x" * 1_048_577)
