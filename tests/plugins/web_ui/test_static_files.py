"""The files of the page: complete, unchanged, and sufficient unto themselves."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import agenthost_web_ui
from agenthost_web_ui.static_files import TYPES, load_files

STATIC = Path(agenthost_web_ui.__file__).parent / "static"
VENDOR = STATIC / "vendor"
SVG = "http://www.w3.org/2000/svg"
OWN = [
    path
    for path in sorted(STATIC.rglob("*"))
    if path.is_file() and VENDOR not in path.parents
]
SCRIPTS = [path for path in OWN if path.suffix == ".js"]


def test_vendored_files_are_those_of_the_checksum_list() -> None:
    listed = {
        name.removeprefix("./"): digest
        for digest, name in (
            line.split() for line in (VENDOR / "CHECKSUMS").read_text().splitlines()
        )
    }
    unlisted = {"CHECKSUMS", "README.md"}
    present = {
        path.relative_to(VENDOR).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file()
    }
    assert {name: present[name] for name in present.keys() - unlisted} == listed


def test_every_vendored_package_has_its_licence() -> None:
    packages = [folder for folder in VENDOR.iterdir() if folder.is_dir()]
    assert {folder.name for folder in packages} == {
        "dompurify",
        "htm",
        "marked",
        "preact",
    }
    assert all((folder / "LICENSE").stat().st_size > 500 for folder in packages)


def test_no_file_of_ours_names_an_address_elsewhere() -> None:
    for path in OWN:
        text = path.read_text().replace(SVG, "")
        assert not re.search(r"(https?:)?//[\w-]+\.\w", text), path


def test_no_vendored_script_imports_from_elsewhere() -> None:
    for path in VENDOR.rglob("*.mjs"):
        imported = re.findall(
            r"\b(?:from|import)\s*\(?\s*[\"']([^\"']+)", path.read_text()
        )
        assert all(name.startswith("./") for name in imported), path


def test_the_page_has_no_inline_script_style_or_handler() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page)


def test_no_script_needs_what_the_policy_forbids() -> None:
    forbidden = re.compile(
        r"\beval\(|new Function|\.innerHTML\b|\sstyle=|setAttribute\("
    )
    for path in SCRIPTS:
        assert not forbidden.search(path.read_text()), path


def test_scripts_stay_small() -> None:
    assert max(len(path.read_text().splitlines()) for path in SCRIPTS) <= 250


def test_every_import_names_a_file_that_exists() -> None:
    for path in SCRIPTS:
        for name in re.findall(r"from \"(\.[^\"]+)\"", path.read_text()):
            assert (path.parent / name).is_file(), (path, name)


def test_every_file_that_a_browser_loads_has_its_type() -> None:
    files = load_files()
    assert files["js/main.js"].content_type == "text/javascript; charset=utf-8"
    assert files["vendor/htm/htm.mjs"].content_type == TYPES["js"]
    assert files["icon.svg"].content_type == "image/svg+xml"
    assert files["vendor/htm/LICENSE"].content_type == "text/plain; charset=utf-8"


def test_an_etag_follows_the_contents() -> None:
    files = load_files()
    assert len({file.etag for file in files.values()}) == len(
        {file.body for file in files.values()}
    )
    assert files["index.html"].etag == load_files()["index.html"].etag
