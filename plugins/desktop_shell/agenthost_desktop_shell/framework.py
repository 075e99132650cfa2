"""Permission tables as the desktop framework writes them.

``gen/schemas/acl-manifests.json`` has the tables of a whole application, made by its
build; ``permissions/**/*.toml`` are what developers write for their own commands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agenthost_toml.problems import problems
from agenthost_toml.suggest import did_you_mean
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .findings import CapabilityError, Finding
from .manifests import Manifest, Module, PermissionTable, SetTable, prepare
from .reading import MAX_TABLE_BYTES, Document, read_file

APPLICATION = "__app-acl__"
ACL_FILE = "acl-manifests.json"
SCHEMAS = "schemas"
_TABLES = frozenset({".toml", ".json", ".json5"})
_DATA = Path(__file__).parent / "data"


class _Own(BaseModel):
    """A file of ``permissions/``; the application's table is all of them."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    schema_: Any = Field(default=None, alias="$schema")
    default: SetTable | None = None
    permission: tuple[PermissionTable, ...] = ()
    set: tuple[SetTable, ...] = ()

    def manifest(self) -> Manifest:
        """The file in the form of ``acl-manifests.json``.

        Raises:
            ValueError: It defines a name twice.
        """
        permissions = {table.identifier: table for table in self.permission}
        sets = {table.identifier: table for table in self.set}
        if len(permissions) < len(self.permission) or len(sets) < len(self.set):
            raise ValueError("a permission or set is defined twice")
        return Manifest(
            default_permission=self.default,
            permissions=permissions,
            permission_sets=sets,
        )


_OWN_KEYS = frozenset({"$schema", "default", "permission", "set"})


def builtin_tables() -> tuple[Module, ...]:
    """Read the tables that come along."""
    sources = json.loads((_DATA / "sources.json").read_text("utf-8"))
    return read_tables([_DATA / "permissions"], sources)


def read_tables(
    paths: Iterable[Path], sources: Mapping[str, str] | None = None
) -> tuple[Module, ...]:
    """Read permission tables from files and folders.

    Of a permission that stands in several, the later one counts: what a developer
    writes is newer than what the last build wrote.

    Raises:
        CapabilityError: A file cannot be read, or holds no permission table.
    """
    tables: dict[str, Manifest] = {}
    files: dict[str, Path] = {}
    for file in (file for path in paths for file in _files(path)):
        for name, table in _read(file):
            known = tables.get(name)
            tables[name] = table.over(known) if known else table
            files[name] = file
    return tuple(
        _prepared(name, table, files[name], (sources or {}).get(name, ""))
        for name, table in tables.items()
    )


def _prepared(name: str, table: Manifest, file: Path, source: str) -> Module:
    try:
        return prepare(name, table, source)
    except ValueError as error:
        raise _refuse(file, str(error)) from error


def _files(path: Path) -> Iterator[Path]:
    """Yield the tables of a folder; what the build writes beside them is none."""
    if not path.is_dir():
        if _is_table(path):
            yield path
        return
    inside = sorted(p for p in path.rglob("*") if p.is_file())
    for file in inside:
        built = (file.parent / ACL_FILE).is_file() and file.name != ACL_FILE
        schema = SCHEMAS in file.relative_to(path).parts[:-1]
        if not (built and file.suffix == ".json") and not schema and _is_table(file):
            yield file


def _is_table(file: Path) -> bool:
    if file.name.startswith(".") or file.suffix == ".md":
        return False
    if file.suffix not in _TABLES:
        raise _refuse(file, "is no permission table; move it out of the folder")
    return True


def _read(file: Path) -> Iterator[tuple[str, Manifest]]:
    document = read_file(file, MAX_TABLE_BYTES)
    value = document.value
    if not isinstance(value, Mapping):
        raise _refuse(file, "is no permission table: it is no object")
    try:
        if _is_own(document, value):
            yield "", _Own.model_validate(value).manifest()
            return
        for name, table in value.items():
            yield "" if name == APPLICATION else name, _manifest(file, name, table)
    except ValidationError as error:
        raise _invalid(file, value, error) from error
    except ValueError as error:
        raise _refuse(file, str(error)) from error


def _is_own(document: Document, value: Mapping[str, Any]) -> bool:
    """Whether the file is one of ``permissions/``, which has no names of modules."""
    for key in value if document.toml else ():
        if key not in _OWN_KEYS:
            hint = did_you_mean(key, _OWN_KEYS) or "; write [[permission]] or [[set]]"
            raise ValueError(f"{key}: unknown key{hint}")
    return document.toml or bool(value.keys() & {"permission", "set", "default"})


def _manifest(file: Path, name: str, value: object) -> Manifest:
    if not isinstance(value, Mapping):
        raise _refuse(
            file, f"{name}: is no permission table: write what acl-manifests.json has"
        )
    try:
        return Manifest.model_validate(value)
    except ValidationError as error:
        raise _invalid(file, value, error, name) from error


def _invalid(
    file: Path, value: Mapping[str, Any], error: ValidationError, module: str = ""
) -> CapabilityError:
    return CapabilityError(
        Finding(
            problem.text,
            field=".".join(map(str, filter(str, (module, *problem.path)))),
            file=str(file),
        )
        for problem in problems(error, value)
    )


def _refuse(file: Path, problem: str) -> CapabilityError:
    return CapabilityError([Finding(problem, file=str(file))])
