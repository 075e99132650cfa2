"""The JSON Schema (draft-07) of capability files, made from the permission tables."""

from __future__ import annotations

from typing import Any

from .identifiers import qualify
from .shell_scope import SHELL
from .tables import Tables
from .terms import PLATFORMS

Schema = dict[str, Any]
SHOWN = 12
DRAFT = "http://json-schema.org/draft-07/schema#"


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _array(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _closed(required: list[str], properties: Schema) -> Schema:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


def capability_schema(tables: Tables) -> Schema:
    """Make the schema titled CapabilityFile for the identifiers of these tables."""
    return {
        "$schema": DRAFT,
        "title": "CapabilityFile",
        "description": "A capability, an array of them, or an object that lists them.",
        "definitions": {
            "Capability": _capability(),
            "CapabilityRemote": _remote(),
            "Identifier": _identifier(tables),
            "PermissionEntry": _entry(tables),
            "Target": {"type": "string", "enum": list(PLATFORMS)},
            "Value": _value(),
            "ShellScopeEntry": _shell_entry(),
            "ShellAllowedArgs": _shell_arguments(),
            "ShellAllowedArg": _shell_argument(),
        },
        **_forms(),
    }


def _identifier(tables: Tables) -> Schema:
    """The known names, and what an editor shows of each."""
    described = {
        qualify(module.name, name): text
        for module in tables.modules.values()
        for name, text in module.descriptions.items()
    }
    shown = [
        {"const": name, "description": described.get(name) or _meaning(tables, name)}
        for name in sorted(tables.identifiers)
    ]
    return {"type": "string", "anyOf": shown}


def _meaning(tables: Tables, name: str) -> str:
    """What a permission or set amounts to, in the words of its commands."""
    leaves = tables.expand(name)
    parts = []
    for verb, commands in (
        ("Allows", [command for leaf in leaves for command in leaf.allow]),
        ("Denies", [command for leaf in leaves for command in leaf.deny]),
    ):
        more = f" and {len(commands) - SHOWN} more" if len(commands) > SHOWN else ""
        if commands:
            parts.append(f"{verb} {', '.join(commands[:SHOWN])}{more}.")
    return " ".join(parts) or "Allows no command by itself."


def _forms() -> Schema:
    # The key "capabilities" decides the form, as in the reference runtime.
    listed = {
        "required": ["capabilities"],
        "properties": {"capabilities": _array(_ref("Capability"))},
    }
    return {
        "if": {"type": "array"},
        "then": _array(_ref("Capability")),
        "else": {
            "type": "object",
            "if": {"required": ["capabilities"]},
            "then": listed,
            "else": _ref("Capability"),
        },
    }


def _capability() -> Schema:
    return {
        "type": "object",
        "required": ["identifier", "permissions"],
        "properties": {
            "identifier": {"type": "string", "description": "Its unique name."},
            "description": {
                "type": "string",
                "default": "",
                "description": "What the permissions are for.",
            },
            "remote": {
                "anyOf": [_ref("CapabilityRemote"), {"type": "null"}],
                "description": "Pages from elsewhere that may use the permissions.",
            },
            "local": {
                "type": "boolean",
                "default": True,
                "description": "Whether the application's own pages may use them.",
            },
            "windows": _array(
                {"type": "string"},
                description="Labels or globs; a match counts for all its webviews.",
            ),
            "webviews": _array(
                {"type": "string"},
                description="Labels or globs; a match counts in whichever window.",
            ),
            "permissions": _array(
                _ref("PermissionEntry"),
                uniqueItems=True,
                description="Permissions and sets, with or without a scope.",
            ),
            "platforms": {
                "type": ["array", "null"],
                "items": _ref("Target"),
                "description": "Where the capability counts; everywhere if left out.",
            },
        },
    }


def _remote() -> Schema:
    return {
        "type": "object",
        "required": ["urls"],
        "properties": {"urls": _array({"type": "string"})},
    }


def _entry(tables: Tables) -> Schema:
    prefix = f"{SHELL}:"
    shell = [name for name in sorted(tables.identifiers) if name.startswith(prefix)]
    scope = {"type": ["array", "null"], "items": _ref("Value")}
    shell_scope = {"type": ["array", "null"], "items": _ref("ShellScopeEntry")}
    return {
        "anyOf": [
            _ref("Identifier"),
            {
                "type": "object",
                "required": ["identifier"],
                "properties": {
                    "identifier": _ref("Identifier"),
                    "allow": scope,
                    "deny": scope,
                },
                "if": {"properties": {"identifier": {"enum": shell}}},
                "then": {"properties": {"allow": shell_scope, "deny": shell_scope}},
            },
        ]
    }


def _value() -> Schema:
    return {
        "anyOf": [
            {"type": ["null", "boolean", "number", "string"]},
            _array(_ref("Value")),
            {"type": "object", "additionalProperties": _ref("Value")},
        ]
    }


def _shell_entry() -> Schema:
    name, args = {"type": "string"}, _ref("ShellAllowedArgs")
    return {
        "anyOf": [
            _closed(
                ["name", "cmd"],
                {"name": name, "cmd": {"type": "string"}, "args": args},
            ),
            _closed(
                ["name", "sidecar"],
                {"name": name, "sidecar": {"type": "boolean"}, "args": args},
            ),
        ]
    }


def _shell_arguments() -> Schema:
    return {"anyOf": [{"type": "boolean"}, _array(_ref("ShellAllowedArg"))]}


def _shell_argument() -> Schema:
    raw = {"type": "boolean", "default": False}
    validator = _closed(["validator"], {"validator": {"type": "string"}, "raw": raw})
    return {"anyOf": [{"type": "string"}, validator]}
