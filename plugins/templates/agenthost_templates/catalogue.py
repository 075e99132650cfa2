"""Find templates: those of agenthost, overlaid by the operator's own files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path
from threading import Lock

from agenthost import Conflict, InvalidInput, Manifest, NotFound
from agenthost_toml.parse import TomlSyntax, parse_toml
from agenthost_toml.problems import problems
from pydantic import ValidationError

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
FOLDER = "agents"
FILE = "agent.toml"
MOST = 1_000
LARGEST = 256 * 1024
_NAME_LINE = re.compile(r"^name[ \t]*=[^\n]*$", re.M)
_FIRST_TABLE = re.compile(r"^[ \t]*\[", re.M)


@dataclass(frozen=True)
class Template:
    """A template as it stands; without a manifest it has a fault."""

    name: str
    path: str
    text: str = ""
    manifest: Manifest | None = None
    fault: str = ""


def all_templates(home: Path) -> list[Template]:
    """Read every template, by name; an own file takes the place of a shipped one."""
    found = {template.name: template for template in _shipped()}
    found |= {template.name: template for template in _own(home)}
    return [found[name] for name in sorted(found)]


class Catalogue:
    """The templates of a home as they are now; files are read once they changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = Lock()
        self._stamps: list[tuple[str, int, int, int]] | None = None
        self._listed: list[Template] = []

    def listed(self) -> list[Template]:
        """Give every template, by name; it reads files, so call it in a thread."""
        with self._lock:
            stamps = [*_stamps(self._home)]
            if stamps != self._stamps:
                self._listed, self._stamps = all_templates(self._home), stamps
            return self._listed


def _stamps(home: Path) -> Iterator[tuple[str, int, int, int]]:
    """What differs once a file of the operator's has been written, moved or removed."""
    for folder in _folders(home):
        try:
            found = (folder / FILE).stat()
        except OSError:
            continue
        yield folder.name, found.st_mtime_ns, found.st_size, found.st_ino


def template(home: Path, name: str) -> Template:
    """Read one template.

    Raises:
        NotFound: There is none of this name.
        Conflict: Its file is damaged.
    """
    if not NAME.fullmatch(name):
        raise NotFound("template", name)
    found = _own_template(home / FOLDER / name) or _shipped_template(name)
    if found is None:
        raise NotFound("template", name)
    if found.manifest is None:
        raise Conflict(f"template {name!r} is damaged: {found.fault}; mend its file")
    return found


def manifest_of(home: Path, name: str, named: str | None) -> str:
    """Give the manifest of a template, under another name where one is given.

    Raises:
        NotFound: There is no such template.
        Conflict: Its file is damaged.
        InvalidInput: No agent can have this name.
    """
    text = template(home, name).text
    if named is None:
        return text
    if not named.isascii():
        raise InvalidInput("name", "use A-Z, a-z, 0-9, dot, dash and underscore")
    return renamed(text, named)


def renamed(text: str, name: str) -> str:
    """Give a manifest another name; everything else stays as it is written.

    Raises:
        InvalidInput: Its name does not stand in a line that can be replaced.
    """
    table = _FIRST_TABLE.search(text)
    end = table.start() if table else len(text)
    # As a basic string of TOML: nothing in it can end the line or the string.
    quoted = "".join(
        c if c.isalnum() or c in "._-" else f"\\U{ord(c):08X}" for c in name
    )
    line = f'name = "{quoted}"'
    top = _NAME_LINE.sub(lambda _: line, text[:end], count=1)
    result = top + text[end:]
    try:
        replaced = parse_toml(result) == parse_toml(text) | {"name": name}
    except TomlSyntax:
        replaced = False
    if not replaced:
        raise InvalidInput(
            "name", "write the template's own name as one line at its top"
        )
    return result


def _shipped() -> Iterator[Template]:
    for file in files(__package__).joinpath("shipped").iterdir():
        name = file.name.removesuffix(".toml")
        yield _read(name, f"builtin:{name}", file.read_text("utf-8"))


def _shipped_template(name: str) -> Template | None:
    file = files(__package__).joinpath("shipped", f"{name}.toml")
    if not file.is_file():
        return None
    return _read(name, f"builtin:{name}", file.read_text("utf-8"))


def _own(home: Path) -> Iterator[Template]:
    for folder in _folders(home):
        if found := _own_template(folder):
            yield found


def _folders(home: Path) -> list[Path]:
    try:
        folders = sorted(islice((home / FOLDER).iterdir(), MOST))
    except OSError:
        return []
    return [folder for folder in folders if NAME.fullmatch(folder.name)]


def _own_template(folder: Path) -> Template | None:
    """Read an operator's file; a pipe or a device in its place is never opened."""
    file, path = folder / FILE, f"{FOLDER}/{folder.name}/{FILE}"
    try:
        if not file.is_file():
            return None
        if file.stat().st_size > LARGEST:
            return Template(folder.name, path, fault="larger than 256 KiB")
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return Template(folder.name, path, fault="cannot be read as UTF-8 text")
    return _read(folder.name, path, text.replace("\r\n", "\n"))


def _read(name: str, path: str, text: str) -> Template:
    try:
        document = parse_toml(text)
    except TomlSyntax as error:
        return Template(name, path, text, fault=str(error))
    try:
        manifest = Manifest.model_validate(document)
    except ValidationError as error:
        first = problems(error, document)[0]
        return Template(name, path, text, fault=f"{first.key}: {first.text}")
    return Template(name, path, text, manifest)
