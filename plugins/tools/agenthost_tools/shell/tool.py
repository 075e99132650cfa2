"""The tool: what is asked, whether it may be, and what is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from agenthost import (
    Context,
    GuardPoint,
    InvalidInput,
    ToolContext,
    ToolResult,
    Unavailable,
)
from agenthost_values.value_class import value_class
from pydantic import BaseModel, Field

from .settings import EXEC_POLICY, ShellSection

if TYPE_CHECKING:
    from .process import Command


@value_class
class ProcessCase:
    """A process about to be started for an agent: its arguments, program first."""

    arguments: tuple[str, ...]
    context: Context


PROCESS = GuardPoint("process", ProcessCase, "the process", asks=False, effects=True)


class ShellExec(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``shell_exec``."""

    command: str = Field(
        description="One command; without a shell unless you were given one",
        min_length=1,
        max_length=16_384,
    )
    timeout_seconds: int = Field(
        30, description="Seconds after which it is killed", ge=1, le=3_000
    )


@runtime_checkable
class _OnDisk(Protocol):
    """A workspace that is a folder of this machine."""

    @property
    def folder(self) -> Path: ...


async def shell_exec(context: ToolContext, call: ShellExec) -> ToolResult:
    """Run a command and return how it ended and what it printed.

    Raises:
        Unavailable: Commands are off, or the workspace is no folder here.
        Denied: The agent, or a guard, does not allow it.
        InvalidInput: It is no command that can be run.
    """
    from . import policy
    from .process import run

    if context.agent is None:
        raise InvalidInput("", "only an agent runs commands; none is calling")
    settings = context.host.settings(ShellSection)
    line = [context.agent.manifest]
    if parent := context.agent.parent:
        # Nobody lets another do what it may not do itself.
        line += [each.manifest for each in context.host.agents.above(parent)]
    said = [EXEC_POLICY.of(manifest).exec_policy.mode for manifest in line]
    mode = policy.allowed(settings.mode, *said)
    find = policy.arguments
    asked = (call.command, mode, context.principal, settings.path)
    arguments = await context.host.workers.in_thread(find, *asked)
    context.host.guards.check(PROCESS, ProcessCase(arguments, context))
    folder = await _folder(context, context.agent.id)
    ended = await run(_command(context, settings, call, arguments, folder))
    how = "killed: it took too long" if ended.code is None else str(ended.code)
    text = f"exit code: {how}\nstdout:\n{ended.stdout}\nstderr:\n{ended.stderr}"
    return ToolResult(text, is_error=ended.code != 0)


async def _folder(context: ToolContext, agent_id: str) -> Path:
    workspace = context.host.files.workspace(agent_id, context)
    if not isinstance(workspace, _OnDisk):
        raise Unavailable("the workspaces of this daemon are not on its own disk")
    # A workspace is made when it is first used.
    await context.host.workers.in_thread(workspace.list, ".")
    return workspace.folder


def _command(
    context: ToolContext,
    settings: ShellSection,
    call: ShellExec,
    arguments: tuple[str, ...],
    folder: Path,
) -> Command:
    from .policy import environment
    from .process import Command

    limits = {
        "RLIMIT_AS": settings.max_memory_bytes,
        "RLIMIT_FSIZE": settings.max_file_bytes,
        "RLIMIT_CPU": settings.max_cpu_secs,
        "RLIMIT_CORE": 0,
    }
    return Command(
        arguments,
        folder,
        environment(settings, context.host.environ, str(folder)),
        limits,
        min(float(call.timeout_seconds), settings.timeout_secs),
        settings.max_output_bytes,
    )
