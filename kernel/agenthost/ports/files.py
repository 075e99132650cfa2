"""The port FILES: the agents' workspaces.

The guard point ``path`` is asked of every path before anything is done with it.
"""

from __future__ import annotations

from typing import Protocol

from ..context import Context


class Workspace(Protocol):
    """An agent's folder, and nothing beyond it. Functions block: use a thread."""

    def read(self, path: str, limit: int) -> bytes:
        """Read a file of at most ``limit`` bytes.

        Raises:
            Blocked: The path leads out of the workspace, or a guard refused it.
            InvalidInput: It names no file: a folder, or what can be no name.
            NotFound: There is no such file.
            TooLarge: It holds more.
        """

    def write(self, path: str, data: bytes) -> None:
        """Write a file wholly or not at all; folders are made.

        Raises:
            Blocked: The path leads out of the workspace, or a guard refused it.
            InvalidInput: It can name no file.
            StorageFull: There is no room for it.
        """

    def list(self, path: str = ".") -> list[str]:
        """Name what is in a folder, sorted; folders end with a slash.

        Raises:
            Blocked: The path leads out of the workspace, or a guard refused it.
            InvalidInput: It names no folder.
            NotFound: There is no such folder.
        """

    def remove(self) -> None:
        """Delete the folder with everything in it; there need not be one."""


class Files(Protocol):
    """The workspaces of all agents."""

    def workspace(self, agent_id: str, context: Context | None = None) -> Workspace:
        """Return the agent's workspace; its folder is made at the first use.

        Args:
            agent_id: Whose workspace it is.
            context: What guards are told of whoever asks, where there is a turn.

        Raises:
            InvalidInput: The id could name anything but a folder of its own.
        """
