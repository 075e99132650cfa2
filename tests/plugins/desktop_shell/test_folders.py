"""Section 8 of the semantics: base-directory variables, judged by platformdirs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from agenthost_desktop_shell.folders import Folders, variables

REQUIREMENT = (  # noqa: SIM905 - as the requirement writes them
    "AUDIO CACHE CONFIG DATA LOCALDATA DESKTOP DOCUMENT DOWNLOAD EXE FONT HOME PICTURE "
    "PUBLIC RUNTIME TEMPLATE VIDEO RESOURCE LOG TEMP APPCONFIG APPDATA APPLOCALDATA "
    "APPCACHE APPLOG"
).split()
WINDOWS = {
    "USERPROFILE": r"C:\Users\me",
    "APPDATA": r"C:\Users\me\AppData\Roaming",
    "LOCALAPPDATA": r"C:\Users\me\AppData\Local",
    "PUBLIC": r"C:\Users\Public",
    "TEMP": r"C:\Temp",
}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    return tmp_path


def _folders(platform: str) -> Folders:
    if platform == "windows":
        return Folders(platform, "dev.app", r"C:\res", environment=WINDOWS)
    return Folders(platform, "dev.app", "/res")


def test_the_variables_are_those_of_the_requirement() -> None:
    assert variables() == frozenset(REQUIREMENT)
    assert len(REQUIREMENT) == 24


LACKING = {
    "linux": set(),
    "macOS": {"RUNTIME", "TEMPLATE"},
    "windows": {"RUNTIME"},
}


@pytest.mark.parametrize("platform", ["linux", "macOS", "windows"])
@pytest.mark.parametrize("variable", REQUIREMENT)
def test_a_platform_has_the_variable_or_names_what_it_lacks(
    platform: str, variable: str
) -> None:
    folders = _folders(platform)
    if variable in LACKING[platform]:
        with pytest.raises(ValueError, match=re.escape(f"${variable}: {platform} has")):
            folders.expand(f"${variable}/x")
    else:
        expanded = folders.expand(f"${variable}/x")
        absolute = r"C:\\" if platform == "windows" else "/"
        assert re.match(absolute, expanded)
        assert expanded.endswith("x")


@pytest.mark.parametrize("platform", ["android", "iOS"])
def test_mobile_platforms_tell_their_folders_to_the_app_only(platform: str) -> None:
    with pytest.raises(ValueError, match=rf"\$HOME: {platform}"):
        _folders(platform).expand("$HOME/x")


def test_linux_folders_are_those_of_xdg(home: Path) -> None:
    folders = _folders("linux")
    assert folders.folder("CACHE") == str(home / ".cache")
    assert folders.folder("CONFIG") == str(home / ".config")
    assert folders.folder("DATA") == str(home / ".local/share")
    assert folders.folder("EXE") == str(home / ".local/bin")
    assert folders.folder("FONT") == str(home / ".local/share/fonts")
    assert folders.folder("DOCUMENT") == str(home / "Documents")
    assert folders.folder("RUNTIME") == "/run/user/7"


def test_linux_folders_follow_the_users_own_names(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".config").mkdir()
    names = 'XDG_DOCUMENTS_DIR="$HOME/Dokumente"\n'
    (home / ".config/user-dirs.dirs").write_text(names)
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/mycache")
    folders = _folders("linux")
    assert folders.folder("DOCUMENT") == str(home / "Dokumente")
    assert folders.folder("CACHE") == "/var/mycache"


def test_mac_folders_are_those_of_the_library(home: Path) -> None:
    folders = _folders("macOS")
    assert folders.folder("CACHE") == str(home / "Library/Caches")
    assert folders.folder("DATA") == str(home / "Library/Application Support")
    assert folders.folder("FONT") == str(home / "Library/Fonts")
    assert folders.folder("VIDEO") == str(home / "Movies")
    assert folders.folder("LOG") == str(home / "Library/Logs")


def test_windows_folders_come_from_its_environment() -> None:
    folders = _folders("windows")
    assert (
        folders.expand("$APPDATA\\x.exe")
        == r"C:\Users\me\AppData\Roaming\dev.app\x.exe"
    )
    assert folders.expand("$EXE/x.exe") == r"C:\Users\me\AppData\Local\Programs\x.exe"
    assert folders.expand("$HOME") == r"C:\Users\me"


@pytest.mark.parametrize(
    ("variable", "base"),
    [
        ("APPCONFIG", "CONFIG"),
        ("APPDATA", "DATA"),
        ("APPLOCALDATA", "LOCALDATA"),
        ("APPCACHE", "CACHE"),
        ("APPLOG", "LOG"),
    ],
)
def test_an_app_folder_is_its_base_and_the_identifier(variable: str, base: str) -> None:
    folders = _folders("linux")
    assert folders.folder(variable) == folders.folder(base) + "/dev.app"
    with pytest.raises(ValueError, match=rf"\${variable} needs the application"):
        Folders("linux").folder(variable)


def test_the_resource_folder_is_the_callers() -> None:
    assert _folders("linux").expand("$RESOURCE/bin/x") == "/res/bin/x"
    with pytest.raises(ValueError, match=r"\$RESOURCE needs the resource folder"):
        Folders("linux").expand("$RESOURCE/x")


def test_an_unset_variable_of_the_environment_is_named() -> None:
    with pytest.raises(ValueError, match=r"\$CACHE needs LOCALAPPDATA"):
        Folders("windows", environment={}).folder("CACHE")


@pytest.mark.parametrize(
    "cmd",
    ["git", "/bin/sh", "$NOPE/x", "$HOMER/x", "$", "a/$HOME", "$HOME/../x", "$home/x"],
)
def test_what_cannot_be_parsed_stays_as_it_is(cmd: str) -> None:
    assert _folders("linux").expand(cmd) == cmd
