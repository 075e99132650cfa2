"""Plugins are found by the metadata of what is installed now."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from agenthost.plugins.discovery import GROUPS, find_plugins, installed_entries
from importlib_metadata import entry_points


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that packages are installed into."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install(
    site: Path, name: str, slug: str, version: str = "1.0", kind: str = "tools"
) -> Path:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n", "utf-8")
    offered = f"[console_scripts]\n{slug} = {slug}:main\n"
    offered += f"[agenthost.{kind}]\n{slug} = {slug}_plugin\n"
    (info / "entry_points.txt").write_text(offered, "utf-8")
    return info


def found(slug: str) -> list[tuple[str, str, str]]:
    return [
        (plugin.key, plugin.distribution, plugin.version)
        for plugin in find_plugins()
        if plugin.slug == slug
    ]


def test_what_is_installed_is_what_importlib_metadata_finds(site: Path) -> None:
    install(site, "acme-dice", "dice")
    ours = {(e.group, e.name, e.dist.name) for e in installed_entries()}
    theirs = {
        (e.group, e.name, e.dist.name if e.dist else None)
        for e in entry_points()
        if e.group in GROUPS
    }
    assert ("agenthost.tools", "dice", "acme-dice") in ours
    assert ours == theirs


def test_an_upgrade_and_an_uninstall_are_noticed_at_once(site: Path) -> None:
    assert found("dice") == []
    old = install(site, "acme-dice", "dice")
    assert found("dice") == [("tool:dice", "acme-dice", "1.0")]
    shutil.rmtree(old)
    new = install(site, "acme-dice", "dice", "2.0")
    assert found("dice") == [("tool:dice", "acme-dice", "2.0")]
    shutil.rmtree(new)
    assert found("dice") == []


def test_a_plugin_that_is_installed_in_two_folders_counts_once(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "acme-dice", "dice", "2.0")
    behind = tmp_path / "behind"
    behind.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(behind)])
    install(behind, "acme-dice", "dice", "1.0")
    developed = behind / "acme_dice.egg-info"
    developed.mkdir()
    (developed / "entry_points.txt").write_text(
        "[agenthost.tools]\ndice = dice_plugin\n", "utf-8"
    )
    assert found("dice") == [("tool:dice", "acme-dice", "2.0")]


def test_what_cannot_be_read_hides_nothing(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "broken-1.0.dist-info").write_text("a file, not a folder", "utf-8")
    (site / "empty-1.0.dist-info").mkdir()
    gone = site / "folder that is gone"
    monkeypatch.setattr(sys, "path", [str(gone), *sys.path])
    install(site, "acme-dice", "dice")
    assert found("dice") == [("tool:dice", "acme-dice", "1.0")]
