"""An agent's folder: everything inside works, nothing outside is reached."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from agenthost import (
    ALLOW,
    AgentHostError,
    Blocked,
    Denied,
    Guard,
    Guards,
    InvalidInput,
    NotFound,
    SecuritySystem,
    StorageFull,
    TooLarge,
)
from agenthost_security import path_traversal_prevention
from agenthost_storage import beneath, files
from agenthost_storage.files import LocalFiles, LocalWorkspace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LIMIT = 1000
SECRET = b"the secret outside"


def only_the_disk() -> Guards:
    """Let every path pass, so that opening beneath must hold alone."""
    name = "path_traversal_prevention"
    return Guards([SecuritySystem(name, {Guard.PATH: lambda _: ALLOW}, lambda: None)])


@pytest.fixture(params=[beneath.by_kernel, beneath.by_component])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(files, "opener", lambda: request.param)
    return request.param


@pytest.fixture
def bare(tmp_path: Path, way: Any) -> LocalWorkspace:
    (tmp_path / "secret").write_bytes(SECRET)
    workspace = LocalFiles(tmp_path / "spaces", only_the_disk()).workspace("agent")
    workspace.list()
    return workspace


@pytest.fixture
def workspace(tmp_path: Path, way: Any) -> LocalWorkspace:
    guards = Guards([path_traversal_prevention.security_system()])
    return LocalFiles(tmp_path / "spaces", guards).workspace("agent")


def folder(tmp_path: Path) -> Path:
    return tmp_path / "spaces" / "agent"


def test_what_is_written_is_read(workspace: LocalWorkspace) -> None:
    workspace.write("a/b/c.txt", b"one")
    workspace.write("a/b/c.txt", b"two")
    assert workspace.read("a/b/c.txt", LIMIT) == b"two"
    assert workspace.list() == ["a/"]
    assert workspace.list("a/b") == ["c.txt"]


def test_names_are_sorted_and_folders_marked(workspace: LocalWorkspace) -> None:
    for name in ("z", "b/x", "a"):
        workspace.write(name, b"")
    assert workspace.list("") == ["a", "b/", "z"]


@pytest.mark.parametrize(
    "name",
    [
        *(" ", "  x ", "...", "..a", "a..", "~", "~root", "$HOME", "-rf", "*", "a\\b"),
        *(
            "a\nb",
            "C:",
            "con",
            "%2e%2e",
            "é",
            "e\u0301",
            "日本",
            "\u202etxt",
            "🙂",
            "'",
        ),
        *('"', "a" * 255, ".hidden", "a;b", "x\udc80y", "\x01", "..\\..\\x", "..%2fx"),
    ],
)
def test_odd_but_legal_names_work(workspace: LocalWorkspace, name: str) -> None:
    workspace.write(f"{name}/{name}", b"odd")
    assert workspace.read(f"{name}/{name}", LIMIT) == b"odd"
    assert workspace.list() == [name + "/"]


@pytest.mark.parametrize(
    "path",
    ["../secret", "a/../../secret", "..", "/etc/passwd", "//etc/passwd", "x/.."],
)
def test_paths_that_leave_are_refused(workspace: LocalWorkspace, path: str) -> None:
    for act in (
        lambda: workspace.read(path, LIMIT),
        lambda: workspace.list(path),
        lambda: workspace.write(path, b"x"),
    ):
        with pytest.raises(Blocked, match="workspace"):
            act()


@pytest.mark.parametrize(
    "path", ["../../secret", "a/../../../secret", "{root}/secret", "/proc/self/environ"]
)
def test_the_disk_alone_refuses_paths_that_leave(
    bare: LocalWorkspace, tmp_path: Path, path: str
) -> None:
    (folder(tmp_path) / "a").mkdir()
    with pytest.raises(Blocked):
        bare.read(path.format(root=tmp_path), LIMIT)
    with pytest.raises(AgentHostError):
        bare.write(path.format(root=tmp_path), b"overwritten")
    assert (tmp_path / "secret").read_bytes() == SECRET


def test_links_out_are_refused_in_every_place(
    bare: LocalWorkspace, tmp_path: Path
) -> None:
    inside = folder(tmp_path)
    (inside / "file").symlink_to(tmp_path / "secret")
    (inside / "relative").symlink_to("../../secret")
    (inside / "dir").symlink_to(tmp_path)
    (inside / "chain").symlink_to("dir")
    (inside / "proc").symlink_to("/proc/self/root")
    for path in ("file", "relative", "dir/secret", "chain/secret", "proc/etc/passwd"):
        with pytest.raises(Blocked):
            bare.read(path, LIMIT)
        with pytest.raises(Blocked):
            bare.write(path, b"overwritten")
    for path in ("dir", "chain", "proc/etc"):
        with pytest.raises(Blocked):
            bare.list(path)
        with pytest.raises(Blocked):
            bare.write(f"{path}/new/file", b"x")
    assert (tmp_path / "secret").read_bytes() == SECRET
    assert not (tmp_path / "new").exists()


def test_a_pipe_a_socket_and_a_device_are_refused(
    bare: LocalWorkspace, tmp_path: Path
) -> None:
    os.mkfifo(folder(tmp_path) / "pipe")
    with pytest.raises(InvalidInput, match="regular"):
        bare.read("pipe", LIMIT)
    with pytest.raises(InvalidInput, match="regular"):
        bare.write("pipe", b"x")
    (folder(tmp_path) / "null").symlink_to("/dev/null")
    with pytest.raises(Blocked):
        bare.read("null", LIMIT)


def test_a_folder_is_no_file_and_a_file_no_folder(workspace: LocalWorkspace) -> None:
    workspace.write("d/f", b"x")
    with pytest.raises(InvalidInput, match="folder"):
        workspace.read("d", LIMIT)
    with pytest.raises(InvalidInput, match="folder"):
        workspace.write("d", b"x")
    with pytest.raises(InvalidInput, match="folder"):
        workspace.list("d/f")
    with pytest.raises(InvalidInput, match="folder"):
        workspace.write("d/f/g", b"x")
    with pytest.raises(InvalidInput, match="itself"):
        workspace.write(".", b"x")


def test_a_missing_file_is_not_found(workspace: LocalWorkspace) -> None:
    for path in ("none", "none/none"):
        with pytest.raises(NotFound):
            workspace.read(path, LIMIT)
        with pytest.raises(NotFound):
            workspace.list(path)


def test_a_file_over_the_limit_names_the_limit(workspace: LocalWorkspace) -> None:
    workspace.write("big", b"x" * 11)
    with pytest.raises(TooLarge, match="10 bytes"):
        workspace.read("big", 10)
    assert workspace.read("big", 11) == b"x" * 11


def test_a_name_that_is_too_long_or_has_a_null_is_refused(
    workspace: LocalWorkspace,
) -> None:
    for path in ("a" * 256, "a\0b"):
        with pytest.raises(InvalidInput):
            workspace.read(path, LIMIT)
        with pytest.raises(InvalidInput):
            workspace.write(path, b"")


def test_without_a_guard_nothing_is_opened(tmp_path: Path) -> None:
    workspace = LocalFiles(tmp_path, Guards()).workspace("agent")
    for act in (lambda: workspace.read("a", 1), lambda: workspace.write("a", b"")):
        with pytest.raises(Blocked):
            act()
    with pytest.raises(Blocked):
        workspace.list()


@pytest.mark.parametrize(
    "agent_id", ["", "..", ".", "a/b", "/a", "a\0", "-a", "a" * 65]
)
def test_an_id_that_is_no_folder_name_is_refused(tmp_path: Path, agent_id: str) -> None:
    with pytest.raises(InvalidInput):
        LocalFiles(tmp_path, Guards()).workspace(agent_id)


def test_one_agent_does_not_see_another(tmp_path: Path) -> None:
    guards = Guards([path_traversal_prevention.security_system()])
    one, two = (LocalFiles(tmp_path, guards).workspace(name) for name in ("one", "two"))
    one.write("f", b"1")
    assert two.list() == []
    with pytest.raises(Blocked):
        two.read("../one/f", LIMIT)


def test_removing_a_workspace_leaves_what_its_links_name(
    bare: LocalWorkspace, tmp_path: Path
) -> None:
    bare.write("a/b", b"x")
    (folder(tmp_path) / "link").symlink_to(tmp_path)
    bare.remove()
    bare.remove()
    assert not folder(tmp_path).exists()
    assert (tmp_path / "secret").read_bytes() == SECRET


def test_a_failed_write_leaves_the_old_file_and_no_rest(
    workspace: LocalWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write("f", b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(StorageFull):
        workspace.write("f", b"new")
    assert workspace.read("f", LIMIT) == b"old"
    assert workspace.list() == ["f"]


def test_a_write_keeps_the_mode_of_the_file(
    workspace: LocalWorkspace, tmp_path: Path
) -> None:
    workspace.write("f", b"old")
    (folder(tmp_path) / "f").chmod(0o400)
    workspace.write("f", b"new")
    assert (folder(tmp_path) / "f").stat().st_mode & 0o777 == 0o400


def test_a_link_swapped_in_while_opening_leaks_nothing(
    bare: LocalWorkspace, tmp_path: Path
) -> None:
    inside = folder(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f").write_bytes(SECRET)
    (inside / "honest").mkdir()
    (inside / "honest" / "f").write_bytes(b"inside")
    (inside / "evil").symlink_to(tmp_path / "out")
    done = threading.Event()

    def swap() -> None:
        link = inside / "d"
        while not done.is_set():
            for target in ("honest", tmp_path / "out"):
                (inside / "new").symlink_to(target)
                (inside / "new").rename(link)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(3000):
            try:
                assert bare.read("d/f", LIMIT) == b"inside"
                bare.write(f"d/w{number % 5}", b"x")
            except (Blocked, NotFound):
                continue
    finally:
        done.set()
        thread.join()
    assert os.listdir(tmp_path / "out") == ["f"]


PARTS = st.sampled_from(["..", ".", "", "a", "b", "link", "up", "/", "~", "f", "%2e"])


@given(parts=st.lists(PARTS, max_size=8), absolute=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_no_path_of_any_shape_leaves(
    bare: LocalWorkspace, tmp_path: Path, parts: list[str], absolute: bool
) -> None:
    inside = folder(tmp_path)
    if not (inside / "a").exists():
        (inside / "a" / "b").mkdir(parents=True)
        (inside / "a" / "f").write_bytes(b"inside")
        (inside / "link").symlink_to(tmp_path)
        (inside / "a" / "up").symlink_to("..")
    path = ("/" if absolute else "") + "/".join(parts)
    try:
        assert bare.read(path, LIMIT) == b"inside"
    except AgentHostError:
        return
    real = Path(os.path.realpath(inside / path))
    assert real.is_relative_to(os.path.realpath(inside))


@given(st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_any_text_is_a_path_or_an_error_of_ours(
    bare: LocalWorkspace, path: str
) -> None:
    with suppress(AgentHostError):
        bare.read(path, LIMIT)


def test_a_path_that_is_forbidden_is_denied(
    bare: LocalWorkspace, tmp_path: Path
) -> None:
    error = files._refusal(PermissionError(13, "x"), PurePosixPath("f"))
    assert isinstance(error, Denied)


def test_the_self_test_passes_and_notices_a_missing_guard(
    monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    path_traversal_prevention.self_test(LocalFiles)
    followed = lambda root, path, flags: os.open(path, flags, dir_fd=root)  # noqa: E731
    monkeypatch.setattr(files, "opener", lambda: followed)
    with pytest.raises(RuntimeError):
        path_traversal_prevention.self_test(LocalFiles)
