"""Policies in a line, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from agenthost_desktop_shell.decide import Decision
from agenthost_desktop_shell.folders import Folders
from agenthost_desktop_shell.manifests import Manifest, Module, prepare
from agenthost_desktop_shell.policy import Policy
from agenthost_desktop_shell.shell import ShellDecision
from agenthost_desktop_shell.tables import Tables
from agenthost_desktop_shell.terms import Caller, Mode, ShellCall
from agenthost_desktop_shell.validation import Report, validate

LINUX = Folders("linux", environment={"HOME": "/home/me"})
TITLE = "core:window:title"
MAIN = Caller("main")


@lru_cache(maxsize=1)
def tables() -> Tables:
    return Tables.builtin()


def manifest(
    commands: Iterable[str] = (),
    default: Iterable[str] = (),
    permissions: Iterable[dict[str, Any]] = (),
    sets: Mapping[str, Iterable[str]] | None = None,
) -> dict[str, Any]:
    """A table as ``acl-manifests.json`` has it; commands have their two permissions."""
    pairs = [
        {"identifier": f"{verb}-{command}", "commands": {verb: [command]}}
        for command in commands
        for verb in ("allow", "deny")
    ]
    inner = {name: list(members) for name, members in (sets or {}).items()}
    members = list(default)
    return {
        "default_permission": {"permissions": members} if members else None,
        "permissions": {each["identifier"]: each for each in (*pairs, *permissions)},
        "permission_sets": {
            name: {"identifier": name, "permissions": listed}
            for name, listed in inner.items()
        },
    }


def module(name: str, *args: Any, **table: Any) -> Module:
    return prepare(name, Manifest.model_validate(manifest(*args, **table)))


def own_table(*commands: str) -> str:
    """A file of ``permissions/`` that has an allow for each command."""
    return "\n".join(
        f'[[permission]]\nidentifier = "allow-{name}"\ncommands.allow = ["{name}"]'
        for name in commands
    )


def capability(**fields: Any) -> dict[str, Any]:
    """A capability for window main; fields given as None are left out."""
    usual = {"identifier": "a", "windows": ["main"], "permissions": []}
    return {k: v for k, v in {**usual, **fields}.items() if v is not None}


def report(value: Any, mode: Mode = Mode.STRICT) -> Report:
    return validate(value, tables(), mode)


def problems(value: Any, mode: Mode = Mode.STRICT) -> list[str]:
    return [str(finding) for finding in report(value, mode).errors]


def policy(*capabilities: dict[str, Any], mode: Mode = Mode.STRICT) -> Policy:
    return Policy(report(list(capabilities), mode).checked(), tables())


def granting(*permissions: Any, **fields: Any) -> Policy:
    return policy(capability(permissions=list(permissions), **fields))


def decision(
    of: Policy, command: str = TITLE, caller: Caller = MAIN, platform: str = "linux"
) -> Decision:
    window, webview, origin = caller
    return of.decide(command, window, webview, origin, platform)


def allowed(
    of: Policy, command: str = TITLE, caller: Caller = MAIN, platform: str = "linux"
) -> bool:
    return decision(of, command, caller, platform).allowed


def shell_policy(*entries: Any, permission: str = "shell:allow-execute") -> Policy:
    return granting({"identifier": permission, "allow": list(entries)})


def run(of: Policy, name: str, args: Any = (), **call: Any) -> ShellDecision:
    return of.decide_shell(ShellCall(name, args, **call), MAIN, LINUX)
