"""A file is replaced whole, as what it was."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from agenthost_toml.writing import replace


def test_line_ends_and_mode_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(b"a = 1\r\nb = 2\r\n")
    file.chmod(0o640)
    replace(file, "a = 1\r\nb = 3\nc = 4\n")
    assert file.read_bytes() == b"a = 1\r\nb = 3\r\nc = 4\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_what_a_link_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "a.toml", tmp_path / "a.toml"
    real.write_text("a = 1\n", encoding="utf-8")
    link.symlink_to(real)
    replace(link, "a = 2\n")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "a = 2\n"


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    replace(tmp_path / "a.toml", "a = 1\n")
    assert stat.S_IMODE((tmp_path / "a.toml").stat().st_mode) == 0o600


def test_a_link_that_lies_in_wait_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    (tmp_path / ".a.toml.new").symlink_to(victim)
    replace(tmp_path / "a.toml", "a = 1\n")
    assert victim.read_text(encoding="utf-8") == "mine"


def test_a_disk_that_refuses_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "a.toml"
    file.write_text("a = 1\n", encoding="utf-8")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace(file, "a = 2\n")
    assert [each.name for each in tmp_path.iterdir()] == ["a.toml"]
    assert file.read_text(encoding="utf-8") == "a = 1\n"
