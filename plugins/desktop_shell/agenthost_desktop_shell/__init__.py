"""Desktop capability files: parse, validate, resolve, decide.

What stands in ``__all__`` is for programs that use the files without a daemon; each
name is imported when it is first used. The daemon's plugin is ``plugin``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .decide import Decision
    from .diff import Change, compare
    from .findings import CapabilityError, Finding
    from .folders import Folders
    from .least import Ask, Suggestion, suggest
    from .lints import lint
    from .policy import Policy, load_policy, load_tables
    from .project import Project, open_project
    from .schema import capability_schema
    from .shell import ShellDecision
    from .tables import Tables
    from .terms import Caller, Mode, ShellCall
    from .validation import Report, validate

_HOMES = {
    "Ask": "least",
    "Caller": "terms",
    "CapabilityError": "findings",
    "Change": "diff",
    "Decision": "decide",
    "Finding": "findings",
    "Folders": "folders",
    "Mode": "terms",
    "Policy": "policy",
    "Project": "project",
    "Report": "validation",
    "ShellCall": "terms",
    "ShellDecision": "shell",
    "Suggestion": "least",
    "Tables": "tables",
    "capability_schema": "schema",
    "compare": "diff",
    "lint": "lints",
    "load_policy": "policy",
    "load_tables": "policy",
    "open_project": "project",
    "suggest": "least",
    "validate": "validation",
}

__all__ = [
    "Ask",
    "Caller",
    "CapabilityError",
    "Change",
    "Decision",
    "Finding",
    "Folders",
    "Mode",
    "Policy",
    "Project",
    "Report",
    "ShellCall",
    "ShellDecision",
    "Suggestion",
    "Tables",
    "capability_schema",
    "compare",
    "lint",
    "load_policy",
    "load_tables",
    "open_project",
    "suggest",
    "validate",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
