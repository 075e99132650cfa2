"""Work on the agent's own files: ``file_read``, ``file_write`` and ``file_list``."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import (
    Effect,
    InvalidInput,
    TooLarge,
    ToolContext,
    ToolResult,
    ToolSpec,
    Workspace,
    hookimpl,
)
from pydantic import BaseModel, Field

READ_LIMIT = 1024 * 1024
WRITE_LIMIT = 10 * 1024 * 1024
NAMES_SHOWN = 1000


class FileRead(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``file_read``."""

    path: str = Field(description="Path of a text file inside the workspace")


class FileWrite(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``file_write``."""

    path: str = Field(description="Path inside the workspace; folders are made")
    content: str = Field(description="The whole new text of the file")


class FileList(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``file_list``."""

    path: str = Field(".", description="Path of a folder inside the workspace")


async def file_read(context: ToolContext, call: FileRead) -> ToolResult:
    """Return the text of a file.

    Raises:
        InvalidInput: It is not UTF-8 text.
        TooLarge: It is over 1 MiB.
    """
    read = _workspace(context).read
    data = await context.host.workers.in_thread(read, call.path, READ_LIMIT)
    try:
        return ToolResult(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "path", f"{call.path} is binary ({len(data)} bytes), not UTF-8 text"
        ) from error


async def file_write(context: ToolContext, call: FileWrite) -> ToolResult:
    """Write a file whole.

    Raises:
        InvalidInput: The text cannot be written as UTF-8.
        TooLarge: It is over 10 MiB.
    """
    try:
        data = call.content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput("content", "it holds half a character") from error
    if len(data) > WRITE_LIMIT:
        raise TooLarge(f"content: {len(data)} bytes, over the limit of {WRITE_LIMIT}")
    write = _workspace(context).write
    await context.host.workers.in_thread(write, call.path, data)
    return ToolResult(f"wrote {len(data)} bytes to {call.path}")


async def file_list(context: ToolContext, call: FileList) -> ToolResult:
    """Return the names in a folder, one a line, folders with ``/`` at the end."""
    names = await context.host.workers.in_thread(_workspace(context).list, call.path)
    lines = [_one_line(name) for name in names[:NAMES_SHOWN]]
    if len(names) > NAMES_SHOWN:
        lines.append(f"[{len(names) - NAMES_SHOWN} more]")
    return ToolResult("\n".join(lines) or "(empty)")


def _workspace(context: ToolContext) -> Workspace:
    if context.agent is None:
        raise InvalidInput("", "only an agent has files; none is calling")
    return context.host.files.workspace(context.agent.id, context)


def _one_line(name: str) -> str:
    """Escape what would break the line or cannot be encoded."""
    if name.isprintable():
        return name
    return "".join(
        letter
        if letter.isprintable()
        else letter.encode("unicode_escape").decode("ascii")
        for letter in name
    )


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer the file tools."""
    yield ToolSpec(
        "file_read",
        "Read a text file of your workspace.",
        FileRead,
        Effect.READ,
        file_read,
        idempotent=True,
    )
    yield ToolSpec(
        "file_write",
        "Write a text file in your workspace, replacing what was there.",
        FileWrite,
        Effect.WRITE,
        file_write,
        idempotent=True,
    )
    yield ToolSpec(
        "file_list",
        "List the files and folders in a folder of your workspace.",
        FileList,
        Effect.READ,
        file_list,
        idempotent=True,
    )
