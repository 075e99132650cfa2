"""Permission tables as the desktop framework writes them.

``gen/schemas/acl-manifests.json`` has the tables of a whole application, made by its
build; ``permissions/**/*.toml`` are what developers write for their own commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .findings import CapabilityError, Finding
from .manifests import Module, made
from .reading import MAX_TABLE_BYTES, read_file

APPLICATION = "__app-acl__"
ACL_FILE = "acl-manifests.json"
SCHEMAS = "schemas"
_TABLES = frozenset({".toml", ".json", ".json5"})
_OWN = frozenset({"module", "commands", "aliases"})
# The requirement has another name for one command of the framework.
_RENAMED = {"core:app": {"tauri-version": "framework-version"}}

Table = dict[str, Any]


def builtin_tables() -> tuple[Module, ...]:
    """Read the tables that come along."""
    return read_tables([Path(__file__).parent / "data" / "permissions"])


def read_tables(paths: Iterable[Path]) -> tuple[Module, ...]:
    """Read permission tables from files and folders, of whichever format.

    Of a module that stands in several, the later one's permissions count: what a
    developer writes is newer than what the last build wrote.

    Raises:
        CapabilityError: A file cannot be read, or holds no permission table.
    """
    tables: dict[str, Table] = {}
    sources: dict[str, str] = {}
    for path in paths:
        for file in _files(path):
            for table in _read(file):
                module = table.get("module", "")
                if not isinstance(module, str):
                    raise _refuse(file, "module: must be text")
                _add(tables, table, module, file)
                sources[module] = str(file)
    return tuple(made(table, sources[name]) for name, table in tables.items())


def _add(tables: dict[str, Table], table: Table, module: str, file: Path) -> None:
    known = tables.get(module)
    if known is None:
        tables[module] = table
    elif known.get("commands") or table.get("commands"):
        owner = module or "the application"
        raise _refuse(file, f"the table of {owner} stands twice; merge the two")
    else:
        tables[module] = _merged(known, table)


def _merged(old: Table, new: Table) -> Table:
    merged: Table = {**old, **new}
    for kind in ("permission", "set"):
        by_name = {t["identifier"]: t for t in (*old.get(kind, ()), *new.get(kind, ()))}
        merged[kind] = list(by_name.values())
    return merged


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


def _read(file: Path) -> Iterator[Table]:
    document = read_file(file, MAX_TABLE_BYTES)
    value = document.value
    if not isinstance(value, Mapping):
        raise _refuse(file, "is no permission table: it is no object")
    if _OWN & value.keys() or isinstance(value.get("default"), list):
        yield dict(value)
    elif value.keys() & {"permission", "set", "default"}:
        yield _own_commands(file, value)
    elif document.toml:
        yield dict(value)
    else:
        for name, table in value.items():
            yield _manifest(file, name, table)


def _own_commands(file: Path, value: Mapping[str, Any]) -> Table:
    """Read a file of ``permissions/``; the application's table is all of them."""
    table: Table = {
        "permission": [
            _permission(file, item) for item in _list(file, value, "permission")
        ],
        "set": [_set(file, item) for item in _list(file, value, "set")],
    }
    if "default" in value:
        table["default"] = _set(file, value["default"])["permissions"]
    return table


def _manifest(file: Path, name: str, value: object) -> Table:
    entry = _object(file, value)
    default = entry.get("default_permission")
    permissions = _object(file, entry.get("permissions", {})).values()
    sets = _object(file, entry.get("permission_sets", {})).values()
    table: Table = {
        "module": "" if name == APPLICATION else name,
        "default": _set(file, default)["permissions"] if default else [],
        "permission": [_permission(file, item) for item in permissions],
        "set": [_set(file, item) for item in sets],
    }
    return _renamed(table, _RENAMED.get(name, {}))


def _permission(file: Path, value: object) -> Table:
    item = _object(file, value)
    commands = _object(file, item.get("commands") or {})
    scope = _object(file, item.get("scope") or {})
    kept = {key: item[key] for key in ("description", "platforms") if item.get(key)}
    sides = {key: item.get(key) or commands.get(key) or [] for key in ("allow", "deny")}
    return {**kept, **sides, "identifier": _name(file, item), "scope": dict(scope)}


def _set(file: Path, value: object) -> Table:
    item = _object(file, value)
    return {
        "identifier": item.get("identifier") or "default",
        "description": item.get("description") or "",
        "permissions": item.get("permissions") or [],
    }


def _renamed(table: Table, names: Mapping[str, str]) -> Table:
    """Give renamed commands the names that they have here; the old ones are aliases."""
    for old, new in names.items():
        ours = {f"{verb}-{old}": f"{verb}-{new}" for verb in ("allow", "deny")}
        present = False
        for permission in table["permission"]:
            if permission["identifier"] in ours:
                permission["identifier"] = ours[permission["identifier"]]
                verb = permission["identifier"].partition("-")[0]
                permission[verb], present = [new], True
        for holder in (table, *table["set"]):
            key = "default" if holder is table else "permissions"
            holder[key] = [ours.get(member, member) for member in holder[key]]
        if present:
            table["aliases"] = {old: new}
    return table


def _list(file: Path, value: Mapping[str, Any], key: str) -> list[Any]:
    items = value.get(key, [])
    if not isinstance(items, list):
        raise _refuse(file, f"{key}: must be an array")
    return items


def _object(file: Path, value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise _refuse(file, "is no permission table: write it as acl-manifests.json has it")


def _name(file: Path, item: Mapping[str, Any]) -> str:
    name = item.get("identifier")
    if isinstance(name, str):
        return name
    raise _refuse(file, "a permission has no identifier")


def _refuse(file: Path, problem: str) -> CapabilityError:
    return CapabilityError([Finding(problem, file=str(file))])
