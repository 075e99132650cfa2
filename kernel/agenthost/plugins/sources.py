"""Sources of tools: what plugins offer whose tools are not always the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..host import Host
from .specs import ToolSpec


class ToolSource:
    """Tools that appear and vanish while the daemon runs, as those of a server do.

    A source is asked off the event loop. One that raises keeps the tools it had; one
    that takes longer than 10 s keeps them too, and is asked no more.
    """

    name: str
    """What the log calls it; no two of a daemon are called the same."""

    servers = 0
    """How many MCP servers its tools come from."""

    async def start(self, host: Host, changed: Callable[[], object]) -> None:
        """Take up work; what takes long belongs into a task of its own.

        Args:
            host: The daemon.
            changed: To be called, from any thread, when the snapshot is another now.
        """

    def snapshot(self) -> Iterable[ToolSpec]:
        """What is on offer now, in any order; turns that run already keep theirs."""
        return ()

    def gone(self, tool: str) -> str:  # noqa: ARG002
        """Why a tool that was on offer is there no more, for who still calls it."""
        return f"{self.name} no longer offers it"

    async def stop(self) -> None:
        """Let go of everything; the daemon ends."""
