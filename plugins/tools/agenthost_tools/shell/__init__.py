"""Run commands in the agent's workspace: ``shell_exec``. Off unless configured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agenthost import (
    ConfigSection,
    Effect,
    GuardPoint,
    ManifestTable,
    ToolSpec,
    hookimpl,
)

from .settings import EXEC_POLICY, ShellSection
from .tool import PROCESS, ShellExec, shell_exec


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read whether commands may be run at all, and how."""
    yield ConfigSection("shell", ShellSection)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read how an agent may run commands."""
    yield EXEC_POLICY


@hookimpl
def register_guard_point() -> Iterable[GuardPoint[Any]]:
    """Offer the point where a process is about to be started."""
    yield PROCESS


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``shell_exec``."""
    yield ToolSpec(
        "shell_exec",
        "Run a command in your workspace and read what it prints.",
        ShellExec,
        Effect.EXTERNAL,
        shell_exec,
        # The command has a time of its own, the operator's at most.
        timeout=3600.0,
        accepts=frozenset(),
        critical=("command",),
    )
