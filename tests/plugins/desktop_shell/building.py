"""Policies in a line, for tests."""

from __future__ import annotations

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


def module(**manifest: Any) -> Module:
    return prepare(Manifest(**manifest))


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
