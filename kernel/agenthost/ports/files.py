"""The port FILES: the agents' workspaces."""

from __future__ import annotations

from typing import Protocol

from ..context import Context


class Workspace(Protocol):
    """An agent's folder, and nothing beyond it. Functions block: use a thread."""

    def read(self, path: str, limit: int) -> bytes:
        """Read a file of at most ``limit`` bytes."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file wholly or not at all; folders are made."""

    def list(self, path: str = ".") -> list[str]:
        """Name what is in a folder, sorted; folders end with a slash."""

    def remove(self) -> None:
        """Delete the folder with everything in it."""


class Files(Protocol):
    """The workspaces of all agents."""

    def workspace(self, agent_id: str, context: Context | None = None) -> Workspace:
        """Return the agent's workspace; its folder is made at the first use.

        Args:
            agent_id: Whose workspace it is.
            context: What guards are told of whoever asks, where there is a turn.
        """
